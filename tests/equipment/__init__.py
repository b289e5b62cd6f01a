"""Equipment of the tests: a clock set by hand, servers that crash on purpose, and waiting with a time limit."""
