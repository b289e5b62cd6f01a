"""Claude Code through the Claude Agent SDK: the program `python -m segue.drivers.claude`.

It speaks the Agent Client Protocol on its standard input and output, as `api` does and for the same reasons
(docs/decisions). `agent` opens conversations, `sdk_conversation` is one conversation of the SDK, `setup` the user's
choices, `options` those of the SDK, `permission_rules` decides which calls need a question, `translation` makes
updates of messages, `stop_reasons` decides how a turn ends, `reconstruction` reads an old conversation, `register`
lists the opened conversations, `client_store` is the client's copy of them, `mirror` keeps and restores that copy, and
`session_files` are Claude Code's own files.
"""
