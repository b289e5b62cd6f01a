"""The scripted agent: a real process with conversations on disk, which also crashes, hangs and misreports on request.

`python -m segue.testing.rehearsal --script FILE --home DIR [--diary FILE]` speaks the Agent Client Protocol on its
standard input and output. `script` says what it does, `performance` does it with its `tools`, `conversation` is what it
remembers across processes, and `diary` records what it received and did. `wire` carries its messages and
`updates` words them, so that its process starts without the models of the whole protocol.
docs/reference/rehearsal.md describes the script.
"""
