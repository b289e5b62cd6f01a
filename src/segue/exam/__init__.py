"""The exam: is a context true to the work, and does it hold all that a successor must know?

The questions are made from the raw record, by code that shares nothing with the readers, the facts and the compiler.
Falsehoods come first: anything called passed or worked that is not, a commit that does not exist, a quotation that the
user never wrote. This page is the whole interface: read the record, grade a text.
"""

from segue.exam.entries import entries_of_file, entries_of_journal
from segue.exam.evidence import Evidence, evidence_of
from segue.exam.grading import Falsehood, Grade, grade
from segue.exam.questions import Question, questions_of

__all__ = [
    "Evidence",
    "Falsehood",
    "Grade",
    "Question",
    "entries_of_file",
    "entries_of_journal",
    "evidence_of",
    "grade",
    "questions_of",
]  # fmt: skip
