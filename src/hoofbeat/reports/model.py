"""A report as data: what it holds, in order, before anyone decides how it looks.

Sections of a report are built as these blocks; HTML, Markdown and CSV are written from the same blocks, so that they
never tell different stories. All text is plain text: no block carries markup, except charts, which are SVG of our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from msgspec import Struct

from hoofbeat.reports.tables import Table

Verdict = Literal["right", "wrong", "unscored", "plain"]


class Heading(Struct, frozen=True):
    """A heading of level 2 or 3; `id` is its anchor. One that is not `listed` is left out of the contents."""

    kind: ClassVar[str] = "heading"
    text: str
    id: str
    level: int = 2
    listed: bool = True


class Text(Struct, frozen=True):
    """A paragraph, or with `label` a labelled one; line breaks are kept."""

    kind: ClassVar[str] = "text"
    text: str
    label: str = ""


class Notice(Struct, frozen=True):
    """A sentence that must not be overlooked: nothing to show, something left out, a reason for care."""

    kind: ClassVar[str] = "notice"
    text: str


class Card(Struct, frozen=True, kw_only=True):
    """A key figure: what it is, its value, and below it its interval and n."""

    label: str
    value: str
    detail: str = ""


class Lead(Struct, frozen=True):
    """A finding in one sentence for the first screen; `link` is an anchor (`#...`) to where it is shown, in `words`."""

    text: str
    link: str = ""
    words: str = "See it"


class Chart(Struct, frozen=True, kw_only=True):
    """A chart as SVG, drawn for a wide page and, where that would be too small on a phone, again for a narrow one.

    One that would be illegible if it were made to fit is `far`: it keeps its size and is scrolled.
    """

    kind: ClassVar[str] = "chart"
    name: str
    caption: str
    wide: str
    narrow: str = ""
    far: bool = False


class Columns(Struct, frozen=True):
    """Blocks side by side where there is room."""

    kind: ClassVar[str] = "columns"
    blocks: tuple[Block, ...]


class Details(Struct, frozen=True):
    """Blocks behind a line that opens them."""

    kind: ClassVar[str] = "details"
    summary: str
    blocks: tuple[Block, ...]


class PassageView(Struct, frozen=True, kw_only=True):
    """A piece of a document: evidence for a gold answer, or what a model was shown.

    Where the words around it are known, the text is marked between them; `marks` are parts of the text (start, end)
    that are marked by themselves. A passage that an answer refers to is `cited`.
    """

    source: str
    text: str
    before: str = ""
    after: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    cited: bool = False


class QuestionView(Struct, frozen=True, kw_only=True):
    """A question with its case, options, gold answer, the evidence for it, and its facets in words."""

    kind: ClassVar[str] = "question"
    text: str
    context: str = ""
    options: tuple[str, ...] = ()
    gold: str = ""
    evidence: tuple[PassageView, ...] = ()
    facts: tuple[str, ...] = ()


class OptionView(Struct, frozen=True, kw_only=True):
    """An option as it was shown: whether it was chosen, whether it is the gold answer.

    `share` is the part of the options' probability that falls to it, `figure` the log-probability in words.
    """

    text: str
    chosen: bool = False
    gold: bool = False
    share: float | None = None
    figure: str = ""


class VoteView(Struct, frozen=True, kw_only=True):
    """What one of several judges said."""

    judge: str
    label: str
    reasoning: str = ""


class JudgmentView(Struct, frozen=True, kw_only=True):
    """One judgment of an answer: the aspect, the label or score in words, who judged and why, and the single votes."""

    aspect: str
    label: str
    judge: str
    tone: Verdict = "plain"
    reasoning: str = ""
    votes: tuple[VoteView, ...] = ()


class TraceView(Struct, frozen=True, kw_only=True):
    """One thing an agent did: what, with which words, and what it found."""

    what: str
    text: str = ""
    reasoning: str = ""
    found: tuple[str, ...] = ()


class AnswerView(Struct, frozen=True, kw_only=True):
    """One answer: who gave it and how, its verdict in words, what was shown and chosen, and every judgment of it.

    `places` are the numbers of its systems in the viewer, by which it can be picked out (none: it always shows). One
    that is `folded` shows its first line only, until it is opened. `id` is its anchor, where something leads to it.
    """

    kind: ClassVar[str] = "answer"
    id: str = ""
    system: str
    verdict: Verdict
    verdict_text: str
    text: str
    places: tuple[int, ...] = ()
    folded: bool = False
    reasoning: str = ""
    options: tuple[OptionView, ...] = ()
    reading: str = ""
    judgments: tuple[JudgmentView, ...] = ()
    passages: tuple[PassageView, ...] = ()
    dropped: tuple[str, ...] = ()
    trace: tuple[TraceView, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: str = ""


class SideView(Struct, frozen=True, kw_only=True):
    """What one source says: its answer, the passages it cites, others that were shown, and what is to be doubted.

    `id` is the source's id, for the small print below its name; `marks` are parts of the text (start, end). `partly`
    says that only parts of the source were read, found by a search; `trace` how that search went.
    """

    name: str
    text: str
    id: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    cited: tuple[PassageView, ...] = ()
    others: tuple[PassageView, ...] = ()
    unshown: int = 0
    warnings: tuple[str, ...] = ()
    partly: bool = False
    trace: tuple[TraceView, ...] = ()


class PairView(Struct, frozen=True, kw_only=True):
    """Two sources on one question: how they relate, why, and what each says. `tone` is the label's place in order."""

    kind: ClassVar[str] = "pair"
    a: SideView
    b: SideView
    label: str
    tone: int
    facts: tuple[str, ...] = ()
    reasoning: str = ""


