"""Interface to the user's machine: git, files, processes and containers.

It holds git state, worktrees and their branches, checkpoints of whole worktrees under hidden refs, and commands that
run as guarded process trees. The package knows nothing of workflows, sessions or journals: it gets paths, refs and
names of executions, and returns plain values. It never changes the user's index, HEAD or hooks, and no process that it
starts outlives the server, except in a container.
"""

from segue.workspace.checkpoints import SavedTree, restore, save, save_with_state, tree_of
from segue.workspace.comparison import divergence
from segue.workspace.git import read_state, repository_root
from segue.workspace.processes import (
    CompletedRun,
    GuardedProcess,
    ProcessIdentity,
    descendants,
    end_marked,
    guarded,
    identity,
    is_alive,
    marked,
    run_guarded,
)
from segue.workspace.secret_files import is_secret
from segue.workspace.worktrees import Worktree, ensure_worktree, find_worktree, run_setup

__all__ = [
    "CompletedRun",
    "GuardedProcess",
    "ProcessIdentity",
    "SavedTree",
    "Worktree",
    "descendants",
    "divergence",
    "end_marked",
    "ensure_worktree",
    "find_worktree",
    "guarded",
    "identity",
    "is_alive",
    "is_secret",
    "marked",
    "read_state",
    "repository_root",
    "restore",
    "run_guarded",
    "run_setup",
    "save",
    "save_with_state",
    "tree_of",
]
