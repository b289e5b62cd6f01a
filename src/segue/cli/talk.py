"""`segue prompt`: send a message to an agent, show how it is brought back for it, and print its answer as it comes."""

from base64 import b64encode
from pathlib import Path
from typing import Any

from segue import client
from segue.cli import render, words
from segue.cli.command import environment
from segue.cli.follow import LONG_POLL, events
from segue.cli.issue import read_file
from segue.cli.output import Output, block, plain, reason
from segue.model.errors import SegueError, ServerError
from segue.model.pictures import LARGEST

PATIENCE = 150.0
"""Seconds; the server answers as soon as the agent has the message, or when it has waited for a minute and a half."""


AT_WORK = "The agent is at work; waiting for the end of what it does now."
TOLD_LATER = "The agent is at work; it is told at the end of what it does now."
PAUSES = "A pause was asked for, and comes first; the agent gets it when the work goes on."
INTERRUPTED = "The agent was at work: it is interrupted, told, and goes on after."


class NotDelivered(SegueError):
    """The agent did not get it."""


class NotAnswered(SegueError):
    """The agent did not answer to the end."""


class AnswerText:
    """Text of an agent's answer, printed in full as it comes; everything else is a line of its own."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._open = False
        self.silent = True

    def text(self, text: str) -> None:
        """Print a piece of the answer in full."""
        self.silent = False
        self._open = not text.endswith("\n")
        self._out.write(block(text))

    def line(self, text: str) -> None:
        """Print a line after the end of the current one."""
        self.end()
        self._out.say(text)

    def end(self) -> None:
        """End the current line if it is open."""
        if self._open:
            self._out.say()
            self._open = False


def picture(file: Path) -> dict[str, str]:
    """Read a picture file into the form that the server takes, its name and base64; raise BadInput if it is too
    large."""
    return {"name": file.name, "data": b64encode(read_file(file, LARGEST)).decode()}


def say(view: dict[str, Any], text: str, pictures: list[dict[str, str]], detach: bool, now: bool, out: Output) -> None:
    """Send a message to a workflow's agent, and print the answer; raise NotDelivered if the agent did not get it."""
    slug, after = view["slug"], view["head"]
    answers = bool(view["question"] and view["question"]["words"])
    busy = bool(view["status"] == "in_progress" and view["current_task"] and not answers)
    pauses = busy and view["pause_requested"]
    if pauses:
        # Printed at once, since it may be minutes until the server answers.
        out.say(PAUSES)
        for line in words.open_question(view):
            out.say(f"  {line}")
    elif busy and not (now or detach):
        # It is not known yet whether the message is taken.
        out.say(AT_WORK)
    body = {"text": text, "images": pictures, "wait": not detach, "now": now, "environment": environment()}
    try:
        prompted = client.call("POST", f"/api/workflows/{view['id']}/prompt", body, timeout=PATIENCE)
    except KeyboardInterrupt:
        out.say(f"Detached: what you said is with Segue. Watch for the answer with: segue logs --follow {slug}")
        out.result({"status": "detached", "workflow_id": view["id"]})
        return
    out.result(prompted)
    if prompted["status"] == "answered":
        out.say(f"✓ {plain(prompted['reason'])}")
        return
    if prompted.get("interrupted"):
        out.say(INTERRUPTED)
    elif busy and now and prompted["status"] == "sent":
        out.say("The agent was between two turns: nothing was interrupted.")
    if prompted["status"] == "not_delivered":
        _print_return(view, after, out)
        after_all = client.call("GET", f"/api/workflows/{view['id']}")
        kept = "It is kept, and is the first thing the agent gets when it is back."
        parts = (*words.trouble(after_all)[1:], kept if after_all["waiting_messages"] else "")
        hint = "\n  ".join(part for part in parts if part)
        raise NotDelivered(f"The agent did not get it: {reason(prompted['reason'])}", hint=hint)
    if prompted["status"] == "waiting":
        if busy and detach and not (now or pauses):
            out.say(TOLD_LATER)
        elif not (pauses or prompted.get("interrupted")):
            out.say(f"It waits. {prompted['reason']}")
        out.say(f"  Watch for the answer with: segue logs --follow {slug}")
    elif detach:
        _print_return(view, after, out)
        out.say(f"The agent has it. Watch for the answer with: segue logs --follow {slug}")
    else:
        _print_answer(view, prompted["prompt_id"], after, out)


def _print_return(view: dict[str, Any], after: int, out: Output) -> None:
    """Print the events since number `after` that show how the agent is brought back."""
    for record in events(view["id"], after, 0)["events"]:
        text = render.line(record, render.names_of(view), render.RETURN)
        if text is not None:
            out.say(text)


def _print_answer(view: dict[str, Any], prompt_id: str, after: int, out: Output) -> None:
    """Print the agent's answer; raise NotAnswered if it ends early. Ctrl-C ends only the printing."""
    answer = AnswerText(out)
    try:
        end = _until_answered(view, prompt_id, after, answer, out)
    except KeyboardInterrupt:
        answer.line(f"Detached: the agent goes on without you. Watch it with: segue logs --follow {view['slug']}")
        return
    except ServerError as error:
        answer.end()
        error.hint = f"What was said so far is in: segue logs {view['slug']}"
        raise
    answer.end()
    if end["kind"] == "run.ended":
        now = client.call("GET", f"/api/workflows/{view['id']}")
        raise NotAnswered(
            f"The agent did not answer to the end: {reason(end['reason'] or end['outcome'])}",
            hint="\n  ".join(words.trouble(now)[1:]),
        )
    if end["reason"] != "end_turn":
        raise NotAnswered(f"The agent stopped before it was done ({end['reason'].replace('_', ' ')}).")
    if answer.silent:
        out.say("(The agent ended its turn without a word.)")


def _until_answered(
    view: dict[str, Any], prompt_id: str, after: int, answer: AnswerText, out: Output
) -> dict[str, Any]:
    """Print the answer and other events as they come; return the event that ended the turn or the run."""
    sent = False
    names = render.names_of(view)
    while True:
        for record in events(view["id"], after, LONG_POLL)["events"]:
            after, kind, event = record["seq"], record["kind"], record["event"]
            out.result(record)
            if kind == "prompt.sent" and event["prompt_id"] == prompt_id:
                # Other messages may have been sent with it.
                sent, prompt_id = True, event.get("part_of") or prompt_id
            if sent and kind == "agent.message":
                answer.text(event["text"])
            elif (text := render.line(record, names, render.ANSWER if sent else render.RETURN)) is not None:
                answer.line(text)
            if sent and (kind == "run.ended" or (kind == "turn.ended" and event["prompt_id"] == prompt_id)):
                return event
