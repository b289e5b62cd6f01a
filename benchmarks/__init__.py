"""What Segue costs, beside what its raw building blocks cost in the same minutes.

Each module measures one thing and returns plain figures; `python -m benchmarks` runs each of them in a process of its
own, writes `build/bench.json` and prints a table. `docs/reference/benchmarks.md` says what the figures mean.
"""
