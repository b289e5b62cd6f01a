"""Amp, which keeps its threads on its vendor's server: the program `python -m segue.drivers.amp`.

Amp speaks no protocol that stays open between two prompts. It is started for each of them, goes on with a thread by
`amp threads continue`, and ends with the turn. This program holds the thread meanwhile and speaks the Agent Client
Protocol, so that the driver that talks to every other agent talks to this one too. `agent` is its side of the protocol,
`program` how Amp is called and what it says when it will not, `turns` one prompt and all that follows, `telling` what
Amp says as updates, `settings` the rules that make Amp ask, and `door` where its questions come in (`delegate` carries
them there).
"""