class GridView(Struct, frozen=True, kw_only=True):
    """How every two of some sources relate on one question: a table of labels whose cells open the pair.

    `cells` has a letter for each pair above the diagonal, row by row: `a` is the first of `labels`, a hyphen is no
    label, a full stop no pair. `links` leads from a cell (by its place in `cells`) to the item of its pair, `marks`
    says of a cell what else it should have been.
    """

    kind: ClassVar[str] = "grid"
    title: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    cells: str
    links: tuple[tuple[int, str], ...] = ()
    marks: tuple[tuple[int, str], ...] = ()


class StatementView(Struct, frozen=True, kw_only=True):
    """What an institution says to a question, in one line.

    `tone` is the colour and `sign` the mark beside it, for readers who see no colours; `tag` says in a word where it
    differs, and from whom or with whom. `facts` are strength and year, `flags` what to mind; `check` says that its
    footnote, of the number `note`, has an objection.
    """

    line: str
    tone: str
    sign: str
    tag: str = ""
    facts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    check: str = ""
    note: int = 0
    link: str = ""


class SynthesisRowView(Struct, frozen=True, kw_only=True):
    """A question across institutions: its verdict in words, and for each institution statements or else its state."""

    name: str
    text: str
    verdict: str
    contested: bool
    cells: tuple[tuple[str, tuple[StatementView, ...]], ...]
    link: str = ""


class FootnoteView(Struct, frozen=True, kw_only=True):
    """The passage behind a statement, what the check objects to, and the newer document that says otherwise."""

    number: int
    who: str
    quote: str
    where: str
    check: str = ""
    newer: str = ""
    link: str = ""


class SynthesisView(Struct, frozen=True, kw_only=True):
    """Who says what on one topic: questions down, institutions (name and small print) across, on one printed page.

    `notes` are those of the whole topic, with its last table. `unanswered` are questions (text and link) on which all
    are silent; `foot` says how to read the table. `size` is the step of the type's size in print, 0 the largest.
    `table` holds the same for Markdown, CSV and LaTeX.
    """

    kind: ClassVar[str] = "synthesis"
    id: str
    title: str
    part: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[SynthesisRowView, ...]
    notes: tuple[FootnoteView, ...]
    notes_id: str
    notes_title: str
    key: tuple[tuple[str, str, str], ...]
    foot: str
    unanswered: tuple[tuple[str, str], ...]
    size: int
    table: Table


