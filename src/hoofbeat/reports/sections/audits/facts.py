"""What every section on an audit needs of it, read once: its pairs as numbers, its answers in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import polars
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.answers.source_citations import count_citations
from hoofbeat.audit.findings import Pairs, label_counts, pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels, Relations
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.records import Answer, Question
from hoofbeat.reports.model import SideView
from hoofbeat.reports.sections.audits.evidence import side_view

__all__ = [
    "AnswerKey",
    "Facts",
    "Said",
    "audit_domain",
    "question_texts",
    "read_facts",
    "said_by_sources",
    "state_of",
]

LEVELS = ("low", "medium", "high")
_GROUP = "group"
_TEXT = 700
FEW = 12
"""Of more sources than this only those that speak are shown question by question."""


AnswerKey = tuple[str, str]
"""Question and source: what identifies an answer of an audit."""


class Facts(Struct, frozen=True, kw_only=True):
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
    pairs: Pairs
    found: Relations

    def title(self, facet: str) -> str:
        """What a facet is called: the questions' group has the domain's own word, such as organ."""
        return self.pack.group_facet if self.pack and facet == _GROUP else facet

    @property
    def label_only(self) -> int:
        """Judgments of which only the label could be read, by scanning a reply that broke its contract."""
        count = self.audit.artefact.manifest.metrics.get("label_only", 0)
        return count if isinstance(count, int) else 0

    @property
    def weights(self) -> dict[str, float]:
        """How much each level of significance counts: one, two, three, …"""
        return {level: float(place) for place, level in enumerate(self.levels, start=1)}


class Said(Struct, frozen=True, kw_only=True):
    """What the sources said, of all answers in one pass.

    `slim` has every answer without its texts, `sides` those that are shown in full, `texts` those that are shown in
    short; `cited` counts answers, those that cite, and what came of checking their citations and quotes.
    """

    slim: list[Answer]
    sides: dict[AnswerKey, SideView]
    texts: dict[AnswerKey, Answer]
    cited: dict[str, int]

    @property
    def states(self) -> dict[AnswerKey, str]:
        """Of each answer whether the source `answered`, is `absent`, or `failed`."""
        return {(item.question, item.source): state_of(item) for item in self.slim}


def read_facts(audit: Audit) -> Facts:
    """Read the audit's table of pairs."""
    pack, domain = audit_domain(str(audit.artefact.manifest.settings.get("pack", "")))
    frame = audit.frame()
    pairs = pairs_of(frame, domain)
    names = facet_names(question.facets for question in audit.questions)
    first = [name for name in (_GROUP, pack.group_facet if pack else "", "topics") if name in names]
    return Facts(
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
    answers: Iterable[Answer], titles: dict[str, str], full: Collection[AnswerKey], short: Collection[str]
) -> Said:
    """Read the answers once: those of `full` are kept with their passages, those to the questions `short` as texts.

    Of many sources, those that are silent on a question are left out of its texts.
    """
    few = len(titles) <= FEW
    slim: list[Answer] = []
    sides: dict[AnswerKey, SideView] = {}
    texts: dict[AnswerKey, Answer] = {}
    cited: Counter[str] = Counter()
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
        if key in full:
            sides[key] = side_view(answer, titles.get(answer.source, ""))
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
    return Said(slim=slim, sides=sides, texts=texts, cited=dict(cited))


def question_texts(questions: Iterable[Question]) -> dict[str, str]:
    """The text of each question."""
    return {question.id: question.text for question in questions}
