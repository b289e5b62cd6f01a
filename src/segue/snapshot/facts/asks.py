"""The user's messages in order: what each lays down, answers, accepts or takes back."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from segue.model.facts import Ask, Phrase
from segue.snapshot.facts import speech
from segue.snapshot.facts.text import clipped, flattened, sentences, split

LONGEST_ASK = 40_000
LONGEST_PROPOSAL = 420
_ATTACHED = re.compile(r"^\[attached [^\]]+\]$")
_NUMBERED = re.compile(
    r"^\s*(?:[-*]\s*)?(?:\*\*)?(?:option |variant |question )?([a-h]|\d{1,2})[.):]\s*", re.IGNORECASE
)
# What an agreement names: a word in backquotes or quotation marks, an option, a figure with its unit, an identifier.
_NAMED = re.compile(
    r"`([^`\n]{2,60})`|[\"“]([^\"”\n]{2,40})[\"”]|(?<!\S)(--?[a-z][\w-]+)|\b(\w+_\w+|[a-z]+[A-Z]\w+)\b"
    r"|\b(\d[\d_.,]*)(?= ?(?:%|[kKmMgG]?[bB]\b|ms\b|s\b|min|lines?|days?|items?))"
)
_PIECE = re.compile(r"[\w-]{3,}|\d+")
_GIVES_UP = re.compile(
    r"\b(?:no longer|any ?more|forget|(?<!from )scratch|scrap|never ?mind|cancel|call(?:ed)? off|not needed|no need"
    r"|don'?t (?:need|want|bother)|drop(?!-)|abandon"
    r"|ditch|nix|off the table|won'?t (?:be need|need)|do without|live without|moot|shelve|postpone|withdraw"
    r"|take (?:that|it) back|hold off|let'?s not"
    r"|changed (?:my|our) minds?|on second thou?ght|back (?:it )?out|revert|undo|skip|leave .{1,40} out|nicht mehr"
    r"|doch nicht|vergiss|ya no|olvida|oublie)\b"
    r"|やめ|もう(?:必要|いら)|取り消|不再|不用了|取消|취소|필요 ?없",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hi|hello|hey|hiya|yo|good (?:morning|evening|afternoon)|hallo|guten (?:morgen|tag)|moin|servus|hola|buenas"
    r"|bonjour|salut|ciao|olá"
    r"|test|ping|こんにちは|你好|안녕하세요|привет)(?: there| claude| codex)?[\s,.!?:)]*",
    re.IGNORECASE,
)
QUOTED = 20
"""Characters from which words of the agent are not repeated by chance."""
RARE = 5
"""Sentences of the user in which a word may stand to tell what a message is about."""


@dataclass(slots=True)
class Asks:
    """The messages of the user so far."""

    found: list[Ask] = field(default_factory=list[Ask])
    quoted: tuple[str, ...] = ()
    """The sentences of a report in the latest message."""
    last_at: int = 0
    last_but_one_at: int = 0
    before: str = ""
    """The agent's message before the latest one of the user."""
    taken: int = 0
    """Messages whose acceptances were taken up."""

    @property
    def empty(self) -> bool:
        return not self.found

    def add(self, number: int, text: str, message: str) -> Ask | None:
        """Add a message, and return it; None if it only repeats, corrects or completes the one before."""
        if _ATTACHED.match(text):
            if self.found:
                self.found[-1] = replace(self.found[-1], text=f"{self.found[-1].text}\n{text[:-1]}, #{number}]")
            return None
        text = text[:LONGEST_ASK]
        parts = speech.taken_apart(text, first=not self.found)
        self.quoted = parts.quoted
        own = " ".join(parts.own)
        ask = Ask(
            number=number,
            text=text,
            phrases=_phrases(parts.own, message),
            pasted=parts.pasted,
            answers=_answered(own, text, message) if self.found else "",
            accepts=bool(self.found and message) and len(own) <= 3 * speech.SHORT and speech.accepts(own),
        )
        again = bool(self.found) and message == self.before and _repeats(self.found[-1].text, text)
        self.before = message
        if not again or self.last_at != number:
            self.last_but_one_at, self.last_at = (self.last_but_one_at if again else self.last_at), number
        if again:
            self.found[-1] = ask if len(text) >= len(self.found[-1].text) else self.found[-1]
            return None
        self.found.append(ask)
        return ask

    def approve(self, number: int, plan: str) -> None:
        """Add the approval of a plan, which the client words."""
        mark = "[approved the plan]"
        self.found.append(Ask(number=number, text=mark, pasted=mark, answers=plan, accepts=True))
        self.last_but_one_at, self.last_at = self.last_at, number

    def answer(self, number: int, question: str, answer: str) -> None:
        """Add an answer that the user gave to a question of an agent's tool."""
        phrases = _phrases(split(flattened(answer)))
        self.found.append(
            Ask(number=number, text=answer, phrases=phrases, answers=clipped(question, LONGEST_PROPOSAL), accepts=True)
        )
        self.last_but_one_at, self.last_at = self.last_at, number

    def inherit(self, number: int, request: str, rules: Sequence[str], said: Sequence[str]) -> None:
        """Add the request, the rules and the messages of an earlier session."""
        if request:
            self.found.append(
                Ask(number=number, text=request, phrases=_phrases(split(flattened(request))), earlier=True)
            )
        for rule in rules:
            self.found.append(Ask(number=number, text=rule, phrases=(Phrase(text=rule, rule=True),), earlier=True))
        for each in said:
            self.found.append(Ask(number=number, text=each, phrases=_phrases([each]), earlier=True))
        self.last_at = number

    def accepted(self) -> Iterator[tuple[int, str]]:
        """Yield the proposals accepted since the last call, with the content that was proposed."""
        for ask in self.found[self.taken :]:
            if ask.accepts and ask.answers:
                own = " ".join(phrase.text for phrase in ask.phrases)
                yield ask.number, clipped(f"{ask.answers} → {own}" if own else ask.answers, LONGEST_PROPOSAL)
        self.taken = len(self.found)

    def facts(self, written: Mapping[str, int]) -> list[Ask]:
        """Return the messages, the request first and linked to each other; a greeting before the request is left
        out."""
        asks = [replace(ask, done=_carried_out(ask, written, ask is self.found[-1])) for ask in self.found]
        asks = _linked(asks)
        if len(asks) > 1 and _GREETING.fullmatch(asks[0].text.strip()):
            return asks[1:]
        return asks


