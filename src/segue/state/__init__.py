"""What is true now, as a fold over what happened.

`moves` holds the two tables of legal moves: what is not in them cannot happen. `fold` turns records of the journal
into the state of a workflow, its sessions, its plan and its usage, one event at a time; the type checker proves that
no kind of event was forgotten. The room is pure: the same records give the same state, and folding may stop and go on
anywhere.
"""
