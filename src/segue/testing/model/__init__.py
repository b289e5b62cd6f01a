"""A scripted model on loopback, so that real agent programs run with no network and no key.

One server speaks the vendors' dialects: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini. `script`
holds its answers, `dialects` encode them for each vendor, and `log` keeps every request, so that a test can prove which
context an agent sent. docs/reference/scripted-model.md describes it.
"""

from segue.testing.model.answers import Call, Failure, Rule, Say, Script, Shell, Step, Usage, Write, rule
from segue.testing.model.exchange import Message, ToolCall, ToolResult
from segue.testing.model.log import LoggedRequest, read_log
from segue.testing.model.server import ScriptedModel, scripted_model

__all__ = [
    "Call",
    "Failure",
    "LoggedRequest",
    "Message",
    "Rule",
    "Say",
    "Script",
    "ScriptedModel",
    "Shell",
    "Step",
    "ToolCall",
    "ToolResult",
    "Usage",
    "Write",
    "read_log",
    "rule",
    "scripted_model",
]
