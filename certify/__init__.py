"""Certification: the real agent programs, killed in the middle of their work and brought back by Segue.

`programs` installs them at pinned versions, `agents` gives each a home of its own and the scripted model in place of
its vendor, `play` lets Segue work with one and kills everything twice, `proof` looks for evidence in the journal and in
the model's request log, `page` writes docs/reference/agents.md. `python -m certify`, or `make certify`.
"""
