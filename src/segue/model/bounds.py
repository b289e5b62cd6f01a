"""Upper bounds of all numbers that users can give; a larger number means "no limit", or is a typing error."""

LONGEST = 100 * 365 * 86_400.0
"""Maximum duration in seconds."""
MOST = 10**12
"""Maximum of every count: tokens, tasks, attempts, characters, dollars."""
