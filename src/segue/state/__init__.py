"""Current state as a fold over events.

`moves` holds the two tables of legal transitions. `fold` turns records of the journal into the state of a workflow, its
sessions, its plan and its usage, one event at a time; the type checker proves that every kind of event is handled. The
package is pure: the same records give the same state, and a fold can be stopped and continued anywhere.
"""
