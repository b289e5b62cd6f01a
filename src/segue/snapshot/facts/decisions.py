"""Decisions: sentences in which a choice was made, their types, reasons and alternatives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from segue.model.facts import DecisionFact
from segue.model.findings import DecisionType
from segue.snapshot.facts.speech import stems

MOST_DECISIONS = 200
SHORTEST, LONGEST = 25, 420
_WORD = re.compile(r"\w{2,}")

_LIBRARIES = (
    "requests|httpx|aiohttp|urllib3|pydantic|attrs|numpy|pandas|polars|sqlalchemy|alembic|django|flask|fastapi|starlette|celery|pytest"
    "|hypothesis|click|typer|argparse|rich|jinja2?|lxml|beautifulsoup4?|scrapy|redis|boto3|dateutil|arrow|pendulum|orjson|msgspec|anyio"
    "|trio|uvloop|psycopg2?|asyncpg|react|vue|svelte|angular|next\\.?js|express|fastify|koa|axios|lodash|zod|yup|prisma|drizzle|vite|webpack"
    "|esbuild|vitest|jest|mocha|playwright|cypress|puppeteer|tailwind|d3|chart\\.js|three\\.js|moment|dayjs|date-fns|luxon|serde|tokio|clap|rayon"
    "|axum|actix|reqwest|anyhow|thiserror|cobra|viper|gin|echo|fiber|gorm|sqlx|testify|zap|logrus|zerolog|go-git|chi|spring|hibernate|junit"
    "|mockito|gson|jackson|guava|lombok|rails|sidekiq|rspec|devise|nokogiri|laravel|symfony|phpunit|guzzle|openssl|libcurl|boost|protobuf"
    "|grpc|graphql|kafka|rabbitmq|postgres(?:ql)?|sqlite|mysql|mongodb|elasticsearch|opentelemetry|prometheus|sentry|structlog|loguru|tenacity"
    "|tomllib|tomli|pyyaml|ruamel|marshmallow|cattrs|networkx|scipy|matplotlib|plotly|pillow|ffmpeg|zstd|zstandard|brotli|bcrypt|argon2|jose|pyjwt"
)
_ADOPT = (
    r"(?:us(?:e|es|ed|ing)|add(?:s|ed|ing)?|adopt(?:s|ed|ing)?|pull(?:s|ed|ing)? in|bring(?:s|ing)? in|switch(?:es|ed"
    r"|ing)? (?:\S+ ){0,3}to"
    r"|depend(?:s|ing)? on|rel(?:y|ies|ying) on|go(?:es|ing)? with|went with|pick(?:s|ed|ing)?|chose|choos(?:e|ing)"
    r"|migrat(?:e|ed|ing) (?:\S+ ){0,3}to"
    r"|replac(?:e|ed|es|ing) .{1,40} (?:with|by)|import(?:s|ed|ing)?|built on|stick(?:ing)? with|settled on"
    r"|standardi[sz]ed? on|mov(?:e|ed|ing) (?:\S+ ){0,2}to"
    r"|with|via|by|on top of|prefer(?:red)?)"
)
_PARTS = (
    r"(?:layers?|modules?|packages?|services?|interfaces?|boundar(?:y|ies)|components?|schemas?|adapters?|registr(?:y"
    r"|ies)|facades?|repositor(?:y|ies)"
    r"|state machines?|pipelines?|queues?|event (?:bus|log|store)|plugins?|abstractions?|process(?:es)?|workers?"
    r"|daemon|single source of truth"
    r"|architecture|microservices?|monolith|cache layer|shared helper|class(?:es)?|protocols?|contracts?|subsystems?"
    r"|namespaces?|crates?|librar(?:y|ies)"
    r"|domain|core|front ?end|back ?end|database|tables?|store|gateway|controller|middleware|primitives?|hierarchy"
    r"|director(?:y|ies)|folders?|files?)"
)
_BUILD = (
    r"(?:split(?:s|ting)?|extract(?:s|ed|ing)?|separat(?:e|es|ed|ing)|decoupl(?:e|es|ed|ing)|isolat(?:e|es|ed|ing)"
    r"|introduc(?:e|es|ed|ing)|centrali[sz](?:e|es|ed|ing)"
    r"|consolidat(?:e|es|ed|ing)|structur(?:e|es|ed|ing)|organi[sz](?:e|es|ed|ing)|layer(?:s|ed|ing)?|wrap(?:s|ped"
    r"|ping)?|liv(?:e|es|ing) (?:in|under|behind|outside|at)"
    r"|belongs? (?:in|to|at)|sits? (?:in|behind|between|at|on)|goes (?:in|into|behind|through)|go through|mov(?:e|es"
    r"|ed|ing) .{2,60}\b(?:into|out of|behind|under|to)"
    r"|put(?:s|ting)? .{2,60}\b(?:into|in|behind|under|at)|hid(?:e|es|den) behind|kept? (?:in|apart|separate|pure"
    r"|behind)|model(?:l?ed|s)? .{1,40}\bas"
    r"|becom(?:e|es) an?|turn(?:s|ed)? .{2,50}\binto|merg(?:e|es|ed) .{2,50}\binto|shar(?:e|es|ed) (?:one|a single)"
    r"|owns?|depends? only on|stor(?:e|es|ed) .{2,50}\bin)"
)
_RULES: tuple[tuple[DecisionType, str], ...] = (
    (
        "workaround",
        r"\bwork(?:ed|ing|s)?[ -]?arounds?\b|\bstop-?gaps?\b|\btemporar(?:y|ily)\b.{0,60}(?:fix|hack|solution|patch"
        r"|pin|disabl)|\bmonkey-?patch"
        r"|\bfall(?:s|ing|en)? ?back (?:to|on)\b|\b(?:until|till) (?:upstream|the (?:bug|upstream|fix|release)"
        r"|it is fixed)|\bshim(?:med)?\b.{0,40}\b(?:until|because|for now)",
    ),
    (
        "skip",
        r"\b(?:skip(?:s|ped|ping)?|omit(?:s|ted|ting)?|defer(?:s|red|ring)?|postpon(?:e|ed|ing)|punt(?:ed|ing)?"
        r"|out of scope|not worth|hold(?:ing)? off"
        r"|(?:leave|leaving|left) .{0,60}\b(?:out|alone|untouched|unchanged|undone|untested|for (?:later|now|another"
        r"|a (?:later|separate|follow))|as (?:is|it is|they are))"
        r"|no longer needed|(?:won'?t|will not|not going to|decided not to|chose not to|are not|deliberately (?:not"
        r"|no)|intentionally (?:not|no)|need not|don'?t) "
        r"(?:\w+ )?(?:add|support|handle|implement|cover|test|touch|migrate|fix|port|do|bother|include|write|change"
        r"|need|build|address|rename|rewrite)\w*"
        r"|follow-?up (?:pr|issue|ticket|change)|(?:park|shelv|drop)(?:s|ped|ed|ping|ing)\b|without (?:adding|writing"
        r"|testing|supporting)|for (?:now|a later)"
        r"|another (?:day|time|pr|change|release)|(?:ignore|ignoring) .{2,40}\bfor now|can wait|non-goal"
        r"|not part of this)\b",
    ),
    (
        "library",
        rf"\b{_ADOPT}\b.{{0,60}}\b(?:librar(?:y|ies)|packages?|crates?|frameworks?|dependenc(?:y|ies)|gems?|SDK|ORM"
        rf"|npm module|plugin|toolkit|bindings|driver)\b"
        rf"|\b{_ADOPT} (?:the |a |an |plain |python'?s? |its )?`?(?:{_LIBRARIES})\b",
    ),
    (
        "clarification",
        r"\b(?:root cause|(?:real|actual|underlying) (?:bug|cause|culprit|problem|issue|reason)|(?:bug|cause|culprit"
        r"|reason) (?:is|was)|turns? out|turned out"
        r"|clarif(?:y|ied|ies|ication)|(?:user|customer|client|owner|reviewer|maintainer|you|they|she|he) (?:meant"
        r"|means|confirmed|wants?|wanted|expects?|explained|said|asked)"
        r"|(?:refers?|referred) to|in other words|that means|which means|(?:is|are|was) meant (?:to|as|by)|(?:is"
        r"|are) to be (?:read|understood)|interpret(?:ed|ing|s)?"
        r"|assum(?:e|ed|es|ing|ption)|(?:spec|specification|requirement|documentation|docs|issue|ticket) (?:says?"
        r"|means?|states?|requires?|is|was)|\bby [\"'“`].{2,40}[\"'”`] (?:the |we|you|they|he|she|I|is|are|was)"
        r"|understood (?:as|to)|not .{2,40}, but (?:rather )?|confirmed (?:that|with)|does not mean|means? (?:that"
        r"|the|only|any|all|a|an|\"|'|`)|count(?:s|ed)? as|(?:is|are) defined as)\b",
    ),
    ("architecture", rf"\b{_BUILD}\b.{{0,120}}\b{_PARTS}\b|\b{_PARTS}\b.{{0,80}}\b{_BUILD}\b"),
    (
        "approach",
        r"\b(?:decided|deciding|chose|choosing|chosen|going with|went with|go with|opt(?:ed|ing)? (?:for|to)"
        r"|settled on|we agreed|agreed to)\b"
        r"|\b(?:I|we|let'?s)(?:['’]ll|['’]m|['’]ve|['’]d| will| am| are| have| had|'re)?\b.{0,80}\b(?:instead of"
        r"|rather than|in favou?r of|as opposed to|prefer(?:red)?|pick(?:ed|ing)?)\b"
        r"|\b(?:considered|rejected|ruled out|discarded|turned down|gave up on|decided against)\b"
        r"|^(?:use|using|keep|kept|store|put|make|made|send|return|parse|pass|write|build|run|replaced|switched"
        r"|picked)\b.{0,160}\b(?:instead of|rather than|not the|over the|because|so that)\b"
        r"|\bthe (?:\w+,? ?(?:\w+-\w+ )?){0,2}(?:fix|approach|solution|design) (?:is|was|:)|\b(?:over|not) (?:the|a"
        r"|an) .{2,40}\bbecause\b"
        r"|\b(?:instead of|rather than|in favou?r of)\b.{0,120}\b(?:because|since|so that|to avoid|as)\b",
    ),
)  # fmt: skip
_DECISIONS: tuple[tuple[DecisionType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(text, re.IGNORECASE)) for kind, text in _RULES
)
_CHOSEN = re.compile(
    r"\b(?:(?:I|we|let'?s|let us)(?:['’]ll|['’]m|['’]ve|['’]d| will| am| are| have| had|'re)?\b|decided|decision"
    r"|chose|chosen|choice|instead of|rather than|in favou?r of"
    r"|settled|agreed|because|since|so that|therefore|deliberate(?:ly)?|intentional(?:ly)?|out of scope|won'?t"
    r"|will not|root cause|turns? out|turned out"
    r"|non-goal|only|confirmed|meant|means?|actual|real)\b|, (?:so|not)\b|[—–-] (?:not|no)\b|^(?:use|keep|split|move"
    r"|put|skip|leave|extract|drop|defer|adopt|store"
    r"|introduce|separate|no|pick(?:ed)?|skipp\w+|deferr\w+|left|using|chose|added|moved|switched|replaced|omitted"
    r"|kept)\b",
    re.IGNORECASE,
)
_NO_DECISION = re.compile(
    r"^(?:if|let me|should|would|do you|can|could|want|before|whether|now let|next,? (?:I|let)|first,? (?:I|let)"
    r"|I(?:['’]?ll| will|['’]m(?: now)?(?: going to)?| am(?: now)?(?: going to)?|['’]ve| have) (?:now |just |also )?"
    r"(?:check|look|read|see|run|rerun|inspect|verif|start|tak|examin|begin|trac|scan|open|pull|search|confirm|review"
    r"|compar|test|explor|grep|list|wait|delegat|spawn|adjust|correct|scal|updat|fix|creat|patch)\w*)\b"
    r"|\b(?:would (?:give|be|have|need)|currently|at present|right now)\b.{0,80}\b(?:instead of|rather than)\b"
    r"|^\d+ \w+ (?:issues?|tests?|problems?)\b|\bissues? to fix\b"
    r"|[?？]$|^(?:Want|Shall|May) (?:me|I|we)\b",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r"\b(?:because|since|so that|in order to|as otherwise|otherwise|due to|given that|to avoid|to keep|so)\b[ ,]*"
    r"|[—–] ",
    re.IGNORECASE,
)
_OTHERWISE = (
    re.compile(
        r"\b(?:instead of|rather than|in favou?r of(?= )|as opposed to|over using|in place of)"
               r"\s+([^,.;:()—–]{3,120})", re.IGNORECASE),
    re.compile(
        r"\b(?:chose|picked|prefer(?:red)?|choosing|went with|go with|going with|pick"
        r"|choose)\s+[^,.;:()]{2,60}?\s(?:over|not)\s+([^,.;:()—–]{3,100})", re.IGNORECASE),
    re.compile(
        r"\b(?:considered|rejected|ruled out|discarded|turned down|decided against|gave up on"
        r"|tried)\s+([^,.;:()—–]{3,120})", re.IGNORECASE),
    re.compile(r"[,—–-]\s*(?:and )?not\s+([^,.;:()]{3,100})", re.IGNORECASE),
    re.compile(r"\bnot\s+([^,.;:()]{3,60}),\s*but\b", re.IGNORECASE),
    re.compile(
        r"(?:^|[.;]\s)([A-Z`][^,.;:()]{2,60}?) (?:was|were) (?:considered|rejected|ruled out|discarded|an option"
        r"|too \w+|turned down|dropped|not an option)", re.IGNORECASE),
    re.compile(
        r"\b(?:alternatives?|other options?)\b[^:]{0,40}(?::|were|was|would be|are)\s+([^.;]{3,160})", re.IGNORECASE),
    re.compile(r"\bbetween\s+([^.;:]{3,60}) and ([^,.;:]{3,60})", re.IGNORECASE),
)  # fmt: skip
_TAKEN_BACK = re.compile(
    r"\b(?:revert(?:ed|ing)?|undo(?:ing)?|undid|roll(?:ed|ing)? back|scrap that|on second thought|changed my mind"
    r"|no longer|not .{0,30} after all"
    r"|instead of .{0,40}(?:I|we) (?:had|decided)|back(?:ed)? out|gave up|abandon(?:ed|ing)?|dropp?(?:ed|ing)"
    r"|withdr[ae]wn?)\b",
    re.IGNORECASE,
)


def decision_type(sentence: str) -> DecisionType | None:
    """Return the type of the decision in a sentence, or None if it contains none."""
    if not SHORTEST <= len(sentence) <= LONGEST or _NO_DECISION.search(sentence) or _CHOSEN.search(sentence) is None:
        return None
    return next((kind for kind, pattern in _DECISIONS if pattern.search(sentence)), None)


def alternatives(sentence: str) -> tuple[str, ...]:
    """Return the alternatives that the sentence names as not chosen."""
    found: list[str] = []
    for pattern in _OTHERWISE:
        for match in pattern.finditer(sentence):
            found += [_trimmed(group) for group in match.groups()]
    return tuple(dict.fromkeys(each for each in found if len(each) > 2))


def reason(sentence: str) -> str:
    """Return the part of the sentence that gives its reason, or an empty text."""
    parts = _BECAUSE.split(sentence, maxsplit=1)
    return parts[1].strip(" .") if len(parts) > 1 else ""


def takes_back(sentence: str) -> bool:
    """Return True if a sentence withdraws something."""
    return _TAKEN_BACK.search(sentence) is not None


def _trimmed(text: str) -> str:
    """Return an alternative without its reason and quotation marks."""
    return _BECAUSE.split(text)[0].strip(" `\"'.,")


@dataclass(slots=True)
class Decisions:
    """The decisions of a session so far."""

    found: list[DecisionFact] = field(default_factory=list[DecisionFact])

    def spoke(self, number: int, sentences: Sequence[str]) -> None:
        """Add the decisions in sentences of the agent, and mark those that they withdraw."""
        for sentence in sentences:
            self._supersede(number, sentence)
            if (kind := decision_type(sentence)) is not None:
                self._keep(_fact(number, kind, sentence, by="agent"))

    def asked(self, number: int, sentences: Sequence[str]) -> None:
        """Add sentences of the user as decisions, and mark those that they withdraw."""
        for sentence in sentences:
            self._supersede(number, sentence)
            self._keep(_fact(number, decision_type(sentence) or "clarification", sentence, by="user"))

    def accepted(self, number: int, proposal: str) -> None:
        """Add a proposal of the agent that the user accepted."""
        fact = _fact(number, decision_type(proposal) or "approach", proposal, by="user")
        self._keep(replace(fact, accepted=True))

    def facts(self) -> tuple[DecisionFact, ...]:
        return tuple(self.found)

    def _keep(self, fact: DecisionFact) -> None:
        """Add a decision unless it was made already; one with a reason replaces the same without."""
        about = _words(fact.quote)
        for index, before in enumerate(self.found[-40:], start=max(0, len(self.found) - 40)):
            if _same(about, _words(before.quote)):
                if fact.reason and not before.reason and not before.superseded_by:
                    self.found[index] = replace(fact, accepted=before.accepted or fact.accepted)
                return
        self.found.append(fact)
        if len(self.found) > MOST_DECISIONS:
            del self.found[next((i for i, each in enumerate(self.found) if each.by == "agent" and not each.reason), 0)]

    def _supersede(self, number: int, sentence: str) -> None:
        """Mark the latest decision on the same things as superseded if the sentence withdraws something."""
        if not takes_back(sentence):
            return
        meant = stems(sentence)
        for index in range(len(self.found) - 1, -1, -1):
            each = self.found[index]
            if not each.superseded_by and each.number < number and len(meant & stems(each.quote)) >= 2:
                self.found[index] = replace(each, superseded_by=number)
                return


def _fact(number: int, kind: DecisionType, sentence: str, *, by: str) -> DecisionFact:
    """Return the decision that a sentence contains."""
    return DecisionFact(
        number=number,
        type=kind,
        quote=sentence,
        by="user" if by == "user" else "agent",
        reason=reason(sentence),
        alternatives=alternatives(sentence),
    )


def _words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def _same(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return True if two texts have nearly the same words."""
    return bool(one) and len(one & other) >= 0.85 * max(len(one), len(other))
