"""`hoofbeat corpus label`, `stats` and `show`: specialties, what a corpus holds, and one document as it was read.

Text of documents goes to the terminal only after its control characters are made harmless: a document can't move the
cursor, change a title bar or turn the reading direction.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    Calling,
    calling_options,
    check_file,
    command_words,
    json_option,
    output_option,
    plot_option,
)
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.specialties import SCHEMES, label_corpus, label_requests, load_scheme
from hoofbeat.corpus.stats import CorpusStats, Share, compute_stats, load_tokenizer, write_stats
from hoofbeat.corpus.terms import Match
from hoofbeat.corpus.vocabulary import find_words, load_vocabulary
from hoofbeat.facets import facet_values
from hoofbeat.records import Document, DocumentTable, Figure, Section
from hoofbeat.reports.tables import Column, Table, columns_of, table_of
from hoofbeat.store import Cost, Counts
from hoofbeat.store.files import write_bytes
from hoofbeat.text import for_terminal

_SHOWN_ROWS = 15
_STYLES = ("black on yellow", "black on cyan", "black on green", "black on magenta")


# label


@click.command("label")
@click.argument("corpus_path", metavar="CORPUS", type=click.Path(path_type=Path))
@click.option("--scheme", default="ogcare", show_default=True, help=f"{', '.join(SCHEMES)}, or a TOML file.")
@click.option("--by-model", is_flag=True, help="Let the model of --model decide, not the rules.")
@output_option("labels")
@calling_options
def label_command(corpus_path: Path, scheme: str, by_model: bool, output: Path, calling: Calling) -> None:
    """Label every document of CORPUS with a specialty: by rules, with a confidence, or by a model."""
    screen = calling.screen()
    corpus = Corpus.open(corpus_path)
    with calling.open() if by_model else nullcontext() as session:
        model = session.model(calling.model_spec) if session is not None else None
        if model is not None and calling.only_estimate:
            screen.estimate(model.estimate(label_requests(corpus, scheme)))
            return
        artefact = label_corpus(corpus, output, scheme, model=model, command=command_words(), progress=screen)
        if model is not None:
            screen.calls(model)
    screen.finish(artefact, next_step=("hoofbeat", "corpus", "stats", corpus_path))


# stats


@click.command("stats")
@click.argument("corpus_path", metavar="CORPUS", type=click.Path(path_type=Path))
@click.option("--tokenizer", default="minilm", show_default=True, help="minilm, none, or a tokenizer.json.")
@click.option(
    "--scheme",
    "schemes",
    multiple=True,
    help=f"Specialty scheme: {', '.join(SCHEMES)}, or a TOML file; `none` for no labels [default: all "
    "built-in schemes].",
)
@output_option(None, help="Also write the tables (TSV) to this folder.")
@plot_option
@json_option
def stats_command(
    corpus_path: Path,
    tokenizer: str,
    schemes: tuple[str, ...],
    output: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Count a corpus: specialty, year, venue, licence, kind, language, figures, and lengths.

    Rules decide the specialty; a document with weak evidence counts as unknown.
    """
    began = time.monotonic()
    screen = Screen(as_json=as_json)
    check_file(plot, ".svg")
    corpus = Corpus.open(corpus_path)
    names = [name for name in (schemes or tuple(SCHEMES)) if name != "none"]
    for name in names:
        load_scheme(name)
    stats = compute_stats(
        corpus.documents(),
        tokenizer=load_tokenizer(tokenizer),
        schemes=names,
        total=corpus.artefact.manifest.counts.kept or None,
        progress=screen,
    )
    artefact = write_stats(output, stats, corpus, command=command_words()) if output else None
    if not as_json:
        print_stats(Screen(as_json=False, on_stdout=True), stats)
    if plot is not None:
        from hoofbeat.reports.sections.statistics_section import stats_svg

        write_bytes(plot, stats_svg(stats).encode())
        screen.say(f"plot: {plot}")
    if artefact is not None:
        screen.finish(artefact, next_step=("hoofbeat", "corpus", "show", corpus_path, "ID"), stats=stats)
    elif as_json:
        seconds = round(time.monotonic() - began, 3)
        screen.emit({**_frame(corpus, "stats", stats.documents, seconds), "stats": stats})


