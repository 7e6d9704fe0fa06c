"""What every section on an audit needs of it, read once: its pairs as numbers, its answers in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import polars
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_doubts import audit_doubts
from hoofbeat.audit.citations import cites_heading
from hoofbeat.audit.findings.pair_arrays import AuditPairs, label_counts, pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels, Relations
from hoofbeat.audit.silence import NEAREST, SEARCHED, TURNED_DOWN, was_searched
from hoofbeat.audit.silence import STAGE as SILENCE
from hoofbeat.audit.source_citations import count_citations, is_grounded
from hoofbeat.audit.source_names import SourceName, SourceNames
from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.records import Answer, Document, Passage, Question
from hoofbeat.reports.item_views import failure_text
from hoofbeat.reports.model import PassageView, SideView, TraceView

_HERO = "hero"
_ANSWER = 3000
_CITED, _CITED_TEXT = 3, 1600
_OTHERS, _OTHER_TEXT = 5, 420


def side_view(answer: Answer, name: SourceName) -> SideView:
    """One source's side of a pair: what it says, and what it says it by."""
    told = silent_text(answer)
    if answer.absent and any(step.stage == SILENCE for step in answer.trace):
        return _silent_side(answer, name, told)
    named = () if told else answer.citations
    cited = [each for each in answer.evidence if any(cites_heading(citation, each.heading) for citation in named)]
    others = [passage for passage in answer.evidence if passage not in cited]
    quotes = {
        (place, step.text)
        for step in answer.trace
        if step.what in ("quoted", "quote elsewhere")
        for place in step.found
    }
    return SideView(
        name=name.full,
        id=name.id,
        text=told or _kept(answer.text),
        cited=tuple(_view(passage, quotes, _CITED_TEXT, cited=True) for passage in cited[:_CITED]),
        others=tuple(_view(passage, quotes, _OTHER_TEXT) for passage in others[:_OTHERS]),
        unshown=max(0, len(others) - _OTHERS) + max(0, len(cited) - _CITED),
        warnings=answer.warnings,
        partly=was_searched(answer),
        trace=_search_trace(answer),
    )


def miss_notes(label: str, domain: RelationLabels, sides: Iterable[SideView]) -> list[str]:
    """Of a pair that is not consistent: which sources were read in parts, so that the difference may be a miss."""
    if label not in domain.order or label in (domain.consistent, domain.absent):
        return []
    parts = [side.name for side in sides if side.partly]
    return (
        [f"only parts of {' and of '.join(parts)} were searched and read, so the rest may say otherwise"]
        if parts
        else []
    )


def _silent_side(answer: Answer, name: SourceName, told: str) -> SideView:
    """The side of a source that is silent: what was searched, what came nearest, what the check turned down."""
    steps = [step for step in answer.trace if step.stage == SILENCE]
    headings = {passage.id: passage.heading or passage.document for passage in answer.evidence}
    near = []
    for step in steps:
        if step.what == NEAREST:
            score, _, text = step.text.partition(" · ")
            heading = headings.get(step.found[0], "") if step.found else ""
            source = f"nearest, score {score} of 1 · {heading}"
            near.append(PassageView(source=source, text=text.removeprefix(f"{heading}: "), marks=()))
    how = [f"What was searched: {step.text}." for step in steps if step.what == SEARCHED]
    down = [f"Answer that the absence check rejected: {step.text}" for step in steps if step.what == TURNED_DOWN]
    return SideView(
        name=name.full,
        id=name.id,
        text=" ".join([told, *how, *down]),
        others=tuple(near),
        unshown=max(0, len(answer.evidence) - len(near)),
        warnings=answer.warnings,
        trace=_search_trace(answer),
    )


def _search_trace(answer: Answer) -> tuple[TraceView, ...]:
    """What each layer of HERO gave, where the source was searched; ids of passages are left out."""
    steps = [step for step in answer.trace if step.stage == _HERO]
    if not any(step.what == "searched" for step in steps):
        return ()
    return tuple(TraceView(what=f"{_HERO}: {step.what}", text=step.text) for step in steps)


def silent_text(answer: Answer) -> str:
    """What is said of a source that gives no answer; empty for one that does."""
    if answer.failure:
        return f"No answer. {failure_text(answer.failure)}"
    if answer.absent is None:
        return "It is unknown whether the source addresses the question."
    return "Silent: the source does not address the question." if answer.absent else ""


def _kept(text: str) -> str:
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}… (the first {_ANSWER:,} of {len(text):,} characters)"


