"""Rules of the protocol, as data and pure functions.

`capacity` limits the size of a context, `windows` lists the models' windows and prices, `budgets` limits what a
workflow may use, `retries` decides what follows a failure, `stalls` detects silent agents, and `admission` and `steps`
decide about requests and the next step of a run. Time and random numbers are parameters.
"""
