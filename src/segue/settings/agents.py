"""Built-in agents."""

import sys
from collections.abc import Mapping

from segue.model.agents import AgentConfiguration
from segue.model.status import Permissions

AUGGIE_ASKS = (
    *("save-file", "str-replace-editor", "apply_patch", "remove-files"),
    *("launch-process", "write-process", "kill-process", "web-fetch"),
    *("github-api", "linear", "jira", "confluence", "notion", "supabase", "glean"),
)
"""Tools of Auggie; by default it asks for no permission, so a rule must name each of them."""

BUILT_IN_AGENTS: Mapping[str, AgentConfiguration] = {
    agent.name: agent
    for agent in (
        AgentConfiguration(
            name="rehearsal",
            command=(sys.executable, "-m", "segue.testing.rehearsal"),
            environment=("SEGUE_REHEARSAL_*",),
            native_fork=True,
        ),
        AgentConfiguration(
            name="claude",
            command=("claude-agent-acp",),
            environment=("ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            native_fork=True,
            compacts=True,
            install="npm install -g @agentclientprotocol/claude-agent-acp",
            login="claude-agent-acp --cli auth login",
        ),
        AgentConfiguration(
            name="codex",
            command=("codex-acp",),
            environment=("OPENAI_*", "CODEX_*"),
            native_fork=True,
            compacts=True,
            # In its default mode a model decides about actions outside its sandbox, not the user.
            modes={
                Permissions.ASK: "workspace-write",
                Permissions.EDITS: "workspace-write",
                Permissions.ALL: "workspace-write",
                Permissions.READ_ONLY: "read-only",
            },
            install="npm install -g @agentclientprotocol/codex-acp",
            login="codex-acp login",
        ),
        # Observed: a copy of its conversation stays in the directory of the original.
        AgentConfiguration(
            name="opencode",
            command=("opencode", "acp"),
            environment=("OPENCODE_*",),
            compacts=True,
            install="npm install -g opencode-ai",
            login="opencode auth login",
        ),
        AgentConfiguration(
            name="copilot",
            command=("copilot", "--acp"),
            environment=("COPILOT_*", "GH_*", "GITHUB_*"),
            compacts=True,
            counts_since_start=True,
            install="npm install -g @github/copilot",
            login="copilot login",
        ),
        # Observed: loading a session over ACP deletes it.
        AgentConfiguration(
            name="gemini",
            command=("gemini", "--acp"),
            environment=("GEMINI_*", "GOOGLE_*"),
            native_resume=False,
            compacts=True,
            install="npm install -g @google/gemini-cli",
            login="gemini # and then /auth",
        ),
        AgentConfiguration(
            name="auggie",
            command=(
                "auggie",
                "--acp",
                *(word for tool in AUGGIE_ASKS for word in ("--permission", f"{tool}:ask-user")),
            ),
            environment=("AUGMENT_*",),
            modes={Permissions.READ_ONLY: "ask"},
            compacts=True,
            install="npm install -g @augmentcode/auggie",
            login="auggie login",
        ),
        AgentConfiguration(
            name="amp",
            command=(sys.executable, "-P", "-m", "segue.drivers.amp"),
            driver="amp",
            environment=("AMP_*",),
            needs="amp",
            compacts=True,
            install="npm install -g @ampcode/cli",
            login="amp login",
        ),
        AgentConfiguration(
            name="api",
            # Without -P this process, which has the user's keys, would import modules of the worktree.
            command=(sys.executable, "-P", "-m", "segue.drivers.api"),
            driver="api",
            environment=(
                "SEGUE_API_*",
                *("OPENAI_*", "ANTHROPIC_*", "GOOGLE_*", "GEMINI_*", "MISTRAL_*", "GROQ_*", "XAI_*", "DEEPSEEK_*"),
                *("OPENROUTER_*", "OLLAMA_*"),
            ),
            native_fork=True,
            install="pip install 'segue[api]'",
            login="export OPENAI_API_KEY=… # or your vendor's own variable",
        ),
        AgentConfiguration(
            name="claude-sdk",
            command=(sys.executable, "-P", "-m", "segue.drivers.claude"),
            driver="claude",
            environment=("SEGUE_CLAUDE_*", "ANTHROPIC_*", "CLAUDE_*", "DISABLE_AUTOUPDATER"),
            native_fork=True,
            compacts=True,
            keep_conversations=True,
            install="pip install 'segue[claude]'",
            login="export ANTHROPIC_API_KEY=… # or log in with the program claude",
        ),
        AgentConfiguration(
            name="langgraph",
            command=(sys.executable, "-P", "-m", "segue.drivers.langgraph"),
            driver="langgraph",
            environment=(
                *("SEGUE_LANGGRAPH_*", "PYTHONPATH"),
                *("OPENAI_*", "ANTHROPIC_*", "GOOGLE_*", "GEMINI_*", "MISTRAL_*", "GROQ_*", "XAI_*", "DEEPSEEK_*"),
                *("OPENROUTER_*", "OLLAMA_*"),
            ),
            native_fork=True,
            # A graph handles every prompt alike, and its nodes run without a permission request.
            plans=False,
            install="pip install 'segue[langgraph]'",
        ),
    )
}
