"""The words of the house, as frozen values.

Everything that travels between rooms is defined here: ids, errors, plans, events and checkpoints.
Nothing in this room does I/O and nothing in it imports another room, so every other room may lean on it.
`crash_point` also lives here, because every durable step of every room must be able to call it.
"""
