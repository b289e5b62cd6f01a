"""Conformance suite: the checks that every driver must pass, whatever agent it starts.

The author of a driver writes a `Candidate`: the driver, and how to start its agent so that it does what a check wants
to see. Each of `CHECKS` is then run on it, with or without a test runner; docs/how-to/write-a-driver.md shows how.
`acts` is what a check can ask of an agent, `candidate` who is examined, `checks` the examination.
"""

from segue.testing.conformance.acts import Act, Fail, Hang, Line, Mistake, Say, SayLate, Use, Write
from segue.testing.conformance.candidate import Candidate, Check
from segue.testing.conformance.checks import CHECKS

__all__ = [
    "CHECKS",
    "Act",
    "Candidate",
    "Check",
    "Fail",
    "Hang",
    "Line",
    "Mistake",
    "Say",
    "SayLate",
    "Use",
    "Write",
]
