"""Costs of Segue, beside the costs of its raw building blocks in the same minutes.

Each module measures one subject and returns plain figures; `python -m benchmarks` runs each of them in a process of its
own, writes `build/bench.json` and prints a table. `docs/reference/benchmarks.md` explains the figures.
"""
