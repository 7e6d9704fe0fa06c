"""Two audits of the same questions in a report: did disagreement become more frequent, stronger, or only visible?"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.audit_changes import label_shift, reworded_questions, split_between, split_by
from hoofbeat.audit.findings.pair_arrays import AuditPairs, pairs_of
from hoofbeat.audit.findings.relations import PrevalenceIntensity, ShareChange
from hoofbeat.audit.findings.table_agreement import JoinedPairs, join
from hoofbeat.facets import facet_names
from hoofbeat.findings.intervals import Interval
from hoofbeat.reports.charts import number_matrix
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, figure
from hoofbeat.reports.sections.audits.audit_facts import audit_domain
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, judge_name, model_name, triple, written
from hoofbeat.store import Artefact, Manifest
from hoofbeat.text import cut


def change_cards(found: PrevalenceIntensity, about: str = "") -> tuple[Card, ...]:
    """Silence, disagreement of the same pairs and questions, what became visible; `about` begins each detail."""
    pairs, questions = count_of(found.pairs_in_both, "pair"), count_of(found.questions, "question")
    shown = (
        ("Pairs with a silent source (R_abs)", found.r_abs, questions),
        ("Pairs that disagree, of those judged in both (intensity)", found.intensity, pairs),
        ("Questions with any disagreement (pct_any_div)", found.any_div, questions),
        ("The same at fixed coverage (prevalence)", found.prevalence, questions),
    )
    cards = [
        Card(
            label=what,
            value=f"{written(change.before, 'share')} → {written(change.after, 'share')}",
            detail=f"{about}{_told(change.change, change.interval)}, n\u00a0=\u00a0{of}",
        )
        for what, change, of in shown
    ]
    visible = Card(
        label="Questions whose disagreement only one audit could see (by coverage)",
        value=f"{written(found.by_coverage, 'points')} points",
        detail=f"{about}{_told(found.by_coverage, found.by_coverage_interval)}, n\u00a0=\u00a0{questions}",
    )
    return (*cards, visible)


def change_in_words(found: PrevalenceIntensity) -> str:
    """Whether pairs that both audits judged disagree more, and how much comes from pairs that only one could judge."""
    stronger = found.intensity
    if stronger.change is None:
        return "No pair was judged in both audits, so nothing shows whether sources disagree more."
    span = stronger.interval
    clear = "clearly more often" if span and span.low > 0 else "clearly less often" if span and span.high < 0 else ""
    same = f"disagree {clear}" if clear else "show no clear change"
    return (
        f"Pairs judged in both audits {same}: {_told(stronger.change, span)}. Questions with any disagreement changed "
        f"by {written(found.any_div.change, 'points')} points, of which {written(found.prevalence.change, 'points')} "
        f"are due to those pairs and {written(found.by_coverage, 'points')} to pairs that only one audit judged."
    )


def _told(change: float | None, span: Interval | None) -> str:
    """A change in words, with its interval where it has one."""
    interval = f" (95% interval {written((span.low, span.high), 'points')}{span.few_note})" if span else ""
    return f"{written(change, 'points')} points{interval}" if change is not None else "the change is unknown"


_INPUTS = {"corpus": "texts of the sources", "answers": "answers that were given"}


def differing(first: Audit, second: Audit) -> list[str]:
    """A sentence for each thing: judge, model, mode, pack, prompts, and what the audits were made of."""
    before, after = first.artefact.manifest, second.artefact.manifest
    told = []
    named = {
        "judge": [judge_name(each.models) for each in (before, after)],
        "answering model": [model_name(each.models.get("answer", "")) for each in (before, after)],
    }
    for what, names in named.items():
        if names[0] != names[1]:
            told.append(f"The {what} differs ({names[0]}, then {names[1]}): this may have changed labels.")
    if first.mode != second.mode:
        told.append(f"Pairs were judged in {first.mode} mode before and in {second.mode} mode after.")
    packs = [str(each.settings.get("pack", "")) for each in (before, after)]
    if packs[0] != packs[1]:
        told.append(f"The domain pack changed in between ({packs[0]}, then {packs[1]}).")
    prompts = sorted(
        name for name in before.prompts.keys() & after.prompts.keys() if before.prompts[name] != after.prompts[name]
    )
    if prompts:
        told.append(f"These prompts changed in between: {', '.join(prompts)}.")
    for kind, what in _INPUTS.items():
        one, two = _hashes(before, kind), _hashes(after, kind)
        if one and two and one != two:
            told.append(f"The {what} are not the same in both: this may have changed labels.")
    return told


def _hashes(manifest: Manifest, kind: str) -> set[str]:
    return {each.sha256 for each in manifest.inputs if each.kind == kind}


_NO_LABEL = "no label"
_NOTE = (
    "Change from the first audit to the second, in percentage points, with 95% intervals from resampling the same "
    "questions in both (1,000 samples, seed 0). A silent source can't disagree. What changed only because more pairs "
    "are answered is listed under coverage."
)


class _Opened(Struct, frozen=True):
    """An audit with its pairs, and the prefix of its chapter."""

    audit: Audit
    pairs: AuditPairs
    prefix: str

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.audit.artefact.path.name


def shift_chapters(audits: Sequence[tuple[str, Artefact]]) -> list[Chapter]:
    """A chapter for every audit that follows another of the same questions, in the order given."""
    return [part for _, part in shifts(audits)]


def shifts(audits: Sequence[tuple[str, Artefact]]) -> list[tuple[frozenset[str], Chapter]]:
    """The same, each with the prefixes of the two audits it is about."""
    parts: list[tuple[frozenset[str], Chapter]] = []
    opened: list[_Opened] = []
    for prefix, artefact in audits if len(audits) > 1 else ():
        audit = Audit(artefact)
        domain = audit_domain(str(artefact.manifest.settings.get("pack", "")))[1]
        after = _Opened(audit, pairs_of(audit.frame(), domain), prefix)
        asked = set(after.pairs.questions)
        before = next((each for each in reversed(opened) if not asked.isdisjoint(each.pairs.questions)), None)
        if before is not None:
            parts.append((frozenset((before.prefix, prefix)), _part(before, after, f"{prefix}-shift")))
        opened.append(after)
    return parts


def _part(before: _Opened, after: _Opened, prefix: str) -> Chapter:
    title = f"From {before.name} to {after.name}"
    if before.pairs.domain != after.pairs.domain:
        warning = "The two audits use different labels, so their rates can't be compared."
        return Chapter(title=title, id=prefix, blocks=(Notice(warning),))
    if reworded := reworded_questions(before.audit.questions, after.audit.questions):
        warning = (
            f"The two audits use the same id for different questions ({cut(', '.join(reworded), 200)}), so they "
            f"can't be compared."
        )
        return Chapter(title=title, id=prefix, blocks=(Notice(warning),))
    joined = join(before.pairs, after.pairs, before.pairs.domain)
    found = split_between(joined)
    failed = sum(found.failed)
    blocks: list[Block] = [
        Text(
            f"{count_of(found.questions, 'question')} asked in both audits ({found.one_audit_only:,} in one only, left "
            f"out), {count_of(found.pairs_in_both, 'pair')} of sources answered in both"
            + (f"; {count_of(failed, 'pair')} without a label count as not answered." if failed else ".")
        ),
        *(Notice(sentence) for sentence in differing(before.audit, after.audit)),
        _rates(found, prefix),
        *_groups(joined, after.audit, found.questions, prefix),
        *_moves(joined, prefix),
    ]
    told = Lead(f"{title}: {change_in_words(found)}", f"#{prefix}", "See what changed")
    return Chapter(title=title, id=prefix, blocks=tuple(blocks), cards=change_cards(found, f"{title}: "), leads=(told,))


def _points(change: ShareChange) -> Cell:
    return triple(change.change, change.interval) if change.interval else None


def _coverage(found: PrevalenceIntensity) -> Cell:
    return triple(found.by_coverage, found.by_coverage_interval)


def _rates(found: PrevalenceIntensity, prefix: str) -> Table:
    def row(name: str, change: ShareChange, meaning: str) -> tuple[Cell, ...]:
        return name, change.before, change.after, _points(change), meaning

    return Table(
        name=f"{prefix}-rates",
        caption="What changed between the audits",
        n=found.questions,
        unit="questions",
        columns=columns_of("rate | before:share | after:share | change, points:points | meaning"),
        rows=(
            row("R_abs", found.r_abs, "pairs with a silent source, of all pairs"),
            row("R_div", found.r_div, "pairs that diverge, of each audit's answered pairs"),
            row("intensity", found.intensity, "pairs that diverge, of the pairs answered in both audits"),
            row("pct_any_div", found.any_div, "questions with a pair that diverges"),
            row("prevalence", found.prevalence, "the same, counting only pairs answered in both audits"),
            (
                "by coverage",
                None,
                None,
                _coverage(found),
                "the rest: pairs that only one audit answered",
            ),
        ),
        note=_NOTE,
    )


def _groups(joined: JoinedPairs, after: Audit, questions: int, prefix: str) -> list[Block]:
    """The same for each value of the questions' first facet."""
    names = facet_names(question.facets for question in after.questions)
    if not names:
        return []
    facet = "group" if "group" in names else names[0]
    columns = (
        Column(facet),
        *columns_of("questions:count | pairs in both:count"),
        *(Column(name, "points") for name in ("R_abs", "R_div", "intensity", "pct_any_div", "prevalence")),
        Column("by coverage", "points"),
    )
    table = Table(
        name=f"{prefix}-by-{facet}",
        caption=f"Changes by {facet}, in percentage points",
        n=questions,
        unit="questions",
        columns=columns,
        rows=tuple(_group(value, found) for value, found in split_by(joined, after.questions, facet).items()),
        note="A question with several values counts in each.",
    )
    return [Heading(f"By {facet}", f"{prefix}-groups", 3), table]


