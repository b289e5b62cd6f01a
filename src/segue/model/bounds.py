"""How much anybody may ask for, at every door: beyond that a number only means "never", or is a slip of the hand."""

LONGEST = 100 * 365 * 86_400.0
"""Seconds."""
MOST = 10**12
"""Of whatever is counted: tokens, tasks, tries, characters, dollars."""
