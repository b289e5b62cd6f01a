"""Claude Code's session file: a JSON line for each message of the user or the agent, and lines of its own business."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from segue.drivers.native.injected import own_words
from segue.drivers.native.lines import JsonObject, Tally, is_object, number_of, objects_of, string_of, text_of
from segue.model.events import (
    AgentMessage,
    AgentThought,
    TodoEntry,
    TodoUpdated,
    ToolCalled,
    ToolFinished,
    ToolProgressed,
    UsageReported,
    WorkLocation,
)
from segue.model.naming import words
from segue.model.transcript import Said, Summarised, UserSaid

# The protocol's kinds of tool, by the names that Claude Code has for its own.
TOOLS = {
    "Bash": "execute",
    "BashOutput": "execute",
    "Read": "read",
    "NotebookRead": "read",
    "LS": "search",
    "Glob": "search",
    "Grep": "search",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "Task": "delegate",
    "Agent": "delegate",
    "AskUserQuestion": "ask",
    "ExitPlanMode": "plan",
}
PATHS = ("file_path", "notebook_path", "path")
OWN_BUSINESS = words(
    "queue-operation attachment api-request-shape api-request-blob api-request last-prompt tools-used "
    "atis-latch system summary file-history-snapshot progress mode permission-mode custom-title agent-name tag "
    "ai-title pr-link cost-state"
)

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_REFUSAL = re.compile(r"(?:the user said|the user provided the following reason[^:]*):\s*(.+)", re.DOTALL)
_CONTINUED = "This session is being continued from a previous conversation"
_TASK_NUMBER = re.compile(r"Task #(\d+) created")
_IN_BACKGROUND = re.compile(r"\s*Command running in background with ID: (\S+?)\.?(?:\s|$)")
_LAUNCHED = re.compile(r"\s*Async agent launched\b.*?(?:agentId: (\w+)|\Z)", re.DOTALL)
_POLLED = re.compile(r"<status>(\w+)</status>.*?(?:<exit_code>(-?\d+)</exit_code>|\Z)", re.DOTALL)
_NOTIFIED = re.compile(r"<task-notification>\s*<task-id>(\S*?)</task-id>.*?<status>(\w+)</status>", re.DOTALL)
_EXITED = re.compile(r"exit code (-?\d+)")
_REPORT = re.compile(r"<result>(.*?)(?:</result>|\Z)", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
POLLS = frozenset({"BashOutput", "TaskOutput", "AgentOutputTool"})


def knows(line: JsonObject) -> bool:
    """Return True if a line is a message of Claude Code."""
    return line.get("type") in ("user", "assistant") and is_object(line.get("message"))


def tell(lines: Iterator[tuple[int, JsonObject]], tally: Tally) -> Iterator[tuple[int, str, Said]]:
    """Yield the number, the time and the content of each line of the conversation; the tally counts unknown ones."""
    teller = _Teller()
    for number, line in lines:
        at = string_of(line.get("timestamp"))
        if not knows(line):
            tally.unknown += string_of(line.get("type")) not in OWN_BUSINESS
            for said in teller.queue(line):
                yield number, at, said
            continue
        # A resumed conversation begins with the lines of the one before, under that one's name.
        tally.conversation = string_of(line.get("sessionId")) or tally.conversation
        if not (line.get("isSidechain") or line.get("isMeta") or teller.has_heard(line)):
            for said in teller.tell(line):
                yield number, at, said


@dataclass(slots=True)
class _Teller:
    """State between the lines of a file."""

    seen: set[str] = field(default_factory=set[str])
    standing: WorkLocation = field(default_factory=WorkLocation)
    paid: str = ""
    """The message whose usage was reported last; its other blocks stand on lines of their own and repeat it."""
    queued: list[str] = field(default_factory=list[str])
    """Prompts typed during a turn that the agent has not taken up yet."""
    taken: set[str] = field(default_factory=set[str])
    tasks: dict[str, TodoEntry] = field(default_factory=dict[str, TodoEntry])
    tasks_made: int = 0
    creations: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that created a task, with the number that was assumed until the program named one."""
    running: dict[str, str] = field(default_factory=dict[str, str])
    """Commands in the background, by the client's own id, and the calls that began them."""
    polls: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that only look after such a command, and the call that began it."""

    def has_heard(self, line: JsonObject) -> bool:
        """Return True if a line was read before: a resumed conversation repeats the lines of the one before."""
        identity = string_of(line.get("uuid"))
        if not identity:
            return False
        heard = identity in self.seen
        self.seen.add(identity)
        return heard

    def queue(self, line: JsonObject) -> Iterator[Said]:
        """Yield a queued prompt that was taken up within a turn, or an attached file; other queue lines only change the
        queue."""
        attached = line.get("attachment")
        if is_object(attached):
            match attached.get("type"):
                case "queued_command":
                    yield from self._taken(string_of(attached.get("prompt")))
                case "file" | "directory":
                    shown = string_of(attached.get("displayPath")) or string_of(attached.get("filename"))
                    yield UserSaid(text=f"[attached {attached['type']}: {shown}]")
                case _:
                    return
            return
        match line.get("operation"):
            case "enqueue":
                self.queued.append(string_of(line.get("content")))
            case "dequeue" if self.queued:
                self.queued.pop(0)
            case "remove" if self.queued:
                yield from self._taken(self.queued.pop(0))
            case _:
                return

    def _taken(self, text: str) -> Iterator[Said]:
        """Yield a queued prompt once."""
        if text.strip() and text not in self.taken:
            self.taken.add(text)
            yield from self._typed(text)

    def tell(self, line: JsonObject) -> Iterator[Said]:
        """Yield the content of one line of the conversation."""
        yield from self._stand(line)
        message: JsonObject = line["message"]
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects_of(content)
        if line["type"] == "user":
            for block in blocks:
                yield from self._user(block, bool(line.get("isCompactSummary")))
            return
        for block in blocks:
            yield from self._agent(block)
        yield from self._usage(message)

    def _stand(self, line: JsonObject) -> Iterator[Said]:
        """Yield the directory and the branch if they changed."""
        now = WorkLocation(
            directory=self.standing.directory or string_of(line.get("cwd")) or None,
            branch=string_of(line.get("gitBranch")) or self.standing.branch,
        )
        if now != self.standing:
            self.standing = now
            yield now

    def _user(self, block: JsonObject, summary: bool) -> Iterator[Said]:
        """Yield a user's block: a tool result, a picture, a summary or typed text."""
        if block.get("type") == "tool_result":
            yield from self._result(block)
            return
        if block.get("type") == "image":
            yield UserSaid(text="[attached picture]")
            return
        text = _REMINDER.sub("", string_of(block.get("text")))
        if summary or text.startswith(_CONTINUED):
            yield Summarised(text=text)
        else:
            yield from self._typed(text)

    def _typed(self, text: str) -> Iterator[Said]:
        """Yield what a person typed, or the end of a background call that the client reports there."""
        if noted := _NOTIFIED.search(text):
            yield from self._notified(self.running.get(noted[1], ""), noted[2], text)
        elif words := own_words(text):
            yield UserSaid(text=words)

    def _notified(self, call_id: str, status: str, text: str) -> Iterator[Said]:
        """Yield the end of a background call with its report as output; nothing if it goes on or is unknown."""
        report, summary = _REPORT.search(text), _SUMMARY.search(text)
        said = summary[1] if summary else ""
        code = _EXITED.search(said)
        failed = status in ("failed", "killed", "error") or (code is not None and code[1] != "0")
        if not call_id or (report is None and code is None and not failed):
            return
        output = html.unescape(report[1]).strip() if report else said
        yield ToolFinished(call_id=call_id, status="failed" if failed else "completed", output=output)

    def _result(self, block: JsonObject) -> Iterator[Said]:
        """Yield the result of a call, progress if it runs in the background, and the reason of a refusal."""
        call_id = string_of(block.get("tool_use_id"))
        output = _REMINDER.sub("", text_of(block.get("content")))
        if begun := _IN_BACKGROUND.match(output):
            self.running[begun[1]] = call_id
            yield ToolProgressed(call_id=call_id, output=output)
            return
        if launched := _LAUNCHED.match(output):
            self.running[launched[1] or ""] = call_id
            yield ToolProgressed(call_id=call_id, output="")
            return
        if call_id in self.polls:
            yield from self._polled(self.polls.pop(call_id), output)
            return
        failed = bool(block.get("is_error")) or bool(re.match(r"\s*(?:Error: )?Exit code [1-9]", output))
        if call_id in self.creations and (number := _TASK_NUMBER.search(output)):
            self._renumber(self.creations.pop(call_id), number[1])
        yield ToolFinished(call_id=call_id, status="failed" if failed else "completed", output=output)
        if failed and (reason := _REFUSAL.search(output)):
            yield UserSaid(text=reason[1].strip())

    def _polled(self, call_id: str, output: str) -> Iterator[Said]:
        """Yield the output of a background command as progress, or as its end if the poll shows its exit code."""
        state = _POLLED.search(output)
        if state is None or state[1] == "running" or state[2] is None:
            yield ToolProgressed(call_id=call_id, output=output)
        else:
            yield ToolFinished(call_id=call_id, status="failed" if state[2] != "0" else "completed", output=output)

    def _agent(self, block: JsonObject) -> Iterator[Said]:
        """Yield an agent's block: text, a thought or a call."""
        match block.get("type"):
            case "text" if text := string_of(block.get("text")).strip():
                yield AgentMessage(text=text)
            case "thinking" if text := string_of(block.get("thinking")).strip():
                yield AgentThought(text=text)
            case "tool_use":
                yield from self._call(block)
            case _:
                return

    def _call(self, block: JsonObject) -> Iterator[Said]:
        """Yield a call; to-do tools give the to-do list, and polls of background commands give nothing."""
        name, call_id = string_of(block.get("name")), string_of(block.get("id"))
        given = block.get("input")
        arguments: JsonObject = given if is_object(given) else {}
        match name:
            case "TodoWrite":
                self.tasks.clear()
                yield TodoUpdated(entries=tuple(_entry(each) for each in objects_of(arguments.get("todos"))))
            case "TaskCreate":
                self.tasks_made += 1
                number = str(self.tasks_made)
                self.creations[call_id] = number
                self.tasks[number] = TodoEntry(content=string_of(arguments.get("subject")), status="pending")
                yield TodoUpdated(entries=tuple(self.tasks.values()))
            case "TaskUpdate":
                yield from self._task_update(arguments)
            case _ if name in POLLS and (begun := self.running.get(_task_id(arguments))):
                self.polls[call_id] = begun
            case _:
                paths = tuple(path for key in PATHS if (path := string_of(arguments.get(key))))
                yield ToolCalled(
                    call_id=call_id, title=name, tool=TOOLS.get(name, "other"), input=arguments, paths=paths
                )

    def _task_update(self, arguments: JsonObject) -> Iterator[Said]:
        """Yield the to-do list after a change of one task; nothing for an unknown task."""
        number, status = str(arguments.get("taskId")), string_of(arguments.get("status"))
        if number not in self.tasks or not status:
            return
        if status == "deleted":
            del self.tasks[number]
        else:
            self.tasks[number] = TodoEntry(content=self.tasks[number].content, status=status)
        yield TodoUpdated(entries=tuple(self.tasks.values()))

    def _renumber(self, before: str, after: str) -> None:
        """Replace the assumed number of a task by the one that the program named."""
        self.tasks = {(after if key == before else key): task for key, task in self.tasks.items()}

    def _usage(self, message: JsonObject) -> Iterator[Said]:
        """Yield the tokens of a message once, though it may take several lines."""
        usage, identity = message.get("usage"), string_of(message.get("id"))
        if not is_object(usage) or (identity and identity == self.paid):
            return
        self.paid = identity
        new = number_of(usage.get("input_tokens")) or 0
        cached = number_of(usage.get("cache_read_input_tokens")) or 0
        written = number_of(usage.get("cache_creation_input_tokens")) or 0
        yield UsageReported(
            context_tokens=new + cached + written or None,
            input_tokens=new + written,
            output_tokens=number_of(usage.get("output_tokens")),
            cached_tokens=cached,
            model=string_of(message.get("model")) or None,
        )


def _entry(todo: JsonObject) -> TodoEntry:
    """Return a to-do entry; one without a status is pending."""
    content = string_of(todo.get("content")) or string_of(todo.get("description"))
    return TodoEntry(content=content, status=string_of(todo.get("status")) or "pending")


def _task_id(arguments: JsonObject) -> str:
    """Return the id of the background command that a poll is about, or an empty text."""
    return next((each for key in ("bash_id", "task_id", "shell_id") if (each := string_of(arguments.get(key)))), "")
