"""Runs workflows.

One run of a session is one entry of the queue of runs. `service` is what people can do, `runner` drives an agent
through the plan, `settling` brings interrupted work to rest, and `sweep` sees to it that nothing stays stuck. Nobody
but the user starts an agent: not the queue, not a restart, not the sweep.
"""

from segue.orchestrator.opening import open_orchestrator
from segue.orchestrator.requests.service import Orchestrator

__all__ = ["Orchestrator", "open_orchestrator"]
