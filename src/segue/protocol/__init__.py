"""When the wheel must stop, and how it may turn again: rules, as data and pure functions.

`capacity` says how full a context may become, `windows` what is known of models offline, `budgets` how much a workflow
may use, `retries` what follows a failure, and `stalls` when silence is worth a word. Nothing here asks for the time or
for chance: both are handed in.
"""
