"""Claude Code through the Claude Agent SDK: the program `python -m segue.drivers.claude`.

It speaks the Agent Client Protocol on its standard input and output, as `api` does and for the same reasons
(docs/decisions). `agent` is its side of the protocol, `conversation` one conversation of the SDK, `options` how the SDK
is asked for it, `asking` which calls need a question, `translation` what it says in the protocol's words, `stops` why a
turn ends, `history` what is known of an old conversation, `register` the conversations it has opened, `store` where
Segue keeps them, `mirror` how that copy is kept and put back, and `files` where Claude Code has its own.
"""