def _group(value: str, found: PrevalenceIntensity) -> tuple[Cell, ...]:
    changes = (found.r_abs, found.r_div, found.intensity, found.any_div, found.prevalence)
    return (
        value,
        found.questions,
        found.pairs_in_both,
        *(_points(change) for change in changes),
        _coverage(found),
    )


def _moves(joined: JoinedPairs, prefix: str) -> list[Block]:
    """Which labels became which."""
    moved = label_shift(joined)
    names = tuple(label or _NO_LABEL for label in moved.labels)
    failed = any(moved.counts[-1]) or any(line[-1] for line in moved.counts)
    used = range(len(names) if failed else len(names) - 1)
    labels = [names[place] for place in used]
    counts = [[moved.counts[row][column] for column in used] for row in used]
    chart = figure(
        f"{prefix}-labels",
        f"Pairs that both audits planned, by label before (down) and after (across); {moved.same:,} of {moved.pairs:,} "
        f"keep their label; {moved.only_before:,} pairs are in the first audit only, {moved.only_after:,} in the next.",
        lambda width: number_matrix(
            labels, labels, counts, title="Labels before and after", across="after", down="before", width=width
        ),
    )
    table = Table(
        name=f"{prefix}-labels",
        caption="Labels before (rows) and after (columns)",
        n=moved.pairs,
        unit="pairs",
        columns=(Column("before"), *(Column(label, "count") for label in labels)),
        rows=tuple((label, *line) for label, line in zip(labels, counts, strict=True)),
    )
    return [
        Heading("Which labels moved", f"{prefix}-moves", 3),
        chart,
        Details(f"{table.caption} as a table", (table,)),
    ]
