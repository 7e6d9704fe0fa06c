"""`hoofbeat review`: a study about an artefact, and the pages on which people take part in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.cli.command_classes import Under, VerbWithOthers
from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_people import database_option
from hoofbeat.cli.serve import listening_options
from hoofbeat.cli.session import json_option
from hoofbeat.errors import UsageError

if TYPE_CHECKING:
    from hoofbeat.review.assignments import AssignmentPlan
    from hoofbeat.review.review_records import ReviewItem, Study
    from hoofbeat.review.review_store import ReviewStore
    from hoofbeat.web.server import RunningServer
    from hoofbeat.web.site import Site


class ReviewCommand(VerbWithOthers):
    """Starting a review, unless its first word names one of the commands under it."""

    under = Under(
        "review",
        {
            "invite": ("review_people", "let somebody in, by a link that is shown once"),
            "revoke": ("review_people", "let somebody in no more"),
            "status": ("review_results", "how far studies have come, and how far people agree"),
            "export": (
                "review_results",
                "write labels as judge, audit validate and build read them; of an exam, a run",
            ),
            "apply": ("review_results", "carry out what reviewers decided on a benchmark: a new version and a diff"),
        },
        "a folder",
    )


class _Wanted(Struct, frozen=True, kw_only=True):
    """The options that make a study, as given."""

    form: str | None
    title: str
    sample: int | None
    strata: str | None
    seed: int
    per_item: int
    overlap: float
    overlap_by: int
    groups: str
    max_per_person: int
    assign: bool
    min_passed: float | None
    exam: bool
    minutes: float
    stages: str
    questions: int
    inside: float
    edition: str
    no_literature: bool

    def plan(self) -> AssignmentPlan:
        """The plan of assignments."""
        from hoofbeat.review.assignments import AssignmentPlan

        return AssignmentPlan(
            per_item=self.per_item,
            overlap=self.overlap,
            overlap_by=self.overlap_by,
            max_per_person=self.max_per_person,
            groups=self.groups,  # type: ignore[arg-type]
            seed=self.seed,
        )


@click.command("review", cls=ReviewCommand, epilog=ReviewCommand.under.epilog())
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@database_option
@click.option("--form", help="What is asked, where several things wait in FOLDER.")
@click.option("--title", default="", help="What the study is called.")
@click.option("--sample", type=click.IntRange(1), help="Draw so many items, strata by their shares.")
@click.option("--strata", help="Facet of questions that items are drawn by [default: their specialty].")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="For everything that is drawn.")
@click.option("--per-item", type=click.IntRange(0), default=1, show_default=True,
              help="Reviewers per item; 0: everybody.")  # fmt: skip
@click.option("--overlap", type=click.FloatRange(0, 1), default=0.0, show_default=True,
              help="Share of items that more reviewers see, for their agreement.")  # fmt: skip
@click.option("--overlap-by", type=click.IntRange(0), default=0, show_default=True,
              help="Reviewers per item of the overlap; 0: everybody.")  # fmt: skip
@click.option("--groups", type=click.Choice(["any", "inside", "outside"]), default="any", show_default=True,
              help="Whether people see any item, or only those inside or outside of their groups.")  # fmt: skip
@click.option("--max-per-person", type=click.IntRange(0), default=0, show_default=True,
              help="Maximum number of items per person; 0: no limit.")  # fmt: skip
@click.option("--assign", is_flag=True, help="Assign the items now, to all reviewers who are invited.")
@click.option("--min-passed", type=click.FloatRange(0, 1),
              help="Two-level check: share that must pass [default: the benchmark's, else 0.95].")  # fmt: skip
@click.option("--exam", is_flag=True, help="An exam on the benchmark in FOLDER, scored like a model.")
@click.option("--minutes", type=click.FloatRange(0), default=0.0, help="Exam: time for all questions; 0: no limit.")
@click.option("--stages", default="", metavar="20,40,…,100", help="Exam: show so many percent of the case by and by.")
@click.option("--questions", type=click.IntRange(0), default=0, help="Exam: questions a person gets; 0: all.")
@click.option("--inside", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="Exam: share of them inside the person's specialty.")  # fmt: skip
@click.option("--edition", default="", help="Exam: another edition of the questions, such as image.")
@click.option("--no-literature", is_flag=True, help="Exam: without books and papers.")
@click.option("--show", multiple=True, type=click.Path(path_type=Path),
              help="Show this folder, too, such as the corpus; several may be given.")  # fmt: skip
@click.option("--no-serve", is_flag=True, help="Only make the study.")
@listening_options
@json_option
def command(
    folder: Path | None,
    database: str,
    show: tuple[Path, ...],
    no_serve: bool,
    host: str,
    port: int,
    url: str,
    proxies: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Have people look at FOLDER: a benchmark with tasks for reviewers, an audit, packets, a run or judgments.

    The study is made if it is not there; then the pages are served. Without FOLDER, those that are there are served.
    The first start prints the admin's link, once; the admin invites the others.
    """
    from hoofbeat.review.review_store import ReviewStore
    from hoofbeat.store.folder_library import FolderLibrary
    from hoofbeat.web.site import Site

    wanted = _Wanted(**options)
    screen = Screen(as_json=as_json)
    if folder is None and no_serve:
        raise UsageError("there is nothing to do", fix="name a folder to make a study of")
    library = FolderLibrary([*([folder] if folder else []), *show])
    made = _study(folder, wanted) if folder else None  # what is wrong with it is said before a database is made
    with ReviewStore.open(database) as store:
        told = _make(screen, store, *made, wanted) if made else {}
        if no_serve:
            _tell(screen, told)
            return
        _serve(screen, Site(library=library, store=store), told, host=host, port=port, url=url, proxies=proxies)


