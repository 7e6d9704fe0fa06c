"""Facets per file from a table (`--facets-from files.csv`): which institution, version or date each document has.

Handbooks rarely say whose they are in a way that a program can read, and an audit compares institutions. A table with a
column `file` and a column for each facet says it once for all files, and can be checked by a person. `file` is a path
below the imported folder or a pattern: `*` matches anything in one folder, `**` any folders. A row that names
one file counts before a pattern. The columns `id`, `title`, `kind`, `licence` and `notice` go to the record, as in
front matter; a cell `[a, b]` is a list; an empty cell says nothing.

Nothing is guessed: a row that matches no file, a file that two rows describe differently and a cell that a spreadsheet
would run are errors, all said at once before anything is read. Files that no row names are imported and listed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from hoofbeat.corpus.parsers.prose import FrontMatter, about_from, front_matter_value
from hoofbeat.errors import InputError
from hoofbeat.store import InputRef, Manifest
from hoofbeat.store.files import file_sha256
from hoofbeat.store.sheets import refuse_lines, sheet_rows, sheet_text
from hoofbeat.store.tables import is_formula
from hoofbeat.text import squeeze

FILE = "file"
MAX_BYTES = 50_000_000
MAX_CELL = 5_000
MAX_LISTED = 10
_BEYOND = "\0"
_FIX = "correct these lines of the table; nothing was imported"
_NUMBER = re.compile(r"[+-]?\d[\d.,\s]*|[-–]")
_SPREADSHEET_ERROR = re.compile(r"#(NAME\?|REF!|N/A|VALUE!|DIV/0!|NULL!|NUM!)")
_YEAR = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?!\d)")


class _Row(Struct):
    """A row: its line, what it names, and what it says; `cells` are its values by column."""

    line: int
    name: str
    pattern: re.Pattern[str] | None
    cells: dict[str, str]
    files: list[str]


class FileFacets:
    """The rows of a table, matched to the files of one import (`match`)."""

    def __init__(self, path: Path, rows: list[_Row]) -> None:
        self.path = path
        self.unnamed: list[str] = []
        self._rows = rows
        self._exact = {row.name: row for row in rows if row.pattern is None}
        self._patterns = [row for row in rows if row.pattern is not None]
        self._found: dict[str, FrontMatter] = {}

    @classmethod
    def read(cls, path: Path) -> FileFacets:
        """Read and check a table."""
        _check_file(path)
        text, _ = sheet_text(path)
        rows: list[_Row] = []
        problems: list[str] = []
        lines: dict[str, int] = {}
        for line, cells in sheet_rows(path, text, (FILE,), _no_header(path, text), beyond=_BEYOND):
            if not any(cells.values()):
                continue
            problem = _problem(cells)
            name = _plain(cells[FILE])
            if not problem and name in lines:
                problem = f"{name} is named again (first in line {lines[name]})"
            if problem:
                problems.append(f"line {line}: {problem}")
                continue
            lines[name] = line
            values = {column: value for column, value in cells.items() if column not in {FILE, _BEYOND} and value}
            rows.append(_Row(line, name, _pattern(name), values, []))
        refuse_lines(problems, path, _FIX)
        if not rows:
            raise InputError("the table of facets has no rows", where=str(path), fix="add a row for each file")
        if not any(row.cells for row in rows):
            raise InputError(
                "the table of facets has no values beside the files",
                where=str(path),
                fix="add a column such as institution",
            )
        return cls(path, rows)

    def match(self, files: Iterable[tuple[str, tuple[str, ...]]]) -> None:
        """Find the rows of all files, each given by its path and the names it goes by."""
        names: list[str] = []
        problems: list[str] = []
        for path, known in files:
            names.append(known[0])
            said = list(self._rows_of([_plain(name) for name in known]))
            for row in said:
                row.files.append(known[0])
            if not said:
                self.unnamed.append(known[0])
                continue
            sources: dict[str, _Row] = {}
            for row in said:
                for column, value in row.cells.items():
                    first = sources.setdefault(column, row)
                    if first.pattern and first.cells[column] != value:
                        other = f"{first.cells[column]!r} in line {first.line}"
                        problems.append(f"line {row.line}: {known[0]} gets the {column} {value!r}, but {other}")
            self._found[path] = _about({column: row.cells[column] for column, row in sources.items()})
        for row in self._rows:
            problems += _match_problem(row, names)
        refuse_lines(problems, self.path, _FIX)

    def about(self, path: str) -> FrontMatter:
        """What the table says about a file; nothing where no row names it."""
        return self._found.get(path, FrontMatter())

    def reference(self) -> InputRef:
        """The table as an input of the import."""
        return InputRef(name=self.path.name, sha256=file_sha256(self.path), kind="table of facets")

    def settings(self) -> dict[str, object]:
        """What the manifest says about the table."""
        return {
            "table": self.path.name,
            "sha256": file_sha256(self.path),
            "rows": len(self._rows),
            "files_without_row": self.unnamed[:MAX_LISTED],
        }

    def _rows_of(self, names: list[str]) -> Iterator[_Row]:
        """The rows that name a file, the exact one first."""
        exact = next((self._exact[name] for name in names if name in self._exact), None)
        if exact is not None:
            yield exact
        yield from (row for row in self._patterns if row.pattern and any(map(row.pattern.fullmatch, names)))


def file_facets_note(manifest: Manifest) -> str:
    """The note about files that no row of an import's table of facets names; empty where there are none."""
    found = manifest.settings.get("facets_from")
    count = manifest.metrics.get("files_without_row")
    if not isinstance(found, dict) or not isinstance(count, int) or not count:
        return ""
    listed = found["files_without_row"]
    more = f" and {count - len(listed):,} more" if count > len(listed) else ""
    who = "1 file is" if count == 1 else f"{count:,} files are"
    return f"note: {who} in no row of {found['table']}: {', '.join(listed)}{more}"


