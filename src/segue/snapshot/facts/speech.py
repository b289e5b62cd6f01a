"""The user's messages: own words apart from what was pasted, and what each sentence is.

Structure decides first: who speaks, whether a question came before, whether the sentence is a question, how long it is,
where it stands. Words are a weak sign beside it, kept in one table for each language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from segue.model.naming import words as names
from segue.snapshot.facts.text import clipped, flattened, sentences, split

LONGEST_OWN = 700
"""Characters of a paragraph that one person types; a longer one was pasted."""
LONG = 900
"""Characters from which a message with headings and lists is a document."""
SHORT = 48
"""A message up to this length may need the question that it answers."""

# A line that a program printed: a prompt, a time, a level, a test runner, a frame of a stack, a difference.
_MACHINE = re.compile(
    r"^\s*(?:[❯➜$%]\s|>>>\s|PS .*>|\[[\w:./-]+\](?:\s|$)|\d{4}[-/]\d\d[-/]\d\d[T ]|\d\d:\d\d:\d\d|time=|level="
    r"|\d{4}/\d\d/\d\d"
    r"|=== |--- (?:FAIL|PASS|SKIP)|(?:FAIL|PASS|ok|ERROR|WARN|INFO|DEBUG|error|fatal|warning|remote|panic"
    r"|Traceback)\b[:\s]"
    r"|at \S+[(:]|File \"|goroutine \d|diff --git|@@ |[+-]{3} |npm ERR|\w+(?:Error|Exception): |[^/]*[0-9a-f]{32}"
    r"|exit status|\* \w+: \d)"
)
_PROMPT = re.compile(r"^\s*(?:[❯➜]\s|\$ \S|\S+ on \S+ .*\bvia\b)")
_PREFIX = re.compile(r"^\s*([\w-]{2,20}):(?:\s|$)")
_COMMAND = re.compile(r"^(?:[❯➜]|\$)\s+")
_CODE = re.compile(r"[{}();=<>\\|/_\[\]\"]")
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_TELLING = re.compile(
    r"error|fail|fatal|panic|denied|refus|cannot|not found|missing|timed? ?out|exception|violation", re.I
)
_PASSED = re.compile(r"--- PASS|^ok\s|\bpassed\b|\bdone\b", re.IGNORECASE)
_TYPED_END = re.compile(r"(?<=[a-zà-ÿ)\]]{2}[.!?])\s+(?=[a-zà-ÿ]{2,}[\s,'])")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)]|[a-z][.)])\s+")

_QUESTION = re.compile(
    r"[?？]\s*$|^(?:(?:ok|so|and|but|hm+|well|also|yes|no|then|wait)[,\s]+)*"
    r"(?:(?:what|why|how|where|when|who|which)(?:'s)?\s+(?!ever\b)\w"
    r"|(?:is|are|was|were|do|does|did|has|have|could|would|should|shall|can|will)\s+"
    r"(?:i|we|you|they|he|she|it|there|this|that|these|those|the|a|an|my|our|your)\b(?!.*\bplease\b))",
    re.IGNORECASE,
)
_ASKED_TO_DO = re.compile(
    r"^(?:(?:ok|so|and|but|also|yes|then)[,\s]+)*(?:can|could|would|will) (?:you|we)\b", re.IGNORECASE
)

# Words with which a language forbids, demands or limits.
_RULES: dict[str, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:(?<!can )(?<!could )(?<!would )never|always|must(?:n't| not)?(?! have| be (?:a |the |because|something"
        r"|some))|forbid(?:den)?|prohibited"
        r"|not (?:allowed|permitted|acceptable)|under no circumstances|from now on|at all times|every time"
        r"|off[- ]limits|hands off"
        r"|(?:do not|don'?t|dont) (?!worry|think|know|understand|see|believe|remember|care|have|get\b|mind|need"
        r"|want you to know)\w+"
        r"|(?:may|should|shall|can) ?(?:not|n't) (?!see|find|tell|be able|we\b|it\b|you\b|i\b)\w+|(?:is"
        r"|are) (?:not to|never)\b"
        r"|(?:is|are) (?:read[- ]only|frozen|mandatory|required|reserved)"
        r"|no (?:new|more|other|extra|external|third[- ]party|inline|direct)\b|without (?:my|our|asking|approval"
        r"|permission|consent)"
        r"|ask (?:me )?(?:first|before)|before you (?:delete|push|merge|publish|deploy)|only (?:use|touch|edit|change"
        r"|ever|via|through|with|in\b)"
        r"|(?:use|via|through|touch|edit|change)\b.{0,30}\bonly\b|(?:stick|keep) (?:to|with|the|it|all|everything"
        r"|python|compat|every)\b"
        r"|(?:has|have|needs?) to (?:stay|remain|be kept|keep|pass|be (?:reviewed|approved|signed))|stays? (?:as|on"
        r"|at|in|under|below)\b"
        r"|(?:make sure|ensure)\b|prefer\b|avoid\b|(?:please )?leave .{2,40} (?:alone|untouched|as (?:it )?is)"
        r"|we (?:only|never|always)\b"
        r"|let'?s (?:not|never)\b|no \w+ (?:without|before|in|on|unless)\b|unless I\b|rule\b.{0,3}:|owns?\b"
        r"|(?:at most|no more than|not more than|up to|at least|no less than)\b \S*\d)",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:nie|niemals|immer|stets|nur|keine?[nmrs]?|nicht|verboten|untersagt|muss|müssen|darf|dürfen"
        r"|ausschließlich|ohne"
        r"|erst fragen|vorher fragen|auf keinen fall|grundsätzlich)\b",
        re.IGNORECASE,
    ),
    "es": re.compile(
        r"\b(?:nunca|jamás|siempre|no|s[oó]lo|solamente|únicamente|prohibid[oa]s?|deben?|hay que|sin|evita|mantén"
        r"|pregunta antes)\b",
        re.IGNORECASE,
    ),
    "fr": re.compile(
        r"\b(?:jamais|toujours|n[e'’].{1,40}\b(?:pas|jamais|plus)|pas de|seulement|uniquement|interdit\w*|doit"
        r"|doivent|il faut|sans"
        r"|évite[rz]?)\b",
        re.IGNORECASE,
    ),
    "pt": re.compile(
        r"\b(?:nunca|jamais|sempre|não|apenas|somente|só|proibid[oa]s?|deve[m]?|sem|evite)\b", re.IGNORECASE
    ),
    "it": re.compile(r"\b(?:mai|sempre|non|solo|soltanto|vietat[oa]|deve|devono|senza|evita)\b", re.IGNORECASE),
    "ru": re.compile(r"\b(?:никогда|всегда|не|нельзя|только|обязательно|запрещ\w+|без|должн\w+)\b", re.IGNORECASE),
    "ja": re.compile(
        r"決して|絶対|必ず|常に|禁止|ないで|しない(?:こと|よう)|てはいけ|てはなら|てはだめ|のみ|だけ|なければなら|すること|限り|なしに|避け|保って|維持|許可"
    ),
    "zh": re.compile(r"不要|不得|不能|不可|不许|不准|禁止|必须|始终|永远|只能|只用|只可|务必|请勿|切勿|未经|总是|一律"),
    "ko": re.compile(r"마세요|마십시오|말 ?것|항상|절대|반드시|금지|만 (?:사용|쓰)|해야|안 ?됩니다|없이"),
}
_COMMON: dict[str, frozenset[str]] = {
    "de": names(
        "der die das und ist nicht ein eine mit für auf den dem zu im bitte wir ich es sind oder werden wird von "
        "keine kein keinen"
        " ohne meine mein nie niemals nur muss darf immer erst vor nach bei alle unter soll sollen"
    ),
    "es": names(
        "el la los las y es no una un con para que en de del por se lo al como más pero hay nunca siempre sin mi "
        "está dentro"
        " antes nada debe solo"
    ),
    "fr": names(
        "le la les et est un une des dans pour que sur avec du au ne pas il nous vous ce jamais toujours sans mon "
        "avant doit"
    ),
    "pt": names("o os as e é um uma com para que em do da não no na por se mas nunca sempre sem antes deve"),
    "it": names("il lo gli le e è un una con per che di del della non nel si ma mai sempre senza prima deve"),
}
_ENGLISH = names("the a an and is to of in it for that this we you i not on with be do can are don't as or")
# An order for this moment only; it is carried out or not, and is no standing rule.
_ONCE = re.compile(
    r"^(?:(?:ok|okay|now|then|so|and|also|yes|no|please|just|great|good|perfect|thanks|let'?s)[,.!\s]+)*(?:commit"
    r"|push|run|open|merge"
    r"|create|show|give|look|check|fix|go|continue|proceed|implement|add|update|write|make a|make the|start|stop|try"
    r"|rerun|test|rebase"
    r"|review|explain|tell|read|find|search|deploy|release|clean|install|remove|delete|rename|move|revert|undo"
    r"|do (?:it|this|that)"
    r"|put|switch|change|set|pin|ship|send|post|reply|apply|replace|drop|turn|let me)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:(?<!can )(?<!could )(?<!would )never|always|must|from now on|every time|whenever|at all times"
    r"|under no circumstances|forbidden"
    r"|(?:don'?t|do not) (?!need|want|have|care|mind)"
    r"|without (?:my|asking)|only (?:use|ever))\b",
    re.IGNORECASE,
)
_COMMANDS = re.compile(
    r"^\W*(?:please |also |and )*(?:never|always|do not|don't|must|only|you must|use|keep|ask)", re.IGNORECASE
)
_FOR_NOW = re.compile(
    r"\b(?:yet|for now|right now|this time|at the moment|today|for the moment|just now|not now|first)\b", re.IGNORECASE
)
_ABOUT = re.compile(
    r"^(?:still|looks|seems|sounds|reads|feels|works)\b"
    r"|^(?:I|it|this|that|there|they|he|she|we|you)\b(?:(?:'s|'re|'m|'ve)| (?:was|were|is|are|did|had|have|has|get|got"
    r"|see|saw|think|thought"
    r"|guess|noticed|just|still|can't|cannot|couldn't|don't see|don't think|need|would))\b",
    re.IGNORECASE,
)
# Words with which a person takes something back or sets it right.
_CORRECTION = re.compile(
    r"\b(?:no longer|any ?more|forget|(?<!from )scratch|scrap|never ?mind|cancel(?:led|s)?|call(?:ed)? off|instead"
    r"|rather|undo"
    r"|revert|back (?:it )?out|roll(?:ed)? back"
    r"|hold off|changed (?:my|our) minds?|on second thou?ght|actually|not needed|unneeded|no need|don'?t (?:need|want"
    r"|bother)|not (?:what|that|like)"
    r"|drop(?:ped)?|abandon(?:ed)?|ditch(?:ed)?|nix(?:ed)?|off the table|let'?s not|won'?t (?:be|need|do)|do without"
    r"|live without|leave .{1,30} out"
    r"|skip|wrong|mistaken|my mistake|not after all|after all|superseded|obsolete|moot|shelved?|postpone[ds]?"
    r"|withdraw[ns]?|take (?:that|it) back"
    r"|doch nicht|stattdessen|nicht mehr|vergiss|en vez de|en lugar de|ya no|olvida|plutôt|ne .{1,20} plus|oublie"
    r")\b|やめ|代わりに|もう(?:必要|いら)|取り消|不再|不用了|取消|改为|대신|취소|필요 ?없",
    re.IGNORECASE,
)
_APPROVAL = re.compile(
    r"^(?:(?:ok(?:ay)?|yes|yeah|yep|yup|sure|go(?: ahead| on| for it)?|do (?:it|this|that|so)|sounds good|perfect"
    r"|great|fine|agreed|right|correct"
    r"|exactly|please do|proceed|continue|let'?s (?:do|go)(?: (?:it|this|that|with \w+))?|implement (?:it|this|that)"
    r"|fix (?:it|this|that)|lgtm"
    r"|approved?|ship it|i agree|makes sense|good|ja|jo|genau|passt|gerne|mach(?: das)?|s[ií]|vale|de acuerdo|dale"
    r"|hazlo|oui|d'accord|vas-y"
    r"|sim|certo|va bene|да|хорошо|давай)[\s,.!:;-]*)+",
    re.IGNORECASE,
)
_APPROVAL_CJK = re.compile(r"^(?:はい|そうして|お願い|了解|それで|いいです|好的?|可以|是的|行|同意|네|예|좋아요|그래)")
_OPTION = re.compile(
    r"^(?:(?:i'?d? (?:go with|take|do|prefer|choose)|let'?s (?:do|go with|take)|option|the|number|variant|yes,?)\s+)*"
    r"(?:option |number |#)?([a-h]|\d{1,2}|first|second|third|fourth|last|both)(?: one| option"
    r"| way)?\b(?=[\s,.!)]*(?:$|please|but|and|with|\n))",
    re.IGNORECASE,
)
_ORDINALS = {"first": "1", "second": "2", "third": "3", "fourth": "4"}
_WORD = re.compile(r"[\w'-]{3,}")


@dataclass(frozen=True, slots=True)
class Speech:
    """A message of the user, taken apart."""

    own: tuple[str, ...]
    pasted: str
    quoted: tuple[str, ...]
    """Sentences of a report that the user passed on."""


def taken_apart(text: str, *, first: bool = False) -> Speech:
    """Separate the user's own sentences from pasted text; a long document counts as a passed-on report unless it is the
    first message."""
    if not first and len(text) > LONG and _is_document(text):
        return _report(text)
    fenced = _FENCE.findall(text)
    blocks = [found[0] for found in _FENCE.finditer(text)] if fenced else []
    rest = _FENCE.sub("\n", text) if fenced else text
    lines = rest.split("\n")
    machine = _machine_lines(lines)
    printed = [line for line, printed in zip(lines, machine, strict=True) if printed]
    printed += [line for block in blocks for line in block.split("\n")[1:-1]]
    own: list[str] = []
    quoted: list[str] = []
    for paragraph, passed_on in _paragraphs([line for line, out in zip(lines, machine, strict=True) if not out]):
        (quoted if passed_on else own).extend(split(paragraph) if passed_on else _typed(paragraph))
    return Speech(tuple(each for each in own if re.search(r"\w", each)), _shown(printed), tuple(quoted))


def _is_document(text: str) -> bool:
    """Return True if a text is long and has headings or lists."""
    lines = text.split("\n")
    marks = sum(bool(re.match(r"\s*(?:#{1,6} |\*\*|\d{1,2}[.)] |[-*] |```)", line)) for line in lines)
    return marks >= 4 and len(lines) >= 8


def _report(text: str) -> Speech:
    """Return the user's words around a pasted report, and the sentences of it that forbid or demand something."""
    blocks = [block for block in re.split(r"\n\s*\n", text) if block.strip()]
    around = [block for block in (blocks[0], blocks[-1]) if len(block) < LONG // 4 and not _is_marked(block)]
    told = [part for block in blocks if block not in around for part in sentences(block)]
    own = [part for block in around for part in _typed(flattened(block))]
    plain = [part for part in told if _COMMANDS.match(part) and is_lasting(part)]
    return Speech(tuple(dict.fromkeys([*own, *plain])), "", tuple(part for part in told if part not in plain))


def _is_marked(block: str) -> bool:
    """Return True if a block begins like a heading, a list or a fence."""
    return re.match(r"\s*(?:#{1,6} |\*\*|\d{1,2}[.)] |[-*] |```)", block) is not None


def _typed(paragraph: str) -> list[str]:
    """Split typed text into sentences, also where one begins without a capital."""
    return [part for sentence in split(paragraph) for part in _TYPED_END.split(sentence) if part.strip()]


def _machine_lines(lines: list[str]) -> list[bool]:
    """Return for each line if a program printed it, or if it is code beside such lines."""
    marks = [bool(_MACHINE.match(line)) or line.lstrip().startswith("> ") for line in lines]
    for index in range(1, len(lines)):
        # A program puts the same word before each of its lines.
        one, other = _PREFIX.match(lines[index - 1]), _PREFIX.match(lines[index])
        if one and other and one[1] == other[1]:
            marks[index - 1] = marks[index] = True
    if sum(marks) == 0:
        return [_looks_like_code(line) and len(lines) > 2 for line in lines]
    if _PROMPT.match(next((line for line in lines if line.strip()), "")):
        # A terminal was pasted; only prose at its end can be the person's.
        last = len(lines)
        while last and (not lines[last - 1].strip() or (_is_prose(lines[last - 1]) and not marks[last - 1])):
            last -= 1
        return [index < last for index in range(len(lines))]
    for index, line in enumerate(lines):
        near = (index and marks[index - 1]) or (index + 1 < len(lines) and marks[index + 1])
        if near and (_looks_like_code(line) or line.startswith(("  ", "\t"))):
            marks[index] = True
    return marks


def _is_prose(line: str) -> bool:
    """Return True if a line looks like a sentence of a person."""
    return line[:1].isalpha() and line.count(" ") >= 2 and not _looks_like_code(line) and not _PREFIX.match(line)


def _looks_like_code(line: str) -> bool:
    """Return True if a line has many signs of code."""
    signs = len(_CODE.findall(line))
    return signs >= 4 and signs > 0.12 * len(line.strip())


def _paragraphs(lines: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield each paragraph, and True if it is part of a pasted report."""
    full = [line for line in lines if line.strip()]
    wrapped = sum(line.startswith("  ") and not _ITEM.match(line) for line in full) >= 2
    long = sum(map(len, full)) > 900 and (len(full) > 8 or any(len(line) > LONGEST_OWN for line in full))
    headed = sum(line.lstrip().startswith("#") for line in full) >= 2
    passed_on = wrapped or (long and not headed)
    held = ""
    for line in [*lines, ""]:
        joins = passed_on and held and line.startswith("  ") and not _ITEM.match(line)
        if joins:
            held = f"{held} {line.strip()}"
            continue
        if held:
            yield held, passed_on
        held = flattened(line.lstrip("#").strip()) if line.strip() else ""


def _shown(printed: list[str]) -> str:
    """Return a mark for pasted output: its number of lines, its command and its main line; empty for none."""
    full = [line for line in map(flattened, printed) if line]
    if not full:
        return ""
    command, rest = _typed_command(full)
    telling = next(
        (line for line in rest if _TELLING.search(line)),
        next((line for line in rest if _PASSED.search(line)), rest[-1] if rest else ""),
    )
    told = " → ".join(each for each in (f"`{clipped(command, 200)}`" if command else "", clipped(telling, 180)) if each)
    return f"[pasted {len(full)} line{'s' if len(full) > 1 else ''}: {told}]"


def _typed_command(lines: list[str]) -> tuple[str, list[str]]:
    """Return the first command at a prompt with its continued lines (empty if there is none), and the lines after
    it."""
    at = next((index for index, line in enumerate(lines) if _COMMAND.match(line)), None)
    if at is None:
        return "", lines
    end = at + 1
    command = _COMMAND.sub("", lines[at])
    while command.endswith("\\") and end < len(lines):
        command = f"{command[:-1].rstrip()} {lines[end]}"
        end += 1
    return command.rstrip(" \\"), lines[end:]


def language(text: str) -> str:
    """Guess the language of a message, for the table of weak signs only."""
    if re.search(r"[\u3040-\u30ff]", text):
        return "ja"
    if re.search(r"[\uac00-\ud7af]", text):
        return "ko"
    if re.search(r"[\u4e00-\u9fff]", text):
        return "zh"
    if re.search(r"[\u0400-\u04ff]", text):
        return "ru"
    found = set(re.findall(r"[\w']+", text.lower()))
    best = max(_COMMON, key=lambda name: len(found & _COMMON[name]))
    count = len(found & _COMMON[best])
    return best if count and count > len(found & _ENGLISH) else "en"


def is_question(sentence: str) -> bool:
    """Return True if a sentence is a question and not a request in that form."""
    return _QUESTION.search(sentence) is not None and not _states(sentence)


def _states(sentence: str) -> bool:
    """Return True if a question is a request: it asks to do something and ends with no question mark."""
    return _ASKED_TO_DO.search(sentence) is not None and not sentence.rstrip().endswith(("?", "？"))


def is_rule(sentence: str, spoken: str) -> bool:
    """Return True if a sentence of the user binds the work beyond this moment."""
    if len(sentence) > 420 or is_question(sentence) or sentence.rstrip().endswith((":", "：")):
        return False
    if _RULES[spoken].search(sentence) is None:
        return False
    if spoken != "en":
        return True
    lasting = _LASTING.search(sentence) is not None
    if _ONCE.match(sentence) and not lasting:
        return False
    if _FOR_NOW.search(sentence) and not re.search(r"\b(?:never|always|must)\b", sentence, re.IGNORECASE):
        return False
    if _ASKED_TO_DO.search(sentence) and not lasting:
        return False
    return not (
        _ABOUT.match(sentence)
        and not re.search(r"\b(?:never|always|must|forbid|don'?t want|only)\b", sentence, re.IGNORECASE)
    )


def is_lasting(sentence: str) -> bool:
    """Return True if a sentence plainly binds beyond this moment."""
    return _LASTING.search(sentence) is not None


def is_correction(sentence: str) -> bool:
    """Return True if a sentence corrects the agent."""
    return len(sentence) <= 420 and _CORRECTION.search(sentence) is not None and not sentence.rstrip().endswith("?")


def accepts(text: str) -> bool:
    """Return True if a message does little else than agree to a proposal."""
    start = text.strip()
    agreed = _APPROVAL.match(start) or _APPROVAL_CJK.match(start)
    return bool(option_of(start)) or (agreed is not None and len(start) - agreed.end() <= SHORT)


def option_of(text: str) -> str:
    """Return the option that a message names (`1`, `b`, `both`), or an empty text."""
    found = _OPTION.match(text.strip())
    if found is None:
        return ""
    named = found[1].lower()
    return _ORDINALS.get(named, named)


def stems(text: str) -> frozenset[str]:
    """Return the beginnings of the words that carry a subject."""
    return frozenset(word.lower()[:5] for word in _WORD.findall(text) if word.lower() not in _EVERYDAY) | _scripts(text)


def _scripts(text: str) -> frozenset[str]:
    """Return pairs of adjacent signs of Japanese, Chinese and Korean, which have no spaces between words."""
    runs = re.findall(r"[\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,}", text)
    return frozenset(run[at : at + 2] for run in runs for at in range(len(run) - 1))


_EVERYDAY = frozenset(
    [
        "the",
        "and",
        "for",
        "you",
        "are",
        "not",
        "but",
        "can",
        "could",
        "would",
        "should",
        "will",
        "shall",
        "may",
        "might",
        "must",
        "that",
        "this",
        "these",
        "those",
        "with",
        "from",
        "into",
        "onto",
        "have",
        "has",
        "had",
        "was",
        "were",
        "been",
        "being",
        "does",
        "did",
        "done",
        "doing",
        "don't",
        "dont",
        "let's",
        "lets",
        "use",
        "used",
        "using",
        "make",
        "makes",
        "made",
        "want",
        "wants",
        "need",
        "needs",
        "also",
        "just",
        "only",
        "then",
        "than",
        "them",
        "they",
        "their",
        "there",
        "here",
        "where",
        "when",
        "what",
        "which",
        "who",
        "how",
        "why",
        "all",
        "any",
        "some",
        "more",
        "most",
        "other",
        "others",
        "another",
        "one",
        "two",
        "new",
        "now",
        "please",
        "okay",
        "yes",
        "yeah",
        "about",
        "after",
        "again",
        "always",
        "never",
        "before",
        "because",
        "still",
        "even",
        "ever",
        "every",
        "please",
        "like",
        "look",
        "looks",
        "see",
        "add",
        "our",
        "your",
        "its",
        "it's",
        "i'd",
        "i'll",
        "we'll",
        "you'll",
        "out",
        "off",
        "over",
        "under",
        "via",
        "per",
        "etc",
        "get",
        "got",
        "give",
        "given",
        "put",
        "set",
        "try",
        "run",
        "test",
        "tests",
        "code",
        "file",
        "files",
        "work",
        "works",
        "way",
        "ways",
        "thing",
        "things",
        "first",
        "last",
        "next",
        "sure",
        "keep",
        "let",
        "think",
        "know",
        "say",
        "says",
        "said",
        "tell",
        "going",
        "goes",
        "come",
        "back",
        "anymore",
        "longer",
        "forget",
        "instead",
        "rather",
        "actually",
        "really",
        "maybe",
        "maybe",
        "so",
        "too",
        "very",
        "own",
        "same",
        "such",
        "each",
        "both",
        "either",
        "neither",
        "while",
        "until",
        "since",
        "much",
        "many",
        "few",
    ]
)
