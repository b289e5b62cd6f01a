"""What the api agent remembers, whenever its process ended."""

import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from segue.drivers.api.conversation_files import (
    INTERRUPTED,
    ConversationDamaged,
    ConversationFile,
    ConversationFiles,
    ConversationHeld,
    home,
)


class Borrowed(ConversationFiles):
    """Knows what it gave away."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.given: list[ConversationFile] = []

    def begin(self, directory: str) -> ConversationFile:
        self.given.append(super().begin(directory))
        return self.given[-1]

    def find(self, token: str, *, hold: bool) -> ConversationFile | None:
        if (found := super().find(token, hold=hold)) is not None:
            self.given.append(found)
        return found


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ConversationFiles]:
    memory = Borrowed(tmp_path)
    yield memory
    for history in memory.given:
        history.close()


def prompt(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content=[text])])


def calls(*names: str) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool_name="shell", args="{}", tool_call_id=name) for name in names])


def file_of(memory: ConversationFiles, history: ConversationFile) -> Path:
    return memory._path(history.token)


def reopened(memory: ConversationFiles, history: ConversationFile) -> ConversationFile:
    """As the next process has it, when this one is gone."""
    history.close()
    found = memory.find(history.token, hold=True)
    assert found is not None
    return found


def results(messages: list[ModelMessage]) -> list[tuple[str, object]]:
    parts = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    return [(part.tool_call_id, part.content) for part in parts]


def test_a_conversation_comes_back_as_it_was(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.choose("openai:gpt-5")
    picture = BinaryContent(data=b"\x89PNG", media_type="image/png")
    history.add(ModelRequest(parts=[UserPromptPart(content=["look at this", picture])]))
    history.add(ModelResponse(parts=[TextPart(content="A picture — 🌍")], model_name="gpt-5"))
    again = reopened(memory, history)
    assert again.messages() == history.messages()
    assert (again.model, again.directory, again.title) == ("openai:gpt-5", "/work", "look at this")


def test_wherever_the_file_is_cut_off_the_conversation_goes_on(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    for message in (prompt("one"), calls("a", "b"), prompt("two")):
        history.add(message)
    file, whole = file_of(memory, history), history.messages()
    content = file.read_bytes()
    for end in range(content.index(b"\n") + 1, len(content) + 1):
        file.write_bytes(content[:end])
        cut = reopened(memory, history)
        known = cut.messages()
        assert known == whole[: len(known)]
        cut.add(prompt("go on"))
        again = reopened(memory, cut)
        assert again.messages()[:-1] == known
        again.close()


def test_a_call_without_a_result_gets_one_that_says_so(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.add(calls("a", "b", "c"))
    history.answer(history.open_calls()[0], "done", failed=False)
    again = reopened(memory, history)
    assert [call.tool_call_id for call in again.close_calls(INTERRUPTED)] == ["b", "c"]
    assert again.open_calls() == again.close_calls(INTERRUPTED) == []
    expected = [("a", "done"), ("b", INTERRUPTED), ("c", INTERRUPTED)]
    assert results(reopened(memory, again).messages()) == expected


def test_the_results_of_one_answer_are_one_message_and_a_prompt_is_another(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.add(calls("a", "b"))
    history.close_calls("done")
    history.add(prompt("go on"))
    assert [len(message.parts) for message in history.messages()] == [2, 2, 1]


def test_a_conversation_is_open_in_one_process_and_read_by_all(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.add(prompt("one"))
    with pytest.raises(ConversationHeld, match=f"The conversation {history.token} is open in another process"):
        memory.find(history.token, hold=True)
    read = memory.find(history.token, hold=False)
    assert read is not None and read.messages() == history.messages()
    assert [each.token for each in memory.all("/work")] == [history.token]
    with pytest.raises(ValueError, match="is not held"):
        read.add(prompt("two"))
    history.close()
    reopened(memory, history).add(prompt("two"))


def test_a_line_that_cannot_be_read_is_not_passed_over(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.add(prompt("one"))
    file = file_of(memory, history)
    for broken in (b"{]\n", b'{"message": {"kind": "request"}}\n'):
        file.write_bytes(broken + file.read_bytes())
        with pytest.raises(ConversationDamaged, match="is damaged"):
            memory.find(history.token, hold=False)
    assert list(memory.all("/work")) == []


@pytest.mark.parametrize("token", ["nobody-knows-me", "../home", "", "a/b", "a\0b"])
def test_a_token_that_names_no_conversation_finds_none(memory: ConversationFiles, token: str) -> None:
    assert memory.find(token, hold=True) is None


def test_conversations_are_listed_by_directory(memory: ConversationFiles, tmp_path: Path) -> None:
    here = memory.begin(str(tmp_path))
    memory.begin("/elsewhere")
    (tmp_path / "link").symlink_to(tmp_path)
    assert [each.token for each in memory.all(str(tmp_path / "link"))] == [here.token]


def test_what_a_copy_learns_stays_in_the_copy(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.add(prompt("one"))
    history.choose("openai:gpt-5")
    copy = memory.copy(history, "/work")
    copy.add(prompt("two"))
    assert copy.model == "openai:gpt-5"
    assert [len(each.messages()) for each in (reopened(memory, copy), reopened(memory, history))] == [2, 1]


def test_a_copy_up_to_a_place_ends_there_whatever_was_said_later(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    history.add(prompt("one"))
    history.add(calls("a", "b"))
    for call in history.open_calls():
        history.answer(call, "done", failed=False)
    history.add(ModelResponse(parts=[TextPart(content="Done.")]))
    place = history.length
    history.add(prompt("two"))
    copy = memory.copy(reopened(memory, history), "/work", place)
    assert reopened(memory, copy).messages() == history.messages()[:-1]
    assert (place, copy.length) == (5, 4)


def test_only_its_owner_may_read_a_conversation(memory: ConversationFiles) -> None:
    file = file_of(memory, memory.begin("/work"))
    assert [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)] == [0o600, 0o700]


def test_what_was_spent_is_known_only_if_every_price_is(memory: ConversationFiles) -> None:
    history = memory.begin("/work")
    answer = ModelResponse(
        parts=[TextPart(content="Hi.")],
        model_name="gpt-5",
        provider_name="openai",
        usage=RequestUsage(input_tokens=1000, output_tokens=100),
    )
    history.add(answer)
    once = answer.cost().total_price
    assert once > Decimal(0) and history.spent() == pytest.approx(float(once))
    history.add(answer)
    assert history.spent() == pytest.approx(2 * float(once))
    history = reopened(memory, history)
    assert history.spent() == pytest.approx(2 * float(once))
    history.add(ModelResponse(parts=[TextPart(content="Hi.")], model_name="nobody-sells-this", provider_name="openai"))
    assert history.spent() is None


def test_conversations_are_kept_where_the_user_keeps_data() -> None:
    assert home({"HOME": "/home/me"}) == Path("/home/me/.local/share/segue-api")
    assert home({"HOME": "/home/me", "XDG_DATA_HOME": "/data"}) == Path("/data/segue-api")
    assert home({"HOME": "/home/me", "SEGUE_API_HOME": "/mine"}) == Path("/mine")
