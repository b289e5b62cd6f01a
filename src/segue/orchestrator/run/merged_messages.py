"""What people said while nobody listened, on its way to the agent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from segue.model.events import PromptQueued, PromptSent, Record
from segue.model.ids import PromptId


@dataclass(frozen=True, slots=True)
class Said:
    """One prompt for the agent, which knows it by the id of the last message in it."""

    prompt: PromptQueued
    parts: tuple[PromptId, ...] = ()
    """The messages before that, whose words and pictures are in it too."""


def together(messages: Sequence[PromptQueued]) -> Said:
    """In the order in which they were said."""
    *before, last = messages
    text = "\n\n".join(each.text for each in messages)
    pictures = tuple(picture for each in messages for picture in each.pictures)
    return Said(replace(last, text=text, pictures=pictures), tuple(each.prompt_id for each in before))


def parts_of(prompt_id: PromptId, sent: Sequence[Record]) -> tuple[PromptId, ...]:
    """What went out as a part of this prompt, as the journal has it."""
    events = (record.event for record in sent)
    return tuple(each.prompt_id for each in events if isinstance(each, PromptSent) and each.part_of == prompt_id)
