"""Permission requests of the agent without an answer."""

import asyncio
from dataclasses import dataclass

from segue.model import errors
from segue.model.events import PermissionOption
from segue.model.ids import RequestId

ALLOW = PermissionOption(id="allow", name="Allow", kind="allow_once")
REJECT = PermissionOption(id="reject", name="Reject", kind="reject_once")


@dataclass(frozen=True, slots=True)
class _Question:
    options: tuple[PermissionOption, ...]
    answer: "asyncio.Future[str | None]"

    def settle(self, option: str | None) -> None:
        """Set the answer unless there is one already."""
        if not self.answer.done():
            self.answer.set_result(option)


class OpenQuestions:
    """Open questions, each answered once."""

    def __init__(self) -> None:
        self._open: dict[RequestId, _Question] = {}

    def put(self, request_id: RequestId, options: tuple[PermissionOption, ...]) -> None:
        """Open a question with these options."""
        self._open[request_id] = _Question(options, asyncio.get_running_loop().create_future())

    async def wait(self, request_id: RequestId) -> PermissionOption | None:
        """Wait for the chosen option; None if the question was refused as a whole."""
        question = self._open[request_id]
        try:
            chosen = await question.answer
        finally:
            del self._open[request_id]
        return next((option for option in question.options if option.id == chosen), None)

    def answer(self, request_id: RequestId, option: str | None) -> None:
        """Answer a question with an option (None refuses); raise NothingToAnswer if closed, BadInput for no option of
        it."""
        question = self._open.get(request_id)
        if question is None or question.answer.done():
            raise errors.NothingToAnswer("This question is not open any more.")
        if option is not None and option not in {each.id for each in question.options}:
            raise errors.BadInput(f"{option!r} is no answer to this question.")
        question.settle(option)

    def refuse_all(self) -> None:
        """Refuse all open questions."""
        for question in tuple(self._open.values()):
            question.settle(None)

    def drop_all(self) -> None:
        """Cancel all questions, when no agent is left to receive an answer."""
        for question in self._open.values():
            question.answer.cancel()
