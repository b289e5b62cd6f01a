"""Decisions and errors read by a model, or by the agent itself: what it is asked, and what of its answer is believed.

The findings by rule are always there first. An answer may enrich them and add to them, and nothing gets in whose words
were not really said. Asking is somebody else's business; nothing here does.
"""

from segue.snapshot.extraction.answer import ExtractionResult, Text, Texts, Unreadable, read_answer, read_object
from segue.snapshot.extraction.merging import enriched
from segue.snapshot.extraction.messages import KINDS, MOST_MESSAGES, Spoken, recent, reports_in, spoken_in
from segue.snapshot.extraction.prompt import INSTRUCTIONS, QUESTION, conversation, repair

__all__ = [
    "INSTRUCTIONS",
    "KINDS",
    "MOST_MESSAGES",
    "QUESTION",
    "ExtractionResult",
    "Spoken",
    "Text",
    "Texts",
    "Unreadable",
    "conversation",
    "enriched",
    "read_answer",
    "read_object",
    "recent",
    "repair",
    "reports_in",
    "spoken_in",
]
