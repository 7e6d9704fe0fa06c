"""`hoofbeat review` is one command with others under its name: without one of their names, it starts a review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hoofbeat.cli.groups import Under, VerbWithOthers
from hoofbeat.cli.session import command_words
from hoofbeat.errors import UsageError

if TYPE_CHECKING:
    from hoofbeat.review.review_records import Study
    from hoofbeat.review.review_store import ReviewStore

SUBCOMMANDS = {
    "invite": "let somebody in, by a link that is shown once",
    "revoke": "let somebody in no more",
    "status": "how far studies have come, and how far people agree",
    "export": "write labels as judge, audit validate and build read them; of an exam, a run",
    "apply": "carry out what reviewers decided on a benchmark: a new version and a diff",
}


class ReviewCommand(VerbWithOthers):
    """Starting a review, unless its first word names one of the commands under it."""

    under = Under("review", SUBCOMMANDS, "a folder")


def find_study(store: ReviewStore, wanted: str) -> Study:
    """A study by its id, or by a part of it that only one study has."""
    studies = store.studies()
    found = [study for study in studies if study.id == wanted] or [study for study in studies if wanted in study.id]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} studies are called {wanted!r}", fix=f"name one: {_listed(found)}")
    raise UsageError(
        f"there is no study {wanted!r} at {store.where}", fix=f"there is: {_listed(studies) or 'none yet'}"
    )


def _listed(studies: Sequence[Study]) -> str:
    return ", ".join(study.id for study in studies)


def words_without_database() -> list[str]:
    """The command as it was typed, for manifests, without the database's address: a password may stand in it."""
    kept: list[str] = []
    words = command_words()
    for place, word in enumerate(words):
        if word != "--db" and not word.startswith("--db=") and (place == 0 or words[place - 1] != "--db"):
            kept.append(word)
    return kept
