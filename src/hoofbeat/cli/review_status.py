"""`hoofbeat review status`: how far studies have come, and how far people agree."""

from __future__ import annotations

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_group import find_study
from hoofbeat.cli.review_invite import database_option
from hoofbeat.cli.session import json_option
from hoofbeat.findings.intervals import Interval
from hoofbeat.review.adjudication_queue import queue_of
from hoofbeat.review.assignments import EXAM
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_rounds import INSPECTIONS, Rounds, rounds_of
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.reviewer_agreement import StudyAgreement, StudyProgress, agreement_of, study_progress


@click.command("status")
@click.argument("names", metavar="[STUDY]...", nargs=-1)
@database_option
@click.option("--blind", is_flag=True, help="Reviewer 1, 2, … in place of names.")
@json_option
def command(names: tuple[str, ...], database: str, blind: bool, as_json: bool) -> None:
    """Say how far every STUDY has come (without one: all): labels by person, what is to be settled, and agreement."""
    screen = Screen(as_json=as_json)
    with ReviewStore.open(database) as store:
        studies = [find_study(store, name) for name in names] or store.studies()
        told = [_Told(store, study, blind) for study in studies]
    if as_json:
        screen.emit({"studies": [each.data() for each in told]})
        return
    if not told:
        screen.say("there is no study yet; start one with: hoofbeat review FOLDER")
    for each in told:
        each.show(screen)


class _Told:
    """What there is to say of a study."""

    def __init__(self, store: ReviewStore, study: Study, blind: bool) -> None:
        self.study = study
        self.progress: StudyProgress = study_progress(store, study, names=not blind)
        self.blind = blind
        self.waiting = 0
        self.agreement: StudyAgreement | None = None
        self.rounds: Rounds | None = None
        if study.form != EXAM:
            items, labels = store.items(study.id), store.labels(study.id)
            self.waiting = sum(each.open for each in queue_of(store, study))
            people = {row.person for row in store.assignments(study.id)}
            self.agreement = agreement_of(study, items, labels, people=people)
            if study.form in INSPECTIONS:
                self.rounds = rounds_of(study, items, labels, store.decisions(study.id))

    def data(self) -> dict[str, object]:
        """As one JSON object."""
        rows = [
            {
                name: value
                for name, value in msgspec.structs.asdict(row).items()
                if not (self.blind and name == "person")
            }
            for row in self.progress.people
        ]
        progress = {**msgspec.structs.asdict(self.progress), "people": rows, "share": self.progress.share}
        return {
            "study": msgspec.to_builtins(self.study),
            "progress": msgspec.to_builtins(progress),
            "to be settled": self.waiting,
            "agreement": msgspec.to_builtins(self.agreement.fields) if self.agreement else [],
            "rounds": msgspec.to_builtins(self.rounds) if self.rounds else None,
        }

    def show(self, screen: Screen) -> None:
        """As tables."""
        study, progress = self.study, self.progress
        screen.title(f"{study.id}: {study.title}{' (closed)' if study.closed else ''}")
        share = f"{progress.share:.0%}" if progress.share is not None else "nothing assigned"
        screen.say(
            f"{progress.items} items of {study.source}; {progress.done} of {progress.assigned} labels done, "
            f"{progress.skipped} skipped ({share}); {progress.unassigned} items assigned to nobody; "
            f"{self.waiting} to be settled"
        )
        if progress.people:
            header = ("who", "assigned", "done", "skipped", "begun", "median time")
            screen.table(
                header,
                [
                    [
                        row.name,
                        *map(str, (row.assigned, row.done, row.skipped, row.draft)),
                        f"{row.median_seconds:.0f} s" if row.median_seconds is not None else "-",
                    ]
                    for row in progress.people
                ],
            )
        for field in self.agreement.fields if self.agreement else ():
            if field.items:
                screen.say(
                    f"{field.title}: α {_figure(field.alpha.value, field.alpha.interval)}, {field.share:.0%} of pairs "
                    f"agree, {field.items} items. {field.words}"
                )
        if self.rounds and self.rounds.sample:
            told = f"{self.rounds.passed} of {self.rounds.sample} passed, at least {self.rounds.min_passed:.0%} must"
            screen.say(f"round {len(self.rounds.rounds)}: {told} ({self.rounds.verdict})")


def _figure(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "has no value"
    return f"{value:.2f}" + (f" ({interval.low:.2f} to {interval.high:.2f})" if interval else "")