def _frame(corpus: Corpus, kind: str, kept: int, seconds: float) -> dict[str, object]:
    """What every command's JSON object has."""
    return {
        "artefact": str(corpus.path),
        "kind": kind,
        "counts": msgspec.to_builtins(Counts(kept=kept)),
        "metrics": {},
        "cost": msgspec.to_builtins(Cost()),
        "seconds": seconds,
    }


def print_stats(screen: Screen, stats: CorpusStats) -> None:
    """The lengths, and how many documents have each value."""
    screen.title(f"{stats.documents:,} documents")
    measured = {**stats.lengths, **({"figures": stats.figures} if stats.figures else {})}
    columns = (Column(name, "amount") for name in ("min", "max", "mean", "median", "75th", "95th"))
    rows = [
        (f"tokens ({stats.tokenizer})" if unit == "tokens" else unit,
         each.minimum, each.maximum, each.mean, each.median, each.p75, each.p95)
        for unit, each in measured.items()
    ]  # fmt: skip
    screen.table(("length", *columns), rows)
    titled = [(load_scheme(name).title, rows) for name, rows in stats.specialties.items()]
    for title, shares in [*titled, *((name, rows) for name, rows in stats.tables.items() if name != "figures")]:
        screen.line("")
        shown = _shares(title, shares)
        screen.table(shown.columns, shown.rows)


def _shares(title: str, rows: Sequence[Share]) -> Table:
    many = len(rows) > _SHOWN_ROWS + 15
    cells = [(for_terminal(row.value), row.documents, row.share) for row in (rows[:_SHOWN_ROWS] if many else rows)]
    if many:
        rest = rows[_SHOWN_ROWS:]
        cells.append((f"({len(rest)} more)", sum(row.documents for row in rest), sum(row.share for row in rest)))
    return table_of((title, *columns_of("documents:count | share:share")), cells)


# show


class _Mark(Struct, frozen=True):
    start: int
    end: int
    style: str


@click.command("show")
@click.argument("corpus_path", metavar="CORPUS", type=click.Path(path_type=Path))
@click.argument("document_id", metavar="ID")
@click.option(
    "--find",
    "words",
    multiple=True,
    help="Highlight these words, in any inflection or spelling. Repeat it for several.",
)
@click.option(
    "--vocabulary",
    "vocabularies",
    multiple=True,
    help="Highlight terms of a vocabulary: icd10cm, rare-diseases, or a .tsv file.",
)
@json_option
def show_command(
    corpus_path: Path, document_id: str, words: tuple[str, ...], vocabularies: tuple[str, ...], as_json: bool
) -> None:
    """Show one document: title, facets, notices, sections with their roles, figures and tables in place."""
    began = time.monotonic()
    screen = Screen(as_json=as_json)
    corpus = Corpus.open(corpus_path)
    document = corpus.get(document_id)
    found = {name: load_vocabulary(name).find_in(document.text) for name in vocabularies}
    for phrase in words:
        places = find_words(document.text, phrase)
        found[phrase] = [
            Match(code=phrase, name=phrase, start=start, end=end, text=document.text[start:end])
            for start, end in places
        ]
    if as_json:
        frame = _frame(corpus, "document", 1, round(time.monotonic() - began, 3))
        screen.emit({**frame, "document": document, "matches": found})
        return
    marks = [
        _Mark(match.start, match.end, _STYLES[number % len(_STYLES)])
        for number, matches in enumerate(found.values())
        for match in matches
    ]
    _Page(Console(highlight=False, markup=False, emoji=False), document, marks).show()
    _print_matches(found, screen)


