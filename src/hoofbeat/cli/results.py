"""What was found, for the terminal: the leaderboard of a run or of judgments, and who differs on what in an audit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hoofbeat.cli.console import Screen
from hoofbeat.records import Answer
from hoofbeat.reports.tables import Cell, Column, count_of, triple
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

if TYPE_CHECKING:
    from hoofbeat.audit import Audit
    from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
    from hoofbeat.store import Artefact

_QUESTIONS = 8
_SYSTEMS = 20


def after_answers(run: Path, *, free_text: bool) -> tuple[str | Path, ...]:
    """The next command: free text needs a judge, which should be another model; choices need none."""
    return ("hoofbeat", "judge", run, "--model", "JUDGE") if free_text else ("hoofbeat", "report", run)


def show_leaderboard(screen: Screen, artefact: Artefact) -> None:
    """Systems with the share of right answers, best first; answers in free text have no score before they are judged.

    A table for each protocol, because two protocols are not ranked together. What was cut to fit a window comes first.
    """
    from hoofbeat.findings.caveats import cut_warnings, part_in_words
    from hoofbeat.findings.intervals import cluster_of
    from hoofbeat.reports.interval_words import clustered_unit
    from hoofbeat.reports.sections.scores.outcome_sets import gather

    if screen.as_json:
        return
    for warning in cut_warnings([artefact]):
        screen.say(f"warning: {warning}")
    if artefact.manifest.kind == "run" and not any(
        answer.protocol for answer in read_jsonl(artefact.file("answers.jsonl"), Answer)
    ):
        _show_unjudged(screen, artefact)
        return
    [group] = gather([("scores", artefact)], [])
    for part in group.protocols() if group.outcomes else ():
        protocol = part.tallies[part.order[0]].protocol
        title = f"Leaderboard, by {protocol}" if protocol else "Leaderboard"
        asked = part_in_words(artefact.manifest) if len(group.protocols()) == 1 else ""
        clusters = len({cluster_of(question, part.clusters) for question in part.questions})
        questions = f"{len(part.questions):,} {clustered_unit(len(part.questions), clusters)}"
        _show_scores(screen, part, f"{title} ({asked or questions})")
    if group.unjudged:
        names = "; ".join(f"{model} · {condition}" for model, condition in group.unjudged)
        screen.say(f"No accuracy yet, because nobody has judged whether this free text is right: {names}")


def _show_scores(screen: Screen, part: OutcomeSet, title: str) -> None:
    from hoofbeat.findings.accuracy import leaderboard
    from hoofbeat.reports.sections.scores.accuracy_table import missing

    places = leaderboard(part.outcomes, clusters=part.clusters)
    several = len({place.system[0] for place in places}) > 1
    rows: list[tuple[Cell, ...]] = [
        (
            " · ".join(place.system if several else place.system[1:]),
            f"{place.accuracy.correct:,} of {place.accuracy.planned:,}",
            triple(place.accuracy.accuracy, place.accuracy.bootstrap)
            if missing(place.accuracy.unscored) < place.accuracy.planned
            else "–",
            missing(place.accuracy.unscored),
        )
        for place in places
    ]
    screen.title(title)
    columns = ["system" if several else "condition", "right", Column("accuracy, 95% interval", "share")]
    unscored = any(row[-1] for row in rows)
    screen.table(
        [*columns, *([Column("not scored", "count")] if unscored else [])],
        [row if unscored else row[:-1] for row in rows[:_SYSTEMS]],
    )
    if len(rows) > _SYSTEMS:
        screen.say(f"and {len(rows) - _SYSTEMS:,} more systems; hoofbeat report shows them all")


def _show_unjudged(screen: Screen, artefact: Artefact) -> None:
    """How many answers of each system arrived, where none has a score yet."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for answer in read_jsonl(artefact.file("answers.jsonl"), Answer):
        count = counts.setdefault((answer.model, answer.condition), Counter())
        count[answer.failure.kind if answer.failure else ""] += 1
    several = len({model for model, _ in counts}) > 1
    screen.title("Answers in free text: they have no score until someone judges them")
    screen.table(
        ["system" if several else "condition", "answered", "failed"],
        [
            (" · ".join(system if several else system[1:]), f"{count['']:,} of {count.total():,}",
             f"{count.total() - count['']:,}")
            for system, count in counts.items()
        ],
    )  # fmt: skip


def show_disagreements(screen: Screen, audit: Audit) -> None:
    """How many pairs of sources disagree, and for each question the most serious pair: who differs on what."""
    from hoofbeat.audit.audit_doubts import NOTHING_COMPARED, judged_pairs, recorded_doubt
    from hoofbeat.audit.findings.relations import RelationLabels
    from hoofbeat.audit.findings.serious_divergence import serious_pairs

    if screen.as_json:
        return
    labels = audit.artefact.manifest.metrics.get("labels")
    counts: dict[str, int] = labels if isinstance(labels, dict) else {}
    domain = RelationLabels.of(audit.pack.labels)
    labelled, silent = judged_pairs(audit)
    judged = labelled - silent
    differ = sum(counts.get(name, 0) for name in domain.diverging)
    found = serious_pairs(audit.frame(), domain, audit.pack.significance_levels, len(audit.questions))
    if not judged:
        screen.title(NOTHING_COMPARED)
        return
    if doubt := recorded_doubt(audit.artefact.manifest.metrics):
        screen.say(f"warning: {doubt}")
    share = f" ({differ / judged:.0%})" if judged >= 20 else ""
    on = f", on {len(found):,} of {count_of(len(audit.questions), 'question')}" if differ else ""
    screen.title(f"{differ:,} of {count_of(judged, 'pair')} of answers disagree{share}{on}")
    if silent:
        screen.say(f"In {count_of(silent, 'more pair')} at least one source does not address the question.")
    texts = {question.id: question.text for question in audit.questions}
    for pair in found[:_QUESTIONS]:
        facts = ", ".join(filter(None, (pair.label.lower(), pair.significance and f"{pair.significance} significance")))
        about = f": {cut(pair.topic, 80)}" if pair.topic else ""
        more = f" ({count_of(pair.alike - 1, 'more pair')} like it)" if pair.alike > 1 else ""
        screen.say(f"{pair.question}: {cut(texts.get(pair.question, ''), 100)}")
        screen.say(f"{audit.names.both(*pair.order)}: {facts}{about}{more}", indent=4)
    if len(found) > _QUESTIONS:
        screen.say(f"and {len(found) - _QUESTIONS:,} more questions:")
    if found:
        screen.line(f"all disagreements: hoofbeat audit cases {audit.artefact.path}")
        screen.line(f"to decide on them in a browser: hoofbeat review --show {audit.artefact.path}")
