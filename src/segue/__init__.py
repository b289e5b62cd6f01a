"""Segue keeps long-running coding-agent work alive across crashes, restarts and context windows."""

__version__ = "0.1.0"
