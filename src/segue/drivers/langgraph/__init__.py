"""An agent that is a LangGraph graph of the user's: the program `python -P -m segue.drivers.langgraph GRAPH`.

It speaks the Agent Client Protocol on its standard input and output, as all other agents do, and the graph runs in a
guarded process of its own (docs/decisions has the reasons). `graphs` finds the graph, `threads` keeps its checkpoints,
`agent` opens threads, `turns` takes a prompt through the graph, `reporter` makes updates of its stream, and
`interrupts` makes permission requests of its interrupts.
"""
