"""What each section of a document is for: the case presentation, the tests, the discussion, ...

Recipes take their questions from the case presentation and must not see the discussion, so somebody has to say which
is which, over all the headings real reports use and for those that use none. Headings are looked up in
`data/roles.toml`; where they do not tell, the text does. Every decision comes with a confidence and its reason
(`section_roles`); `assign_roles` writes the roles into the document, `find_case` says where the case is.

Letters, image pages and many older reports give their case no heading. Its paragraphs can be told by what is said in
them: a person of an age who presented, findings with units, a course in the past tense; the literature is told by
citations and general statements. Both are counted features; the case is the run of paragraphs whose scores add up to
most. Nothing is random and nothing is learned, so every decision can be read off.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from hoofbeat.records import Document, Section


class Role(StrEnum):
    """What a section is for. An empty role means that neither heading nor text says."""

    ABSTRACT = "abstract"  # abstracts, highlights, key points before the text
    INTRODUCTION = "introduction"
    CASE = "case"  # the case presentation as a whole, a timeline, a course
    PATIENT = "patient"  # patient information: complaint, history, examination
    TESTS = "tests"  # laboratory, imaging, pathology and their results
    DIAGNOSIS = "diagnosis"  # differential and final diagnosis
    TREATMENT = "treatment"  # management, intervention, operation
    OUTCOME = "outcome"  # follow-up and outcome
    METHODS = "methods"
    RESULTS = "results"
    DISCUSSION = "discussion"
    CONCLUSION = "conclusion"  # conclusions, learning points
    BACK = "back"  # acknowledgements, statements, appendices, footnotes


CASE_ROLES = frozenset({Role.CASE, Role.PATIENT, Role.TESTS, Role.DIAGNOSIS, Role.TREATMENT, Role.OUTCOME})
_WHOLE = frozenset({Role.ABSTRACT, Role.BACK})
_APART = frozenset({Role.DISCUSSION, Role.METHODS, Role.RESULTS, Role.CONCLUSION, Role.INTRODUCTION})
_UNSEARCHED = frozenset({*_WHOLE, Role.METHODS, Role.DISCUSSION, Role.CONCLUSION})

_GLUED = re.compile(r"^pmc(?=[A-Z0-9 ])")
_NUMBER = re.compile(r"^(?:section |part )?(?:\(?\d{1,2}(?:\.\d{1,2})*[.):]?|[ivx]{1,4}[.):]|[a-h][.)])\s+")
_EDGE = re.compile(r"^[\W_]+|[\s:.;,*–—-]+$")
_SPACES = re.compile(r"[\s_]+")
_AMERICAN = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"aem(?=[aio])", "em"),
        (r"an?aesth", "anesth"),
        (r"\b([io]?)aetiolog", r"\1etiolog"),
        (r"paed", "ped"),
        (r"oed", "ed"),
        (r"isation", "ization"),
        (r"judgement", "judgment"),
        (r"acknowledgement", "acknowledgment"),
    )
)
_PLURALS = {"diagnoses": "diagnosis", "analyses": "analysis", "histories": "history", "studies": "study"}
_UNSURE = 0.6
_ASIDE = 2.0
_LITERATURE = 0.9
_SHORT = 200
_DEPTH = re.compile(r"^(?:pmc)?\d{1,2}((?:\.\d{1,2})*)")
_POINTS = re.compile(r"point|highlight|core tip|message|objective", re.IGNORECASE)


class RoleGuess(Struct, frozen=True):
    """A section's role, how sure that is (0 to 1), and what told it."""

    role: str
    confidence: float
    reason: str


class _Table(Struct, frozen=True):
    whole: dict[str, str]
    weak: frozenset[str]
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    joiner: re.Pattern[str]
    features: tuple[Feature, ...]


