"""Types of ids, and functions that generate them."""

import re
import secrets
from datetime import datetime
from typing import NewType

WorkflowId = NewType("WorkflowId", str)
SessionId = NewType("SessionId", str)
CheckpointId = NewType("CheckpointId", str)
TaskId = NewType("TaskId", str)
AttemptId = NewType("AttemptId", str)
PromptId = NewType("PromptId", str)
RequestId = NewType("RequestId", str)
BootId = NewType("BootId", str)
Seq = NewType("Seq", int)

# Sequence numbers start at 1, so a watcher that has seen nothing asks for what comes after 0.
NOTHING_SEEN = Seq(0)

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def _random(length: int) -> str:
    """Return a random text of so many letters and digits, none of them easily confused."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def new_workflow_id(now: datetime) -> WorkflowId:
    return WorkflowId(f"workflow-{now:%Y-%m-%d}-{_random(6)}")


def new_session_id(now: datetime) -> SessionId:
    return SessionId(f"session-{now:%Y-%m-%d}-{_random(6)}")


def checkpoint_id(now: datetime, number: int) -> CheckpointId:
    """Return the id of a checkpoint; checkpoints are numbered within their workflow, under its lock."""
    return CheckpointId(f"ckpt-{now:%Y-%m-%d}-{number:03d}")


def new_attempt_id() -> AttemptId:
    return AttemptId(f"attempt-{_random(12)}")


def new_prompt_id() -> PromptId:
    return PromptId(f"prompt-{_random(12)}")


def new_request_id() -> RequestId:
    return RequestId(f"request-{_random(12)}")


def new_boot_id() -> BootId:
    return BootId(f"boot-{_random(12)}")


def slugify(text: str, limit: int = 48) -> str:
    """Return a kebab-case name of at most `limit` characters from a title; `workflow` if nothing is left of it."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    slug = "-".join(words)[:limit].strip("-")
    return slug or "workflow"