def _print_matches(found: dict[str, list[Match]], screen: Screen) -> None:
    """The matches as a list on standard output, for terminals without colours."""
    for name, matches in found.items():
        screen.say(f"{len(matches):,} matches of {name}")
        for match in matches:
            line = f"{match.start}-{match.end}\t{match.text}"
            line += f"\t{match.code}\t{match.name}" if match.code != name else ""
            click.echo(for_terminal(line.replace("\n", " ")))


class _Page:
    """One document on a console."""

    def __init__(self, console: Console, document: Document, marks: Sequence[_Mark]) -> None:
        self._console = console
        self._document = document
        self._marks = sorted(marks, key=lambda mark: mark.start)

    def show(self) -> None:
        document = self._document
        self._line(document.title or document.id, "bold")
        about = " · ".join(part for part in (document.id, document.kind, document.licence) if part)
        self._line(about, "dim")
        for name in document.facets:
            self._line(f"{name}: {'; '.join(facet_values(document.facets, name))}", "dim")
        for notice in document.notices:
            self._line(f"notice: {notice}", "bold red")
        place = 0
        for section in document.sections:
            self._stretch(place, section.start)
            self._heading(section)
            self._stretch(section.body, section.end)
            place = section.end
        self._stretch(place, len(document.text))

    def _heading(self, section: Section) -> None:
        remarks = [section.role] if section.role else []
        remarks += [f"page {section.page}"] if section.page else []
        if not section.heading and not remarks:
            return
        self._console.print()
        line = Text("#" * section.level + " ", style="dim")
        heading = self._text(section.start, section.start + len(section.heading))
        heading.stylize("bold")
        line.append_text(heading)
        if remarks:
            line.append(f"  [{for_terminal(', '.join(remarks))}]", style="dim")
        self._print(line)

    def _stretch(self, start: int, end: int) -> None:
        """A stretch of text, its figures and tables apart from its paragraphs."""
        place = start
        for item in self._items(start, end):
            self._paragraphs(place, item.start)
            self._figure(item) if isinstance(item, Figure) else self._table(item)
            place = max(place, item.end)
        self._paragraphs(place, end)

    def _items(self, start: int, end: int) -> Iterator[Figure | DocumentTable]:
        every: list[Figure | DocumentTable] = [*self._document.figures, *self._document.tables]
        inside = [item for item in every if start <= item.start < item.end <= end]
        last = start
        for item in sorted(inside, key=lambda each: (each.start, -each.end)):
            if item.start >= last:
                yield item
                last = item.end

    def _paragraphs(self, start: int, end: int) -> None:
        place = start
        for block in self._document.text[start:end].split("\n\n"):
            if block.strip():
                self._console.print()
                self._print(self._text(place, place + len(block)))
            place += len(block) + 2

    def _figure(self, figure: Figure) -> None:
        self._console.print()
        line = Text("▣ ", style="cyan")
        line.append_text(self._text(figure.start, figure.end))
        if figure.files:
            line.append(f"  ({for_terminal(', '.join(figure.files))})", style="dim")
        self._print(line)

    def _table(self, table: DocumentTable) -> None:
        if not table.rows or not self._console.is_terminal or self._marked(table.start, table.end):
            self._paragraphs(table.start, table.end)
            return
        self._console.print()
        shown = RichTable(title=Text(for_terminal(f"{table.label} {table.caption}".strip())), show_header=False)
        for _ in range(max(len(row) for row in table.rows)):
            shown.add_column(overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(for_terminal(cell)) for cell in row))
        self._console.print(shown)

    def _marked(self, start: int, end: int) -> bool:
        return any(mark.start < end and start < mark.end for mark in self._marks)

    def _text(self, start: int, end: int) -> Text:
        text = Text(for_terminal(self._document.text[start:end]))
        for mark in self._marks:
            if mark.start < end and start < mark.end:
                text.stylize(mark.style, max(0, mark.start - start), min(end, mark.end) - start)
        return text

    def _line(self, text: str, style: str) -> None:
        self._print(Text(for_terminal(text), style=style))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=not self._console.is_terminal)
