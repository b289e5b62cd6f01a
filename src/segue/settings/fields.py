"""Every setting of the server: a field, its default and one sentence."""

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
"""What can be set of the capacity ladder, and what it is else: its rungs as shares of the window, numbers of tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(WorkSettings):
    """What can be set in `segue.toml` of the data directory, or by a variable `SEGUE_<FIELD>`, which wins.

    What it says of the work is the user's own wish for all repositories.
    """

    host: str = "127.0.0.1"
    """The address the server listens on."""
    port: int = 0
    """The port the server listens on; 0 takes any free one."""
    allow_remote: bool = False
    """Whether `host` may be an address that other machines can reach."""
    agents: Mapping[str, AgentConfiguration] = field(default_factory=lambda: BUILT_IN_AGENTS)
    """The agents by name; your own join the built-in ones."""
    setup_watchdog: float = 600.0
    """Seconds after which `setup` counts as hanging, and is ended."""
    start_watchdog: float = 120.0
    """Seconds after which a session that does not come up counts as hanging."""
    silence_watchdog: float = 3600.0
    """Seconds without a sign of life from an agent at work after which it counts as hanging."""
    handshake_timeout: float = 60.0
    """Seconds an agent has to answer when it is started."""
    permission_timeout: float = 3600.0
    """Seconds after which an unanswered permission is denied."""
    pause_force_after: float = 300.0
    """Seconds a pause waits for the end of the task before it interrupts the agent."""
    sweep_interval: float = 60.0
    """Seconds between two looks for work that lost its agent; 300 at most."""
    talk_linger: float = 60.0
    """Seconds an agent that was only talked to is kept for the next word."""
    agents_at_once: int = 64
    """Workflows whose agents may be up at the same time; other work waits, and begins in the order in which it was
    asked for. Who reviews or advises works in the place of the agent that waits for it."""
    session_idle: float = 1800.0
    """Seconds without a word after which a session that waits for one, and has no agent any more, is suspended."""
    session_ttl: float = 2_592_000.0
    """Seconds after which a session that nobody came back to expires; the files of such sessions, and of those that
    ended so long ago, are moved to `archive/`."""
    delivery_wait: float = 90.0
    """Seconds that somebody who says something waits for the agent to get it."""
    messages_waiting: int = 10
    """Messages that may wait for one agent; at least 1."""
    merge_messages: bool = True
    """Whether messages that waited for the agent reach it as one prompt; else each has a turn of its own."""
    stall_notice: float = 300.0
    """Seconds of an agent's silence after which that is said, once for each prompt."""
    stall_look: float = 60.0
    """Seconds between two looks for that."""
    retry_attempts: int = 3
    """How often a step is tried before the fixer, or a person, is asked; with 1, a person is asked at once."""
    retry_first: float = 1.0
    """Seconds that the first retry waits, and by chance up to a half more; each further one waits twice as long."""
    retry_longest: float = 60.0
    """Seconds that a retry waits at most."""
    quick_failures: int = 3
    """After so many failures of an agent in a row within `quick_within`, whichever steps they were, a person is asked,
    and not the fixer."""
    quick_within: float = 60.0
    """Seconds, for `quick_failures`."""
    fixer_time: float = 600.0
    """Seconds that the fixer has for its advice."""
    review_time: float = 600.0
    """Seconds that each reviewer of a task has."""
    capacity: Mapping[str, float] = field(default_factory=dict[str, float])
    """What happens as an agent's context fills; see below."""
    context_budget: int = 4000
    """Tokens that a compiled resume context may take; at least 100."""
    context_issue: int = 500
    """Characters of the issue's description that a compiled context tells."""
    context_comments: int = 3
    """Comments of each review that a compiled context tells."""
    history_message: int = 2000
    """Characters of a message that are told where a conversation is told word for word."""
    history_result: int = 500
    """Characters of a tool's result that are told there."""
    history_whole: int = 24_000
    """Characters that are told there in all; what is older is left out."""
    extraction: Extractor = "rules"
    """Who tells decisions and errors for a snapshot: `rules`, which ask nobody, or a `model` or the `agent` besides."""
    extraction_model: str | None = None
    """The model to ask, as `provider:name`; its key stands in the environment and nowhere else."""
    extraction_timeout: float = 60.0
    """Seconds the model or the agent has to answer; after that the rules' findings stand alone."""
    extraction_messages: int = 50
    """How many of the latest messages are read for that."""
    extraction_base_url: str | None = None
    """Where the model is asked, if not at its provider's own address."""
    container_engine: str = ""
    """The socket of the engine that runs agents in containers; without it `DOCKER_HOST` is used, and then the places
    where Docker and Podman have theirs."""
    reattach_at_start: bool = False
    """Whether agents that went on in their containers while there was no server are joined again when it starts, and
    not only when somebody resumes the work."""
    plan_tasks: int = 30
    """Tasks that a plan may have which an agent proposes; one with more is sent back to it once."""
    recovery: Recovery = "settle"
    """What happens to interrupted work when the server starts: `settle` brings it to rest and starts nothing;
    `continue` then goes on with what was at work when the server died, with the server's own variables."""