def _phrases(own: Sequence[str], message: str = "") -> tuple[Phrase, ...]:
    """Return each sentence with its kind (rule, correction, question); a quotation of the agent's message is no
    rule."""
    said = _reduced(message)
    # The items of a list are steps of one thing, and belong together unless one of them plainly stands for itself.
    steps = sum(_NUMBERED.match(sentence) is not None or sentence.startswith(("- ", "* ")) for sentence in own) >= 3
    return tuple(
        Phrase(
            text=sentence,
            rule=speech.is_rule(sentence, speech.language(sentence))
            and (not steps or speech.is_lasting(sentence))
            and not (len(sentence) > QUOTED and _reduced(sentence) in said),
            correction=speech.is_correction(sentence),
            question=speech.is_question(sentence),
        )
        for sentence in own
    )


def _reduced(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return re.sub(r"[\W_]+", "", text).lower()


def _repeats(before: str, text: str) -> bool:
    """Return True if a message is the one before, sent again with corrections and without losses."""
    if before == text or (len(before) > 15 and text.startswith(before[:-1])):
        return True
    now = _pieces(text)
    said = [_pieces(each) for each in speech.taken_apart(before).own]
    return bool(said) and all(len(each) > 3 and _covers(now, each) for each in said)


def _covers(now: frozenset[str], before: frozenset[str]) -> bool:
    """Return True if most words, and all with a digit, of the earlier text are in the new one."""
    lost = before - now
    return len(lost) <= 0.15 * len(before) and not any(character.isdigit() for word in lost for character in word)


def _pieces(text: str) -> frozenset[str]:
    """Return the words of a text in lower case."""
    return frozenset(re.findall(r"\w+", text.lower()))


def _answered(own: str, text: str, message: str) -> str:
    """Return the agent's question or proposal that a short message answers; empty if it answers none."""
    if not message or not own:
        return ""
    lists = [line for line in text.split("\n") if re.match(r"^\s*\d[.)]\s*\S", line)]
    if len(lists) >= 2:
        asked = [flattened(line) for line in message.split("\n") if re.match(r"^\s*(?:\*\*)?\d[.)]", line)]
        return clipped("; ".join(clipped(each.replace("**", ""), 110) for each in asked), LONGEST_PROPOSAL)
    agrees = speech.accepts(own)
    if len(own) > (3 * speech.SHORT if agrees else speech.SHORT) or (not agrees and speech.is_question(own)):
        return ""
    if option := speech.option_of(own):
        found = _option(option, message)
        if found:
            return found
    said = list(sentences(message))
    asked = [index for index, each in enumerate(said) if each.endswith(("?", "？"))]
    if asked:
        at = asked[-1]
        return _clipped_front(" ".join(said[max(0, at - 1) : at + 1]))
    return _clipped_front(" ".join(said[-2:])) if agrees else ""


def _clipped_front(text: str) -> str:
    """Return the end of a text, cut between words and marked."""
    return text if len(text) <= LONGEST_PROPOSAL else "…" + text[-LONGEST_PROPOSAL:].split(" ", 1)[-1]


def _option(option: str, message: str) -> str:
    """Return the text of the last list item with this number or letter in a message; empty if there is none."""
    lines = message.split("\n")
    for index in range(len(lines) - 1, -1, -1):
        mark = _NUMBERED.match(lines[index])
        if mark and mark[1].lower() == option:
            following: list[str] = []
            for line in lines[index + 1 :]:
                if _NUMBERED.match(line) or not line.strip() or line.startswith("#"):
                    break
                following.append(line.strip(" -*"))
            return clipped(flattened(" ".join([lines[index], *following])).replace("**", ""), LONGEST_PROPOSAL)
    return ""


def _linked(asks: Sequence[Ask]) -> list[Ask]:
    """Return the messages with each phrase linked to later ones about the same thing, or marked as withdrawn by one."""
    flat = [
        (at, part, phrase, speech.stems(phrase.text))
        for at, ask in enumerate(asks)
        for part, phrase in enumerate(ask.phrases)
    ]
    spread = Counter(stem for _, _, _, found in flat for stem in found)
    places: dict[str, list[tuple[int, int]]] = {}
    places_of: dict[tuple[int, int], int] = {}
    later: dict[tuple[int, int], list[int]] = {}
    withdrawn: dict[tuple[int, int], int] = {}
    for at, part, phrase, found in flat:
        about = [stem for stem in found if spread[stem] <= RARE]
        number = asks[at].number
        if at and not phrase.question:
            shared = Counter(
                place for stem in about for place in places.get(stem, ()) if asks[place[0]].number < number
            )
            gives_up = _GIVES_UP.search(phrase.text) is not None
            for place, count in shared.items():
                about_it = places_of[place]
                if phrase.correction or gives_up or (count >= 2 and 2 * count >= about_it):
                    later.setdefault(place, []).append(number)
                    if gives_up and not phrase.rule and (2 * count >= about_it or count >= 0.6 * len(about)):
                        withdrawn[place] = number
            if gives_up and not shared and part == 0 and len(phrase.text) <= 2 * speech.SHORT:
                # It names nothing, so it means what was said before it.
                meant = [(at - 1, index) for index, each in enumerate(asks[at - 1].phrases) if not each.question]
                later.update({place: [*later.get(place, []), number] for place in meant})
        places_of[at, part] = len(about)
        for stem in about:
            places.setdefault(stem, []).append((at, part))
    return [
        replace(
            ask,
            phrases=tuple(
                replace(
                    phrase, later=tuple(dict.fromkeys(later.get((at, part), ()))), withdrawn=withdrawn.get((at, part))
                )
                for part, phrase in enumerate(ask.phrases)
            ),
        )
        for at, ask in enumerate(asks)
    ]


def _carried_out(ask: Ask, written: Mapping[str, int], newest: bool) -> bool:
    """Return True if what was agreed is written since: for the newest message all its names and some text, else one
    name, or none if it names nothing."""
    agreed = ask.answers if ask.accepts and ask.answers else ""
    told = f"{agreed} {' '.join(phrase.text for phrase in ask.phrases if not phrase.question)}"
    names = [_PIECE.findall(name[0].strip('`"“”')) for name in _NAMED.finditer(told)]
    since = [any(written.get(piece, 0) >= ask.number for piece in pieces) for pieces in names if pieces]
    if newest:
        return all(since) and any(number >= ask.number for number in written.values())
    return not since or any(since)