def _serve(screen: Screen, site: Site, study: dict[str, object], **where: Any) -> None:
    """Serve, and say where, with the first admin's link; `where` is what the server is told of its address."""

    from hoofbeat.web.server import print_ready, serve

    def ready(told: RunningServer) -> None:
        if screen.as_json:
            screen.emit({**study, **msgspec.structs.asdict(told), "warning": told.warning()})
            sys.stdout.flush()
            return
        if study:
            _tell(screen, study)
        print_ready(told)

    serve(site, ready=ready, **where)


def _make(
    screen: Screen, store: ReviewStore, study: Study, items: list[ReviewItem], wanted: _Wanted
) -> dict[str, object]:
    """Put the study on the review store, unless it is there; what is said of it."""
    from hoofbeat.review.assignments import assign_items

    there = store.study(study.id)
    if there is None:
        store.create_study(study, items)
    elif there.settings.get("plan") != study.settings.get("plan"):
        screen.say(f"note: the study {study.id} is there already, and keeps the plan it was made with")
    given = 0
    if wanted.assign:
        reviewers = [person for person in store.people() if person.active and person.role == "reviewer"]
        given = len(assign_items(store, there or study, reviewers, wanted.plan(), by=""))
    return {
        "study": study.id,
        "title": (there or study).title,
        "form": study.form,
        "items": len(store.items(study.id)),
        "source": study.source,
        "made": there is None,
        "assigned": given,
    }


def _study(folder: Path, wanted: _Wanted) -> tuple[Study, list[ReviewItem]]:
    from hoofbeat.review.exam_items import exam_study
    from hoofbeat.review.review_rounds import INSPECTIONS, MIN_PASSED
    from hoofbeat.review.study_items import study_from
    from hoofbeat.store import open_artefact

    if wanted.exam or wanted.form == "exam":
        return exam_study(
            folder,
            per_person=wanted.questions,
            inside=wanted.inside,
            minutes=wanted.minutes,
            stages=_stages(wanted.stages),
            seed=wanted.seed,
            title=wanted.title,
            edition=wanted.edition,
            literature=not wanted.no_literature,
        )
    if wanted.minutes or wanted.stages or wanted.questions:
        raise UsageError("--minutes, --stages and --questions are for exams", fix="add --exam")
    study, items = study_from(
        folder, form=wanted.form, sample=wanted.sample, seed=wanted.seed, strata=wanted.strata, title=wanted.title
    )
    settings = {**study.settings, "plan": wanted.plan().recorded()}
    if study.form in INSPECTIONS:
        settings["min_passed"] = wanted.min_passed
        if wanted.min_passed is None:
            made_with = open_artefact(folder).manifest.settings  # `least_passed` in benchmarks made before the rename
            settings["min_passed"] = made_with.get("min_passed", made_with.get("least_passed", MIN_PASSED))
    return replace(study, settings=settings), items


def _stages(given: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in given.replace("%", "").replace("…", "").split(",") if part.strip())
    except ValueError:
        raise UsageError(f"{given!r} are no stages", fix="give percents that rise to 100: 20,40,60,80,100") from None


def _tell(screen: Screen, told: dict[str, object]) -> None:
    if screen.as_json:
        screen.emit(told)
        return
    made = "made" if told["made"] else "is there already"
    click.echo(f"study {made}: {told['study']} ({told['form']}, {told['items']} items)")
    if told["assigned"]:
        click.echo(f"{told['assigned']} labels assigned")
