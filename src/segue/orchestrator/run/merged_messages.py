"""People's messages that waited, merged into one prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from segue.model.events import PromptQueued, PromptSent, Record
from segue.model.ids import PromptId


@dataclass(frozen=True, slots=True)
class Said:
    """One prompt for the agent, which knows it by the id of the last message in it."""

    prompt: PromptQueued
    parts: tuple[PromptId, ...] = ()
    """Earlier messages, whose text and pictures are in the prompt too."""


def together(messages: Sequence[PromptQueued]) -> Said:
    """Merge messages in the order in which they were sent."""
    *before, last = messages
    text = "\n\n".join(each.text for each in messages)
    pictures = tuple(picture for each in messages for picture in each.pictures)
    return Said(replace(last, text=text, pictures=pictures), tuple(each.prompt_id for each in before))


def parts_of(prompt_id: PromptId, sent: Sequence[Record]) -> tuple[PromptId, ...]:
    """Return the messages that were sent as parts of this prompt, according to the journal."""
    events = (record.event for record in sent)
    return tuple(each.prompt_id for each in events if isinstance(each, PromptSent) and each.part_of == prompt_id)
