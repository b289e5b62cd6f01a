"""Crash recovery, the sweep, the retry schedule and retirement of old sessions. Starts no agent."""
