"""From state and workspace to checkpoints.

A checkpoint is a mark on the way; a snapshot is one that carries everything a successor needs. The workspace's part,
which takes time and may fail, is gathered first; the rest is put together under the journal's lock, so that a
checkpoint says exactly what was true when it was written.
"""
