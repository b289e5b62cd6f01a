"""Certification: the real agent programs, killed in the middle of their work and brought back by Segue.

`installed_programs` installs them at pinned versions, `candidates` gives each a home of its own and the scripted model
in place of its vendor, `play` runs a workflow with one and kills it twice, `proof` searches for evidence in the journal
and in the model's request log, `agents_page` writes docs/reference/agents.md. `python -m certify`, or `make certify`.
"""
