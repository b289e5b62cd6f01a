"""Shared vocabulary of all packages, as frozen values.

Values that pass between packages are defined here: ids, errors, plans, events and checkpoints. This package does no I/O
and imports no other package of ours, so every other package may import it. `crash_point` is here too, because every
durable step of every package calls it.
"""
