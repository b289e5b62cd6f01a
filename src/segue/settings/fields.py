"""Settings of the server: a field, its default and one sentence each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from segue.model.agents import AgentConfiguration
from segue.model.findings import Extractor
from segue.model.status import Recovery
from segue.model.work_settings import WorkSettings
from segue.settings.agents import BUILT_IN_AGENTS

SHARES: Mapping[str, float | None] = {
    "snapshot_before_compaction": None,
    "warn": 0.75,
    "fork": 0.80,
    "pause": 0.85,
    "force": 0.95,
}
TOKENS: Mapping[str, int | None] = {"refresh_every": 50_000, "stable_window": None, "known_window": None}
"""Settable values of the capacity ladder and their defaults: rungs as shares of the window, numbers of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(WorkSettings):
    """Settings in `segue.toml` of the data directory, or in a variable `SEGUE_<FIELD>`, which has priority.

    The settings of the work apply to all repositories of the user.
    """

    host: str = "127.0.0.1"
    """Address that the server listens on."""
    port: int = 0
    """Port that the server listens on; 0 is any free one."""
    allow_remote: bool = False
    """True if `host` may be an address that other machines can reach."""
    agents: Mapping[str, AgentConfiguration] = field(default_factory=lambda: BUILT_IN_AGENTS)
    """Agents by name; your own are added to the built-in ones."""
    setup_watchdog: float = 600.0
    """Seconds after which `setup` counts as hanging and is stopped."""
    start_watchdog: float = 120.0
    """Seconds after which a session that does not start counts as hanging."""
    silence_watchdog: float = 3600.0
    """Seconds without an event after which a working agent counts as hanging."""
    handshake_timeout: float = 60.0
    """Seconds in which an agent must answer after its start."""
    permission_timeout: float = 3600.0
    """Seconds after which an unanswered permission is denied."""
    pause_force_after: float = 300.0
    """Seconds that a pause waits for the end of the task before it interrupts the agent."""
    sweep_interval: float = 60.0
    """Seconds between two searches for work that lost its agent; 300 at most."""
    talk_linger: float = 60.0
    """Seconds that an agent is kept running after the last chat message."""
    agents_at_once: int = 64
    """Workflows whose agents may run at the same time; other work waits and starts in the order of the requests.
    Reviewers and fixers use the slot of the agent that waits for them."""
    session_idle: float = 1800.0
    """Seconds after which a session that waits for a message, and has no running agent, is suspended."""
    session_ttl: float = 2_592_000.0
    """Seconds after which an unused session expires; the files of expired sessions, and of sessions that ended this
    long ago, are moved to `archive/`."""
    delivery_wait: float = 90.0
    """Seconds that a person who sends a message waits for its delivery to the agent."""
    messages_waiting: int = 10
    """Maximum number of messages that wait for one agent; at least 1."""
    merge_messages: bool = True
    """True if waiting messages are sent to the agent as one prompt; otherwise each has a turn of its own."""
    stall_notice: float = 300.0
    """Seconds of silence of an agent after which a notice is shown, once for each prompt."""
    stall_look: float = 60.0
    """Seconds between two checks for that."""
    retry_attempts: int = 3
    """Attempts at a step before the fixer, or a person, is asked; with 1, a person is asked at once."""
    retry_first: float = 1.0
    """Seconds before the first retry, plus a random part of up to a half; each further one waits twice as long."""
    retry_longest: float = 60.0
    """Maximum seconds before a retry."""
    quick_failures: int = 3
    """Consecutive failures of an agent within `quick_within`, at any steps, after which a person is asked instead of
    the fixer."""
    quick_within: float = 60.0
    """Seconds, for `quick_failures`."""
    fixer_time: float = 600.0
    """Seconds that the fixer has for its advice."""
    review_time: float = 600.0
    """Seconds that each reviewer of a task has."""
    capacity: Mapping[str, float] = field(default_factory=dict[str, float])
    """Capacity ladder of an agent's context; see below."""
    context_budget: int = 0
    """Maximum tokens of a compiled resume context, at least 100; 0: 6 % of the window, from 4,000 to 16,000."""
    context_issue: int = 0
    """Characters of the issue's description in a compiled context; 0: all of it, up to half of the budget."""
    context_comments: int = 3
    """Comments of each review in a compiled context."""
    history_message: int = 2000
    """Characters of one message where the history is inserted into a prompt."""
    history_result: int = 500
    """Characters of one tool result there."""
    history_whole: int = 24_000
    """Characters of the whole history there; older messages are left out."""
    extraction: Extractor = "rules"
    """Source of decisions and errors for a snapshot: `rules`, which call no model, or in addition a `model` or the
    `agent`."""
    extraction_model: str | None = None
    """Model for that, as `provider:name`; its key must be in the environment."""
    extraction_timeout: float = 60.0
    """Seconds in which the model or the agent must answer; after that only the rules are used."""
    extraction_messages: int = 50
    """Number of the latest messages that are read for that."""
    extraction_base_url: str | None = None
    """Address of the model, if not that of its provider."""
    container_engine: str = ""
    """Socket of the engine that runs agents in containers; the default is `DOCKER_HOST`, then the usual sockets of
    Docker and Podman."""
    reattach_at_start: bool = False
    """True if the server reconnects at its start to agents that kept running in containers, instead of at the next
    resume."""
    plan_tasks: int = 30
    """Maximum tasks of a plan that an agent proposes; a longer plan is returned to it once."""
    recovery: Recovery = "settle"
    """Action for interrupted work when the server starts: `settle` suspends it and starts nothing; `continue` also
    resumes the work that was under way when the server died, with the server's own variables."""