def _check_file(path: Path) -> None:
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError as err:
        raise InputError(
            f"can't read the table of facets: {err.strerror or err}", where=str(path), fix="check the path"
        ) from err
    if start.startswith(b"PK"):
        raise InputError("this is a workbook or a package, not a table", where=str(path), fix="save the sheet as CSV")
    if size > MAX_BYTES:
        raise InputError("the table of facets is too large", where=str(path), fix="give a table of one row per file")


def _no_header(path: Path, text: str) -> InputError:
    first = squeeze(text.lstrip("\ufeff").partition("\n")[0])[:200]
    return InputError(
        f"the table of facets has no column {FILE!r}: its first line is {first!r}",
        where=str(path),
        fix="write a first line with the names of the columns, such as file,institution,version,date",
    )


def _problem(cells: dict[str, str]) -> str:
    """What forbids a row, if anything."""
    if not cells[FILE]:
        return f"no {FILE}"
    if cells.get(_BEYOND):
        return f"more cells than columns: {cells[_BEYOND][:60]!r} (put a value with a separator in quotes)"
    for column, value in cells.items():
        if value and not column:
            return f"the column of {value[:60]!r} has no name in the first line"
        if len(value) > MAX_CELL:
            return f"the {column} has more than {MAX_CELL:,} characters"
        if _SPREADSHEET_ERROR.fullmatch(value):
            return f"the {column} is a spreadsheet's error: {value}"
        if is_formula(value) and not _NUMBER.fullmatch(value):
            return f"the {column} begins like a formula: {value[:60]!r} (write its value)"
    return ""


def _plain(name: str) -> str:
    """A path in one form: spreadsheets on other systems write backslashes, and letters with separate accents."""
    path = unicodedata.normalize("NFC", name.strip().replace("\\", "/"))
    return path.removeprefix("./")


def _pattern(name: str) -> re.Pattern[str] | None:
    """What a pattern matches; None for a plain path."""
    if not set(name) & set("*?"):
        return None
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", name)
    known = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(known.get(piece, re.escape(piece)) for piece in pieces))


def _match_problem(row: _Row, names: list[str]) -> Iterator[str]:
    if not row.files:
        close = get_close_matches(row.name, names, n=1, cutoff=0.6)
        hint = f" (closest: {close[0]})" if close else ""
        what = "no file matches" if row.pattern else "no imported file is named"
        yield f"line {row.line}: {what} {row.name}{hint}"
    elif row.pattern is None and len(row.files) > 1:
        yield f"line {row.line}: {row.name} names {len(row.files)} files; write the folder before the name"


def _about(cells: dict[str, str]) -> FrontMatter:
    """A row as a document's statements about itself; a date gives the year as well."""
    about = about_from((column, front_matter_value(value)) for column, value in cells.items())
    date = about.facets.get("date")
    if isinstance(date, str) and "year" not in about.facets and (year := _YEAR.search(date)):
        about.facets["year"] = year.group(1)
    return about
