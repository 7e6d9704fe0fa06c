"""Rankings, opened for their pages: the queries with what is known to be relevant, and the figures of the whole."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import Request
from msgspec import Struct

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark_passages import CollectionPassage, read_passages
from hoofbeat.errors import HoofbeatError
from hoofbeat.retrieval.rankings.ranking_index import RankingIndex, index_ranking
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.browse.folder_page import FolderDetails, report_details
from hoofbeat.web.browse.links import Link, document_places, inputs_of, reference_of
from hoofbeat.web.browse.open_folders import artefact_of, opened_folder, prepare_in_background
from hoofbeat.web.site import Site

KIND = "rankings"


class _Bench(Struct, frozen=True):
    """What a benchmark says of a ranking's documents: grades, and the passages they are where they are no documents."""

    grades: dict[str, dict[str, int]]
    pieces: dict[str, CollectionPassage]


def ranking_of(request: Request, slug: str) -> tuple[Folder, RankingIndex]:
    """The ranking of a page; where it is not there, or is being read, another page is shown."""
    return opened_folder(request, slug, (KIND,), "ranking", open_ranking)


def open_ranking(site: Site, folder: Folder, *, patience: float | None = None) -> RankingIndex | None:
    """The ranking's queries; None while they are being read."""
    bench = _benchmark(site, folder)
    purpose = f"queries {reference_of(site, bench)}" if bench else "queries"
    return prepare_in_background(site, folder, purpose, lambda each: _open(site, each, bench), patience=patience)


def ranking_figures(site: Site, folder: Folder, *, patience: float | None = None) -> FolderDetails | None:
    """The ranking's figures as a report has them; None while they are being worked out."""
    return prepare_in_background(site, folder, "figures", report_details, patience=patience)


def ranking_places(site: Site, folder: Folder, documents: Iterable[str]) -> dict[str, Link]:
    """The titles of ranked documents and where they can be read; a passage leads to the document it is of."""
    bench = _benchmark(site, folder)
    told = _read_bench(site, folder, bench)
    pieces = told.pieces if told else {}
    wanted = list(dict.fromkeys(documents))
    places = document_places(site, (pieces[name].document if name in pieces else name for name in wanted))
    found = {}
    for name in wanted:
        piece = pieces.get(name)
        place = places.get(piece.document if piece else name)
        if place is not None:
            found[name] = Link(f"{place.words} · {piece.heading}", place.href) if piece and piece.heading else place
    return found


def alike_rankings(site: Site, folder: Folder) -> list[Folder]:
    """Other rankings that were made from something this one was made from, too."""
    mine = inputs_of(site, folder)
    others = (each for each in site.library.folders(KIND) if each != folder)
    return [each for each in others if not mine.isdisjoint(inputs_of(site, each))]


def _open(site: Site, folder: Folder, bench: Folder | None) -> RankingIndex:
    told = _read_bench(site, folder, bench)
    return index_ranking(folder.artefact(), told.grades if told else None)


def _benchmark(site: Site, folder: Folder) -> Folder | None:
    """The benchmark that was searched for, where it is among the folders of this server."""
    mine = inputs_of(site, folder)
    return next((each for each in site.library.folders("benchmark") if reference_of(site, each) in mine), None)


def _read_bench(site: Site, folder: Folder, bench: Folder | None) -> _Bench | None:
    """What the benchmark says; None where there is none, or it can't be read: that is for its own page to say."""
    if bench is None:
        return None
    edition = str(artefact_of(site, folder).manifest.settings.get("edition", ""))

    def read(each: Folder) -> _Bench:
        artefact = each.artefact()
        return _Bench(Benchmark(artefact, edition).qrels(), {piece.id: piece for piece in read_passages(artefact)})

    try:
        return site.library.opened(bench, f"grades {edition}", read)
    except HoofbeatError:
        return None
