"""An agent that is a LangGraph graph of the user's: the program `python -P -m segue.drivers.langgraph GRAPH`.

It speaks the Agent Client Protocol on its standard input and output, so the driver that talks to every other agent
talks to this one too, and the graph runs in a guarded process of its own (docs/decisions has the reasons). `graphs`
finds the graph, `threads` keeps its checkpoints, `agent` is its side of the protocol, `turns` takes a prompt through
the graph, `telling` tells what it does meanwhile, `asking` what it wants to know, and `pipes` keeps what it prints out
of the protocol.
"""
