"""The user's machine seen from outside.

What git says about a worktree, worktrees and the branches they stand on, checkpoints of whole worktrees under hidden
refs, and commands that run as guarded process trees. This room knows nothing of workflows, sessions or journals: it is
told paths, refs and the names of executions, looks or acts, and answers with plain values. It leaves the user's index,
HEAD and hooks alone, and no process that it starts outlives the server.
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
