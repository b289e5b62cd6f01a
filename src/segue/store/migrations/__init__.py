"""Numbered steps from an empty database to the tables; a step that was released never changes."""
