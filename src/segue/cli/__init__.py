"""The command line: parse, call the server, print.

Nothing heavy is imported here. `status` answers without click (see `segue.__main__`); the other commands are in `app`.
Everything a person reads goes through `output`, and every event becomes a line in `render`.
"""
