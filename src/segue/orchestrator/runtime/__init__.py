"""Shared services: the run queue, the facts cache, compiled contexts, views, projections, agents, permissions."""
