"""One run under one agent process, from its claim to its end."""