class Entry(Struct, frozen=True, kw_only=True):
    """One item of a viewer: a line that opens; `marks` (text, tone) stand on it.

    It is found by its `states`; where the viewer has systems, `outcomes` holds the states under each of them instead,
    and `values` the values of each of the viewer's facets.
    """

    id: str
    name: str
    title: str
    marks: tuple[tuple[str, str], ...] = ()
    states: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, ...], ...] = ()
    values: tuple[tuple[str, ...], ...] = ()
    blocks: tuple[Block, ...] = ()


class Packed(Struct, frozen=True, kw_only=True):
    """The items of a long viewer, compressed: their lines in one piece, what they open to in many."""

    total: int
    heads: bytes
    bodies: tuple[bytes, ...]


class Viewer(Struct, frozen=True, kw_only=True):
    """A list of items that can be searched, and filtered by state, system and facet.

    Where there are too many for a page, `packed` holds all of them, shown a page at a time, and `entries` are only the
    first, for readers without scripts, in print and in Markdown. `left_out` items are nowhere in the report.
    """

    kind: ClassVar[str] = "viewer"
    id: str
    noun: str
    entries: tuple[Entry, ...]
    left_out: int = 0
    states: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    system_noun: str = "system"
    facets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    packed: Packed | None = None

    @property
    def total(self) -> int:
        """How many items can be read in the report."""
        return self.packed.total if self.packed else len(self.entries)

    @property
    def all_states(self) -> tuple[str, ...]:
        """The states that items are found by, in order."""
        return self.states or tuple(sorted({state for entry in self.entries for state in entry.states}))


Block = (
    Heading | Text | Notice | Table | Chart | Columns | Details
    | QuestionView | AnswerView | PairView | GridView | SynthesisView | Viewer
)  # fmt: skip


class PlainSummary(Struct, frozen=True, kw_only=True):
    """A result in plain sentences for one page: what was asked and found, how sure it is, what to do, what it is not.

    The last are its `limits`. `decided` is what a team decided on it. A `warning` comes before all of them: why the
    result can't be relied on.
    """

    title: str
    subtitle: str = ""
    warning: str = ""
    asked: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    sure: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    todo: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


class Report(Struct, frozen=True, kw_only=True):
    """A whole report: the first screen, then blocks in order, then its `origin`, how everything was made.

    `warnings` come first of all, before the findings that they put in doubt; `notes` follow the findings. `opening`
    comes on the first screen before all figures: what readers must see first. `files` (name, content) are
    written beside the page; `summaries` (chapter, summary) can be.
    """

    title: str
    notice: str
    version: str
    subtitle: str = ""
    opening: tuple[Block, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    leads: tuple[Lead, ...] = ()
    cards: tuple[Card, ...] = ()
    models: tuple[tuple[str, str], ...] = ()
    blocks: tuple[Block, ...] = ()
    origin: tuple[Block, ...] = ()
    summaries: tuple[tuple[str, PlainSummary], ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    compact: bool = False

    @property
    def headings(self) -> tuple[Heading, ...]:
        """The listed headings in order: the table of contents."""
        return tuple(block for block in self.all_blocks if isinstance(block, Heading) and block.listed)

    @property
    def all_blocks(self) -> tuple[Block, ...]:
        """What opens the report, what follows, and how it was made."""
        return *self.opening, *self.blocks, *self.origin


def tables_in(blocks: Sequence[Block]) -> Iterator[Table]:
    """Every table, however deep, in order."""
    for block in blocks:
        if isinstance(block, Table):
            yield block
        yield from tables_in(_inside(block))


def charts_in(blocks: Sequence[Block]) -> Iterator[Chart]:
    """Every chart outside of viewers, in order."""
    for block in blocks:
        if isinstance(block, Chart):
            yield block
        elif not isinstance(block, Viewer):
            yield from charts_in(_inside(block))


def viewers_in(blocks: Sequence[Block]) -> Iterator[Viewer]:
    """Every viewer, however deep, in order."""
    for block in blocks:
        if isinstance(block, Viewer):
            yield block
        elif isinstance(block, Columns | Details):
            yield from viewers_in(block.blocks)


def _inside(block: Block) -> tuple[Block, ...]:
    match block:
        case Columns() | Details():
            return block.blocks
        case SynthesisView():
            return (block.table,)
        case Viewer():
            return tuple(inner for entry in block.entries for inner in entry.blocks)
        case _:
            return ()