def _view(passage: Passage, quotes: set[tuple[str, str]], most: int, *, cited: bool = False) -> PassageView:
    """A passage, cut, with the words that the answer quotes from it marked."""
    found = _quoted(passage, sorted(words for place, words in quotes if place == passage.id))
    first = max(0, found[0][0] - most // 4) if found and found[0][1] > most else 0
    first = passage.text.find(" ", first) + 1 if first else 0
    text = passage.text[first : first + most].rstrip()
    lead = "… " if first else ""
    shown = f"{lead}{text}{' …' if first + len(text) < len(passage.text.rstrip()) else ''}"
    marks, reached = [], 0
    for start, end in found:
        low, high = max(reached, start - first + len(lead)), min(len(lead) + len(text), end - first + len(lead))
        if low < high:
            marks.append((low, high))
            reached = high
    page = f"page {passage.page}" if passage.page is not None else ""
    cut = f"{len(text):,} of {len(passage.text):,} characters" if len(text) < len(passage.text.rstrip()) else ""
    source = " · ".join(part for part in (passage.heading or passage.document, page, cut) if part)
    return PassageView(source=source, text=shown, marks=tuple(marks), cited=cited)


def _quoted(passage: Passage, quotes: list[str]) -> list[tuple[int, int]]:
    """Where the quotes stand in the passage, in order."""
    document = Document(id=passage.document, title="", text=passage.text)
    found = (find_quote(document, quote) for quote in quotes)
    return sorted((span.start, span.end) for each in found if each is not None for span in each.spans)


LEVELS = ("low", "medium", "high")
_GROUP = "group"
_TEXT = 700
FEW = 12
"""Of more sources than this only those that speak are shown question by question."""


AnswerKey = tuple[str, str]
"""Question and source: what identifies an answer of an audit."""


class AuditFacts(Struct, frozen=True, kw_only=True):
    """An audit with its domain and its pairs.

    `facets` are the facets of its questions to group by, the domain's groups first. `levels` are the levels of
    significance, least first.
    """

    audit: Audit
    pack: Pack | None
    domain: RelationLabels
    levels: tuple[str, ...]
    facets: tuple[str, ...]
    frame: polars.LazyFrame
    pairs: AuditPairs
    found: Relations

    def title(self, facet: str) -> str:
        """What a facet is called: the questions' group has the domain's own word, such as organ."""
        return self.pack.group_facet if self.pack and facet == _GROUP else facet

    @property
    def names(self) -> SourceNames:
        """What people call the sources."""
        return self.audit.names

    @property
    def label_only(self) -> int:
        """Judgments of which only the label could be read, by scanning a reply that broke its contract."""
        count = self.audit.artefact.manifest.metrics.get("label_only", 0)
        return count if isinstance(count, int) else 0

    @property
    def weights(self) -> dict[str, float]:
        """How much each level of significance counts: one, two, three, …"""
        return {level: float(place) for place, level in enumerate(self.levels, start=1)}


class AuditAnswers(Struct, frozen=True, kw_only=True):
    """What the sources said, of all answers in one pass.

    `slim` has every answer without its texts, `sides` those that are shown in full, `texts` those that are shown in
    short; `cited` counts answers, those that cite, and what came of checking their citations and quotes. `grounded` are
    answers that quote what was shown and that no check objects to.
    """

    slim: list[Answer]
    sides: dict[AnswerKey, SideView]
    texts: dict[AnswerKey, Answer]
    cited: dict[str, int]
    grounded: frozenset[AnswerKey] = frozenset()

    @property
    def states(self) -> dict[AnswerKey, str]:
        """Of each answer whether the source `answered`, is `absent`, or `failed`."""
        return {(item.question, item.source): state_of(item) for item in self.slim}


def facts_doubts(facts: AuditFacts, said: AuditAnswers) -> tuple[str, ...]:
    """Why this audit can't tell that its sources agree; also of audits whose manifest does not say it."""
    found = facts.found
    return audit_doubts(
        facts.audit.artefact.manifest.models,
        said.cited,
        judged=found.judged,
        pairs=found.pairs,
        questions=len(facts.audit.questions),
    )


def read_facts(audit: Audit) -> AuditFacts:
    """Read the audit's table of pairs."""
    pack, domain = audit_domain(str(audit.artefact.manifest.settings.get("pack", "")))
    frame = audit.frame()
    pairs = pairs_of(frame, domain)
    names = facet_names(question.facets for question in audit.questions)
    first = [name for name in (_GROUP, pack.group_facet if pack else "", "topics") if name in names]
    return AuditFacts(
        audit=audit,
        pack=pack,
        domain=domain,
        levels=tuple(pack.significance_levels) if pack else LEVELS,
        facets=tuple(dict.fromkeys([*first, *names])),
        frame=frame,
        pairs=pairs,
        found=label_counts(pairs, audit.questions, domain),
    )


def audit_domain(setting: str) -> tuple[Pack | None, RelationLabels]:
    """The pack an audit names and its labels; the five usual ones where this version does not know the pack."""
    try:
        pack = load_pack(setting.partition("@")[0])
    except UsageError:
        return None, FIVE_RELATIONS
    return pack, RelationLabels.of(pack.labels)


def state_of(answer: Answer) -> str:
    """Whether the source `answered`, is `absent`, or the answer `failed`."""
    if answer.failure is not None or answer.absent is None:
        return "failed"
    return "absent" if answer.absent else "answered"


def said_by_sources(
    answers: Iterable[Answer], names: SourceNames, full: Collection[AnswerKey], short: Collection[str]
) -> AuditAnswers:
    """Read the answers once: those of `full` are kept with their passages, those to the questions `short` as texts.

    Of many sources, those that are silent on a question are left out of its texts.
    """
    few = len(names) <= FEW
    slim: list[Answer] = []
    sides: dict[AnswerKey, SideView] = {}
    texts: dict[AnswerKey, Answer] = {}
    cited: Counter[str] = Counter()
    grounded: set[AnswerKey] = set()
    for answer in answers:
        key = answer.question, answer.source
        bare = Answer(
            question=answer.question,
            model="",
            condition="",
            source=answer.source,
            absent=answer.absent,
            failure=answer.failure,
        )
        slim.append(bare)
        cited.update(count_citations([answer]))
        if is_grounded(answer):
            grounded.add(key)
        if key in full:
            sides[key] = side_view(answer, names[answer.source])
        if answer.question in short and (few or not answer.absent):
            text = answer.text if len(answer.text) <= _TEXT else f"{answer.text[:_TEXT]}…"
            texts[key] = Answer(
                question=answer.question,
                model="",
                condition="",
                source=answer.source,
                text=text,
                absent=answer.absent,
                citations=answer.citations,
                failure=answer.failure,
            )
    return AuditAnswers(slim=slim, sides=sides, texts=texts, cited=dict(cited), grounded=frozenset(grounded))


def question_texts(questions: Iterable[Question]) -> dict[str, str]:
    """The text of each question."""
    return {question.id: question.text for question in questions}
