"""Orchestration of workflows: requests of people start runs, a run works under one agent process, and interrupted runs
are settled.

Only a person's request starts an agent: no restart, sweep or queue does so by itself.
"""

from segue.orchestrator.opening import open_orchestrator
from segue.orchestrator.requests.service import Orchestrator

__all__ = ["Orchestrator", "open_orchestrator"]
