"""`hoofbeat review`: a study about an artefact, and the pages on which people take part in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_people import database_option
from hoofbeat.cli.serve import listening_options
from hoofbeat.cli.session import Under, VerbWithOthers, json_option
from hoofbeat.errors import UsageError

if TYPE_CHECKING:
    from hoofbeat.review.new_study import StudyCreation
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
@click.option("--stages", default="", metavar="20,40,…,100", help="Exam: show the case in stages, in percent.")
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
    no_literature: bool,
    stages: str,
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
    from hoofbeat.review.new_study import StudyOptions, create_study, plan_study
    from hoofbeat.review.review_store import ReviewStore
    from hoofbeat.store.folder_library import FolderLibrary
    from hoofbeat.web.site import Site

    wanted = StudyOptions(stages=_stages(stages), literature=not no_literature, **options)
    screen = Screen(as_json=as_json)
    if folder is None and no_serve:
        raise UsageError("there is nothing to do", fix="name a folder to make a study of")
    library = FolderLibrary([*([folder] if folder else []), *show])
    made = plan_study(folder, wanted) if folder else None  # what is wrong with it is said before a database is made
    with ReviewStore.open(database) as store:
        created = create_study(store, *made, wanted.plan, assign=wanted.assign) if made else None
        if created and not created.same_plan:
            screen.say(f"note: the study {created.study.id} is there already, and keeps the plan it was made with")
        if created and no_serve:
            _tell(screen, created)
            return
        _serve(screen, Site(library=library, store=store), created, host=host, port=port, url=url, proxies=proxies)


def _serve(screen: Screen, site: Site, created: StudyCreation | None, **where: Any) -> None:
    """Serve, and say where, with the first admin's link; `where` is what the server is told of its address."""

    from hoofbeat.web.server import print_ready, serve

    def ready(told: RunningServer) -> None:
        if screen.as_json:
            study = _told(created) if created else {}
            screen.emit({**study, **msgspec.structs.asdict(told), "warning": told.warning()})
            sys.stdout.flush()
            return
        if created:
            _tell(screen, created)
        print_ready(told)

    serve(site, ready=ready, **where)


def _stages(given: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in given.replace("%", "").replace("…", "").split(",") if part.strip())
    except ValueError:
        raise UsageError(f"{given!r} are no stages", fix="give percents that rise to 100: 20,40,60,80,100") from None


def _tell(screen: Screen, created: StudyCreation) -> None:
    study = created.study
    if screen.as_json:
        screen.emit(_told(created))
        return
    made = "made" if created.made else "is there already"
    click.echo(f"study {made}: {study.id} ({study.form}, {created.items} items)")
    if created.assigned:
        click.echo(f"{created.assigned} labels assigned")


def _told(created: StudyCreation) -> dict[str, object]:
    study = created.study
    return {
        "study": study.id,
        "title": study.title,
        "form": study.form,
        "items": created.items,
        "source": study.source,
        "made": created.made,
        "assigned": created.assigned,
    }