@cache
def _table() -> _Table:
    raw = resources.files("hoofbeat.corpus").joinpath("data/roles.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(raw)
    whole: dict[str, str] = {}
    patterns: list[tuple[str, re.Pattern[str]]] = []
    for role, entry in data["roles"].items():
        for heading in entry["headings"]:
            whole.setdefault(_normalised(heading), Role(role).value)
        patterns += [(Role(role).value, re.compile(pattern)) for pattern in entry["patterns"]]
    words = "|".join(re.escape(word) for word in data["compound"]["joiners"])
    return _Table(
        whole=whole,
        weak=frozenset(map(_normalised, data["weak"]["headings"])),
        patterns=tuple(patterns),
        joiner=re.compile(rf"\s+(?:{words})\s+|\s*/\s*|,\s+"),
        features=tuple(
            Feature(
                name=each["name"],
                pattern=re.compile(each["pattern"]),
                weight=each["weight"],
                max_count=each["max_count"],
            )
            for each in data["content"]
        ),
    )


def _normalised(heading: str) -> str:
    """A heading without numbering, case, punctuation and plural endings, in American spelling."""
    text = _GLUED.sub("", heading.strip()).casefold().replace("’", "'").replace("‐", "-")
    text = _EDGE.sub("", _NUMBER.sub("", _SPACES.sub(" ", text)))
    for pattern, plain in _AMERICAN:
        text = pattern.sub(plain, text)
    return " ".join(map(_singular, text.split(" ")))


def _singular(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui'" else word


@lru_cache(maxsize=4096)
def heading_role(heading: str) -> RoleGuess | None:
    """The role a heading tells, or None. A compound heading ("Case report and discussion") tells its first."""
    table, text = _table(), _normalised(heading)
    if not text:
        return None
    if text in table.whole:
        unsure = text in table.weak
        return RoleGuess(table.whole[text], _UNSURE if unsure else 0.98, f"heading: {text}")
    roles = _compound(text)
    if len(roles) > 1:
        return RoleGuess(roles[0], 0.85, f"compound heading: {' and '.join(roles)}")
    for role, pattern in table.patterns:
        if pattern.search(text):
            return RoleGuess(role, 0.9, f"heading like: {pattern.pattern}")
    return RoleGuess(roles[0], 0.85, f"part of the heading: {text}") if roles else None


def _compound(text: str) -> tuple[str, ...]:
    """The roles that a heading's parts tell, each once."""
    table = _table()
    parts = table.joiner.split(text)
    if len(parts) == 1:
        return ()
    return tuple(dict.fromkeys(table.whole[part] for part in parts if part in table.whole))


def role_of(heading: str, parent: str = "") -> str:
    """What a section is for, told by its heading alone; a subsection that does not tell is for what its parent is."""
    if parent in _WHOLE:
        return parent
    guess = heading_role(heading)
    if guess is None or guess.confidence <= _UNSURE or (parent in _APART and guess.role in CASE_ROLES - {Role.CASE}):
        return parent
    return guess.role


def section_roles(document: Document) -> tuple[RoleGuess, ...]:
    """The role of each section of a document, with confidence and reason; sections are taken as they are."""
    return tuple(_Reading(document).guesses())


def assign_roles(document: Document) -> Document:
    """The document with every section's role.

    Where a case has no heading, the section it stands in is parted: the pieces follow each other as
    sections without headings, so that the text and all offsets stay what they were.
    """
    while True:
        sections = [
            section if section.role == guess.role else msgspec.structs.replace(section, role=str(guess.role))
            for section, guess in zip(document.sections, section_roles(document), strict=True)
        ]
        parted = _parted(document, sections)
        done = len(parted) == len(document.sections)
        document = document if parted == document.sections else msgspec.structs.replace(document, sections=parted)
        if done:
            return document


def case_spans(document: Document) -> tuple[tuple[int, int], ...]:
    """Where the case presentation is: runs of sections with a role of a case, in reading order."""
    spans: list[tuple[int, int]] = []
    before = False
    for section in document.sections:
        inside = section.role in CASE_ROLES
        if inside and before:
            spans[-1] = spans[-1][0], section.end
        elif inside:
            spans.append((section.start, section.end))
        before = inside
    if any(section.role == Role.CASE for section in document.sections):
        return tuple(spans)
    found = [each for span in spans for each in paragraphs(document.text, *span, _table().features)]
    return tuple(spans) if sum(each.score for each in found) >= MIN_RUN else ()


def role_spans(document: Document) -> Iterator[tuple[str, int, int]]:
    """Role, start and end of each section that has one and has text, its subsections included.

    What tells of the patient, tests, diagnosis, treatment or outcome is also part of the case.
    """
    for place, section in enumerate(document.sections):
        if not section.role:
            continue
        end, has_text = section.end, section.end > section.body
        for below in document.sections[place + 1 :]:
            if below.level <= section.level:
                break
            end, has_text = below.end, has_text or below.end > below.body
        if has_text:
            yield section.role, section.start, end
            if section.role in CASE_ROLES and section.role != Role.CASE:
                yield Role.CASE, section.start, end


def find_case(document: Document) -> tuple[int, int] | None:
    """The longest span of the case presentation in a document that has its roles; None where it has no case."""
    return max(case_spans(document), key=lambda span: span[1] - span[0], default=None)


def _told(document: Document, section: Section) -> float:
    """The sum of a section's paragraph scores: more than nothing where it tells of a patient."""
    return sum(each.score for each in paragraphs(document.text, section.body, section.end, _table().features))


class _Reading:
    """One pass over a document's sections, with what came before."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.flat = len({section.level for section in document.sections}) <= 1
        self.discussed = False
        self.case_seen = False

    def guesses(self) -> Sequence[RoleGuess]:
        """A guess per section."""
        above: list[tuple[int, str]] = []
        found: list[RoleGuess] = []
        for section in self.document.sections:
            level = section.level + (_depth(section.heading) if self.flat else 0)
            while above and above[-1][0] >= level:
                above.pop()
            guess = self._guess(section, above[-1][1] if above else "", found[-1] if found else None)
            above.append((level, guess.role))
            found.append(guess)
            self.discussed = self.discussed or (guess.role == Role.DISCUSSION and guess.confidence > _UNSURE)
            self.case_seen = self.case_seen or guess.role in CASE_ROLES
        return found

    def _guess(self, section: Section, parent: str, before: RoleGuess | None) -> RoleGuess:
        if section.role in _WHOLE:
            return RoleGuess(section.role, 0.95, "stated by the format")
        if parent in _WHOLE:
            return RoleGuess(parent, 0.95, "part of its parent")
        told = heading_role(section.heading) if section.heading else None
        if told is not None and (guess := self._weighed(told, section, parent)) is not None:
            return guess
        if section.heading and told is None and (parent or section.role) in CASE_ROLES:
            story = _told(self.document, section)
            if story < -_LITERATURE:
                return RoleGuess(Role.DISCUSSION, 0.5, f"discusses the literature (score {story:.1f})")
        if parent and section.heading:
            return RoleGuess(parent, 0.8, "as its parent")
        if section.role:
            return RoleGuess(section.role, 0.9, "stated by the format or its parent")
        if parent:
            return RoleGuess(parent, 0.8, "as its parent")
        return self._by_content(section, before)

    def _weighed(self, told: RoleGuess, section: Section, parent: str) -> RoleGuess | None:
        """What a heading tells, in the light of where it stands; None where that speaks against it."""
        if told.role in CASE_ROLES:
            around = parent or (Role.DISCUSSION if self.discussed else "")
            misplaced = around in _APART and (told.role != Role.CASE or told.confidence < 0.95)
            unsure = told.confidence <= _UNSURE and parent not in CASE_ROLES and not self.case_seen
            if (misplaced or unsure) and _told(self.document, section) <= 0:
                return RoleGuess(around, 0.6, f"{told.reason}, but it tells no patient's story") if misplaced else None
            return told
        if parent in CASE_ROLES and told.role in {Role.RESULTS, Role.METHODS, Role.INTRODUCTION}:
            return RoleGuess(parent, 0.7, "as its parent")
        return told

    def _by_content(self, section: Section, before: RoleGuess | None) -> RoleGuess:
        found = paragraphs(self.document.text, section.body, section.end, _table().features)
        run = best_run(found)
        told = sum(each.score for each in found)
        if run is not None and told - run[2] > -_ASIDE:
            return RoleGuess(Role.CASE, 0.7, f"tells a patient's story (score {run[2]:.1f})")
        if self.flat and section.heading and self.case_seen and before is not None and before.role:
            if before.role in CASE_ROLES and told < -_LITERATURE:
                return RoleGuess(Role.DISCUSSION, 0.5, f"discusses the literature (score {told:.1f})")
            return RoleGuess(before.role, 0.5, "continues the section before")
        return RoleGuess("", 0.0, "neither heading nor text says")


def _depth(heading: str) -> int:
    """How deep a numbered heading stands: nothing for `2`, one for `2.1`."""
    match = _DEPTH.match(heading)
    return match.group(1).count(".") if match else 0


def _parted(document: Document, sections: Sequence[Section]) -> tuple[Section, ...]:
    """The sections, parted where a case stands in one without its own heading or goes on as something else."""
    best = _hidden_case(document, sections)
    discussed = best is not None or any(section.role == Role.DISCUSSION for section in sections)
    last = max((place for place, section in enumerate(sections) if section.role in CASE_ROLES), default=-1)
    result: list[Section] = []
    for place, section in enumerate(sections):
        if best is not None and place == best[0]:
            result += _pieces(document.text, section, best[1], best[2])
        elif _holds_more(document, section, last=place == last and not discussed):
            result += _cut(document, section)
        else:
            result.append(section)
    return tuple(result)


def _holds_more(document: Document, section: Section, *, last: bool) -> bool:
    """Whether a case's section holds the discussion too: its heading says so, or it is long and nothing else does."""
    if not section.heading or section.role not in CASE_ROLES:
        return False
    if last and section.end - section.body > 0.35 * len(document.text):
        return True
    return Role.DISCUSSION in _compound(_normalised(section.heading))


def _cut(document: Document, section: Section) -> list[Section]:
    """A section of a case that holds the discussion too, cut by content."""
    found = paragraphs(document.text, section.body, section.end, _table().features)
    count = best_start(found)
    if not 0 < count < len(found):
        run = best_run(found)
        return [section] if run is None else _pieces(document.text, section, found[run[0]].start, found[run[1]].end)
    return _pieces(document.text, section, section.body, found[count - 1].end)


def _hidden_case(document: Document, sections: Sequence[Section]) -> tuple[int, int, int] | None:
    """The section in which the clearest story stands, and where, in a document that has no section for its case."""
    if sum(section.end - section.body for section in sections if section.role == Role.CASE) > _SHORT:
        return None
    parts = any(section.role in CASE_ROLES and section.role != Role.CASE for section in sections)
    if document.kind == "article" and any(section.role in {Role.METHODS, Role.RESULTS} for section in sections):
        return None
    best: tuple[float, int, int, int] | None = None
    for place, section in enumerate(sections):
        if not _searched(section, parts):
            continue
        found = paragraphs(document.text, section.body, section.end, _table().features)
        run = best_run(found)
        if run is not None and (best is None or run[2] > best[0]):
            best = run[2], place, found[run[0]].start, found[run[1]].end
    return None if best is None else best[1:]


def _searched(section: Section, parts: bool) -> bool:
    if parts:
        return not section.heading and not section.role
    if section.role in {Role.ABSTRACT, Role.CONCLUSION}:
        return bool(_POINTS.search(section.heading))
    return section.role not in _UNSEARCHED


def _pieces(text: str, section: Section, start: int, end: int) -> list[Section]:
    """A section in up to three pieces: what stands before the case, the case, and what follows it."""
    told = section.role in CASE_ROLES
    before = Role.INTRODUCTION.value if told or not section.role else section.role
    inside = section.role if told else Role.CASE.value
    cuts = [section.body, *(place for place in (start, end) if section.body < place < section.end), section.end]
    pieces: list[Section] = []
    for first, last in pairwise(cuts):
        role = inside if start <= first < end else (Role.DISCUSSION.value if first >= end else before)
        left = first + len(text[first:last]) - len(text[first:last].lstrip())
        right = first + len(text[first:last].rstrip())
        if left < right:
            piece = Section(heading="", level=section.level, start=left, body=left, end=right, role=role)
            pieces.append(msgspec.structs.replace(piece, page=section.page))
    head = msgspec.structs.replace(pieces[0], heading=section.heading, start=section.start)
    return [head, *pieces[1:]]


MIN_RUN = 3.2
PER_PARAGRAPH = 4.0
TYPICAL_LENGTH = 900
MIN_PROSE = 40

_LINE = re.compile(r"[^\n]+")
_FLOAT = re.compile(r"\W*(fig(ure)?s?|table|video|image|supplement\w*)\b[\s.]*\w?\d", re.IGNORECASE)


class Feature(Struct, frozen=True, kw_only=True):
    """Something a paragraph may say, what it counts and how often at most."""

    name: str
    pattern: re.Pattern[str]
    weight: float
    max_count: int


class ScoredParagraph(Struct, frozen=True):
    """A paragraph of a document and how much it reads like a patient's story (more than nothing: it does)."""

    start: int
    end: int
    score: float
    opens: bool


def paragraphs(text: str, start: int, end: int, features: Sequence[Feature]) -> list[ScoredParagraph]:
    """The paragraphs between two places of a text, each with its score; captions and table rows score nothing."""
    found = []
    for match in _LINE.finditer(text, start, end):
        line = match.group()
        if line.strip():
            found.append(ScoredParagraph(match.start(), match.end(), *score(line, features)))
    return found


def score(text: str, features: Sequence[Feature]) -> tuple[float, bool]:
    """A paragraph's score, and whether it introduces a person by age."""
    if (len(text) < MIN_PROSE and text[-1] != ".") or "\t" in text or " | " in text or _FLOAT.match(text):
        return 0.0, False
    lowered = text.lower()
    scale = min(1.0, TYPICAL_LENGTH / len(text))
    total, opens = 0.0, False
    for feature in features:
        count = 0
        for count, _ in enumerate(feature.pattern.finditer(lowered), start=1):
            if count * scale >= feature.max_count:
                break
        if not count:
            continue
        if feature.name == "opening":
            total += feature.weight
            opens = True
        else:
            total += feature.weight * min(count * scale, feature.max_count)
    return max(-PER_PARAGRAPH, min(PER_PARAGRAPH, total)), opens


def best_run(found: Sequence[ScoredParagraph]) -> tuple[int, int, float] | None:
    """First and last paragraph of the run whose scores add up to most, and the sum; None where there is no story.

    A run begins with a paragraph that speaks for itself, names a person by age somewhere in its first three, and is
    worth at least as much as one clear paragraph.
    """
    best: tuple[float, int, int] | None = None
    total, first = 0.0, 0
    for place, paragraph in enumerate(found):
        if total <= 0:
            total, first = 0.0, place
        total += paragraph.score
        if paragraph.score > 0 and total >= MIN_RUN and (best is None or total > best[0]):
            opened = any(each.opens for each in found[first : first + 3])
            best = (total, first, place) if opened else best
    if best is None:
        return None
    return best[1], best[2], best[0]


def best_start(found: Sequence[ScoredParagraph]) -> int:
    """How many paragraphs from the first on tell most of a patient's story; all where what follows tells on."""
    best, count, total = 0.0, 0, 0.0
    for place, paragraph in enumerate(found, start=1):
        total += paragraph.score
        if total >= best:
            best, count = total, place
    return count
