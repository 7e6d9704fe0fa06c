"""Scores in a report: every chapter on answers that were judged, or chose options, from one set of outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from hoofbeat.findings.accuracy import Accuracy
from hoofbeat.findings.outcomes import HUMAN
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.progress import Task
from hoofbeat.records import Answer, Judgment
from hoofbeat.reports.item_views import answer_key, answers_viewer
from hoofbeat.reports.lookup import Lookup
from hoofbeat.reports.model import Block, Card, Heading, Notice, Text
from hoofbeat.reports.section import Chapter, ReportInputs, ReportSection, spread
from hoofbeat.reports.sections.runs_section import runs_to_score
from hoofbeat.reports.sections.scores.accuracy_table import (
    ScoreBlocks,
    leaderboard_section,
    missing,
)
from hoofbeat.reports.sections.scores.answer_costs import cost_section
from hoofbeat.reports.sections.scores.condition_grid import (
    editions_blocks,
    grid_section,
    images_section,
    options_section,
    pairs_section,
)
from hoofbeat.reports.sections.scores.facet_scores import (
    doubts_section,
    facets_section,
    modes_section,
    rare_section,
    relevance_section,
)
from hoofbeat.reports.sections.scores.judge_agreement import judges_section
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, differing, gather, is_closed
from hoofbeat.reports.sections.scores.people_scores import people_section
from hoofbeat.reports.sections.scores.score_curves import (
    cumulative_section,
    measured_section,
    runs_section,
    worst_section,
)
from hoofbeat.reports.sections.scores.score_summary import SELF_JUDGED, ranked_systems, score_leads, score_summary
from hoofbeat.reports.tables import count_of, written
from hoofbeat.text import some_of

__all__ = ["SECTION", "scores_chapters"]

_STEPS = 16
_IN_WORDS = 4


def scores_chapters(report: ReportInputs) -> list[Chapter]:
    """A chapter for each set of folders that belong together, with our figures that papers publish as well."""
    groups = gather(report.of("judgments"), runs_to_score(report), [run for _, run in report.of("run")])
    editions = editions_blocks(groups)
    bootstrap = report.options.draws, report.options.size
    with report.progress.task("scoring", len(groups) * _STEPS) as task:
        made = [_chapter(group, editions.get(group.prefix, []), bootstrap, task) for group in groups]
    titles = Counter(chapter.title for chapter in made)
    return [
        replace(chapter, title=f"{chapter.title}: {_folders(group)}") if titles[chapter.title] > 1 else chapter
        for group, chapter in zip(groups, made, strict=True)
    ]


def _folders(group: OutcomeSet) -> str:
    return ", ".join(each.path.name for each in group.artefacts)


def _chapter(group: OutcomeSet, editions: Sequence[Block], bootstrap: tuple[int, int], task: Task) -> Chapter:
    blocks: list[Block] = _opening(group)
    cards: tuple[Card, ...] = ()
    table: list[Accuracy] = []
    shown: list[ScoreBlocks] = []
    if group.outcomes:
        first, table = leaderboard_section(group.whole)
        cards = _cards(group, table)
        shown.append(first)
    elif not group.tallies:
        blocks.append(Notice("There are no answers to score."))
    for scored, section in _sections(group, table, editions, bootstrap):
        if group.outcomes or not scored:
            shown.append(section())
        task.advance()
    blocks += [block for each in shown for block in each.blocks]
    if group.tallies:
        blocks += [Heading("Question by question", f"{group.prefix}-questions", 3), _viewer(group)]
    models = list(dict.fromkeys(model for model, _ in group.tallies))
    who = some_of(models, _IN_WORDS) if len(models) <= _IN_WORDS else f"{len(models)} models"
    subject = f"Answers of {who} to {count_of(len(group.questions), 'question')}"
    figures = tuple(figure for each in shown for figure in each.ours)
    ranked, first_two = ranked_systems(group, table)
    return Chapter(
        title=subject if models else "Answers",
        id=group.prefix,
        blocks=tuple(blocks),
        subject=subject if models else "",
        cards=cards,
        leads=score_leads(group, ranked, first_two),
        figures=figures,
        summary=score_summary(group, ranked, first_two, subject),
    )


def _sections(
    group: OutcomeSet, table: Sequence[Accuracy], editions: Sequence[Block], bootstrap: tuple[int, int]
) -> list[tuple[bool, Callable[[], ScoreBlocks]]]:
    """The sections in their order, and whether each needs answers that are right or wrong."""
    draws, size = bootstrap
    whole = group.whole
    return [
        (True, partial(grid_section, whole, table)),
        (True, partial(people_section, whole)),
        (True, partial(pairs_section, whole)),
        (True, partial(facets_section, whole)),
        (True, partial(rare_section, whole)),
        (False, partial(cumulative_section, group)),
        (True, partial(worst_section, whole)),
        (True, partial(runs_section, whole, draws=draws, size=size)),
        (True, partial(options_section, whole)),
        (True, partial(images_section, group)),
        (True, partial(ScoreBlocks, blocks=tuple(editions))),
        (False, partial(measured_section, group, draws=draws, size=size)),
        (False, partial(modes_section, group)),
        (False, partial(relevance_section, group)),
        (False, partial(judges_section, group)),
        (False, partial(doubts_section, group)),
        (False, partial(cost_section, group, table)),
    ]


def _opening(group: OutcomeSet) -> list[Block]:
    planned = sum(tally.answers for tally in group.tallies.values())
    how = _judged_by(group)
    if any(tally.protocol for tally in group.tallies.values()):
        how.append("choices scored by the option chosen")
    words = f"{count_of(len(group.questions), 'question')}, {count_of(planned, 'planned answer')}"
    blocks: list[Block] = [Text(f"{words}; {'; '.join(how)}." if how else f"{words}.")]
    folders = "Folders" if len(group.artefacts) > 1 else "Folder"
    blocks.append(Text(f"{folders} of this chapter: {_folders(group)}."))
    blocks += [Notice(words) for words in _differing(group)]
    if group.self_judged:
        blocks.append(Notice(SELF_JUDGED))
    if group.by_people:
        labelled = sum(count.labelled for count in group.by_people.values())
        of = sum(group.tallies[system].answers for system in group.by_people)
        contested = sum(count.contested for count in group.by_people.values())
        words = f"Labelled by people alone: {labelled:,} of {count_of(of, 'planned answer')}"
        words += f", and {contested:,} on which they disagree" if contested else ""
        blocks.append(Notice(f"{words}. The other answers are unscored and stay in the denominator of every accuracy."))
    if group.unjudged:
        names = ", ".join(f"{model} · {condition}" for model, condition in group.unjudged)
        blocks.append(Notice(f"This free text was not judged for equivalence, so it has no accuracy: {names}."))
    return blocks


def _judged_by(group: OutcomeSet) -> list[str]:
    """Who judged the free text: a model, people, or both, each of other systems."""
    how = []
    by_model = any(each.aspect == EQUIVALENCE.name and not each.judge.startswith(HUMAN) for each in group.judgments)
    if by_model or not group.tallies:
        how.append(f"free text judged by {group.judge or 'an unnamed judge'} (right means “{EQUIVALENCE.positive}”)")
    if group.by_people:
        which = f" of {', '.join(map(group.name, group.by_people))}" if by_model else ""
        how.append(
            f"free text{which} judged by labels by {', '.join(group.people)} (right means “{EQUIVALENCE.positive}”)"
        )
    return how


def _differing(group: OutcomeSet) -> list[str]:
    """What differs between the folders of the chapter, and which folders were kept out of it."""
    found = []
    lines = differing(group.asked)
    if lines:
        found.append(f"{group.care} {' | '.join(lines)}.")
    if group.apart:
        where = "; ".join(group.apart)
        found.append(f"Not read together with {where}: same model and condition, but different settings.")
    return found


def _cards(group: OutcomeSet, table: Sequence[Accuracy]) -> tuple[Card, ...]:
    """The best closed book and the best of the rest."""
    closed = [row for row in table if is_closed(row.condition, group.tallies[row.model, row.condition].protocol)]
    others = [row for row in table if row not in closed]
    chosen = [max(rows, key=lambda row: row.accuracy) for rows in (closed, others) if rows]
    return tuple(
        Card(
            label=f"Accuracy, {group.name((row.model, row.condition))}",
            value=written(row.accuracy, "share"),
            detail=spread(
                (row.bootstrap.low, row.bootstrap.high), "share", f"{row.planned:,}", f"interval ({row.bootstrap.by})"
            )
            + (f", {missing(row.unscored):,} unscored" if row.unscored else ""),
        )
        for row in chosen
    )


def _viewer(group: OutcomeSet) -> Block:
    answers = Lookup.joined([Lookup.read(each.file("answers.jsonl"), Answer) for each in group.artefacts])
    found = [each for each in group.artefacts if each.has("judgments.jsonl")]
    judgments = Lookup.joined([Lookup.read(each.file("judgments.jsonl"), Judgment) for each in found])
    by_key = {answer_key(row): row for row in group.outcomes}
    return answers_viewer(group.prefix, list(group.questions.values()), answers, by_key, judgments)


SECTION = ReportSection(
    name="scores",
    summary="answers that were judged or chose options: accuracy, differences, facets, repeats, judges, cost",
    order=60,
    kinds=("judgments", "run"),
    build=scores_chapters,
)
