"""`hoofbeat review`: a study about an artefact, and the pages on which people take part in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_people import database_option, link_days_option
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
            "invite": ("review_people", "invite a person; prints a link once"),
            "revoke": ("review_people", "end a person's access"),
            "status": ("review_results", "show progress of studies and agreement of people"),
            "export": (
                "review_results",
                "write labels for judge, audit validate and build; an exam becomes a run",
            ),
            "apply": ("review_results", "apply reviewers' decisions to a benchmark: a new version and a diff"),
        },
        "a folder",
    )


@click.command("review", cls=ReviewCommand, epilog=ReviewCommand.under.epilog())
@click.argument("folder", required=False, type=click.Path(path_type=Path),
                shell_complete=ReviewCommand.under.complete)  # fmt: skip
@database_option
@click.option("--form", help="Review form, if FOLDER allows several.")
@click.option("--title", default="", help="Title of the study.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Draw N items, in proportion to the strata.")
@click.option("--strata", help="Facet for the strata [default: specialty].")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for all random draws.")
@click.option("--per-item", type=click.IntRange(0), default=1, show_default=True,
              help="Reviewers per item; 0: all.")  # fmt: skip
@click.option("--overlap", type=click.FloatRange(0, 1), default=0.0, show_default=True,
              help="Share of items that more reviewers see, to measure agreement.")  # fmt: skip
@click.option("--overlap-by", type=click.IntRange(0), default=0, show_default=True,
              help="Reviewers per overlap item; 0: all.")  # fmt: skip
@click.option("--groups", type=click.Choice(["any", "inside", "outside"]), default="any", show_default=True,
              help="Which items a person sees: any, or only inside or outside their groups.")  # fmt: skip
@click.option("--max-per-person", type=click.IntRange(0), default=0, show_default=True,
              help="Maximum number of items per person; 0: no limit.")  # fmt: skip
@click.option("--assign", is_flag=True, help="Assign the items now to all invited reviewers.")
@click.option("--min-passed", type=click.FloatRange(0, 1),
              help="Two-level check: minimum share that must pass [default: set by the benchmark, "
              "else 0.95].")  # fmt: skip
@click.option("--exam", is_flag=True, help="Make an exam from the benchmark in FOLDER; people are scored like models.")
@click.option("--minutes", type=click.FloatRange(0), default=0.0, help="Exam: minutes for all questions; 0: no limit.")
@click.option("--stages", default="", metavar="20,40,…,100", help="Exam: show the case in stages, in percent.")
@click.option("--questions", type=click.IntRange(0), default=0, help="Exam: questions per person; 0: all.")
@click.option("--inside", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="Exam: share of questions in the person's specialty.")  # fmt: skip
@click.option("--edition", default="", help="Exam: another edition of the questions, such as image.")
@click.option("--no-literature", is_flag=True, help="Exam: forbid books and papers.")
@click.option("--show", multiple=True, type=click.Path(path_type=Path),
              help="Also show this folder, such as the corpus. Repeat it for several.")  # fmt: skip
@click.option("--no-serve", is_flag=True, help="Create the study, but start no server.")
@link_days_option
@listening_options
@json_option
def command(
    folder: Path | None,
    database: str,
    show: tuple[Path, ...],
    no_serve: bool,
    no_literature: bool,
    stages: str,
    link_days: int,
    host: str,
    port: int,
    url: str,
    proxies: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Let people review FOLDER: a benchmark with review tasks, an audit, packets, a run or judgments.

    Hoofbeat creates the study if needed and serves its pages. Without FOLDER it serves the studies that exist. The
    first start prints the admin's link once; the admin invites the others.
    """
    from hoofbeat.review.new_study import StudyOptions, create_study, plan_study
    from hoofbeat.review.review_store import ReviewStore
    from hoofbeat.store.folder_library import FolderLibrary
    from hoofbeat.web.site import Site, SiteSettings

    wanted = StudyOptions(stages=_stages(stages), literature=not no_literature, **options)
    screen = Screen(as_json=as_json)
    if folder is None and no_serve:
        raise UsageError("there is nothing to do", fix="name a folder to review")
    library = FolderLibrary([*([folder] if folder else []), *show])
    made = plan_study(folder, wanted) if folder else None  # what is wrong with it is said before a database is made
    with ReviewStore.open(database) as store:
        created = create_study(store, *made, wanted.plan, assign=wanted.assign) if made else None
        if created and not created.same_plan:
            screen.say(f"note: the study {created.study.id} exists already and keeps its plan")
        if created and no_serve:
            _tell(screen, created)
            return
        site = Site(library=library, store=store, settings=SiteSettings(link_days=link_days))
        _serve(screen, site, created, host=host, port=port, url=url, proxies=proxies)


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
        raise UsageError(
            f"{given!r} is not a list of stages", fix="write percentages that rise to 100: 20,40,60,80,100"
        ) from None


def _tell(screen: Screen, created: StudyCreation) -> None:
    study = created.study
    if screen.as_json:
        screen.emit(_told(created))
        return
    made = "Created the study" if created.made else "The study exists already:"
    click.echo(f"{made} {study.id} ({study.form}, {created.items:,} items)")
    if created.assigned:
        click.echo(f"Assigned {created.assigned:,} labels")
    if created.short:
        screen.say(
            f"note: {created.short:,} of {created.items:,} items got fewer reviewers than --per-item or --overlap-by "
            "asks for. Invite more people, then run this again with --assign"
        )


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
        "short": created.short,
    }
