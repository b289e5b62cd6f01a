"""An agent of our own, for any model that pydantic-ai knows: the program `python -m segue.drivers.api`.

It speaks the Agent Client Protocol on its standard input and output, so the driver that talks to every other agent
talks to this one too, and it runs in a guarded process of its own like any of them (docs/decisions has the reasons).
`agent` is its side of the protocol, `turns` the loop of requests and tool calls, `tools` what it can do and `place`
where, `history` what it remembers across processes, and `models` whom it asks.
"""
