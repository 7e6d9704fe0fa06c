"""The sources of an audit, and what people call them: institution, short title and date, with the id in small print.

Every page, table, export and message of an audit takes its names from here. A judge is shown the answers of "source A"
and "source B"; its words are stored as it wrote them, and the names are put in where they are displayed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field

from hoofbeat.facets import facet_value, facet_values
from hoofbeat.records import Document, Facets
from hoofbeat.text import cut, one_line

_TITLE, _INSTITUTION = 60, 60
_DATES = ("date", "released", "year")
_VERSIONS = ("version", "edition")
EDITION_FACETS = (*_DATES, *_VERSIONS)
"""The facets that tell one edition of a document from another."""

_REMARK = re.compile(r"\s*\((?:invented|fictional|fictitious)\)\s*\Z", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WHEN = rf"(?:(?:\d{{1,2}}\s+)?(?:{'|'.join(_MONTHS)})[a-z]*\.?\s+(?:\d{{1,2}},?\s+)?)?(?:19|20)\d\d"
_STATED = re.compile(
    rf"\b(?:last\s+)?(?P<word>revised|updated|reviewed|published|issued|released|approved|effective)"
    rf"(?:\s+(?:on|in|date|version)|\s*:)*\s+(?P<when>{_WHEN})(?!\d)",
    re.IGNORECASE,
)
_MARGIN = 3_000

FROM_FACET, FROM_TEXT = "facet", "text"
"""How a source's date is known: the document's metadata gave it, or a rule found it in the document's words."""


class AuditSource(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One audited source; `dated_by` says where its date is from, for one found in the text may be another's.

    `text_sha256` tells one edition of its text from another; it is empty where answers were given. `documents` are
    the ids and titles of its documents where a source can have several.
    """

    id: str
    title: str
    facets: Facets
    date: str = ""
    dated_by: str = ""
    version: str = ""
    text_sha256: str = ""
    documents: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(document: Document) -> AuditSource:
        """A document as a source, with the date and version of its metadata; else a date that its words state."""
        date, by = stated_date(document)
        version = next(iter(facet_values(document.facets, *_VERSIONS)), "")
        return AuditSource(
            id=document.id,
            title=document.title,
            facets=document.facets,
            date=date,
            dated_by=by,
            version=version,
            text_sha256=hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest(),
        )


def stated_date(document: Document) -> tuple[str, str]:
    """When a document was published, and how that is known; both empty where nothing says so.

    Words such as "last revised May 2016" count near the document's beginning or end only: inside, they are often about
    another document.
    """
    if values := facet_values(document.facets, *_DATES):
        return values[0], FROM_FACET
    found = _STATED.search(document.text[:_MARGIN])
    if found is None and len(document.text) > _MARGIN:
        found = _STATED.search(document.text, max(_MARGIN, len(document.text) - _MARGIN))
    return (one_line(found["when"]), FROM_TEXT) if found else ("", "")


class SourceName(Struct, frozen=True, kw_only=True):
    """What people call a source. `short` is enough to tell it from the others of the audit; the id is small print."""

    id: str
    short: str
    institution: str
    title: str
    date: str
    version: str = ""
    doubtful_date: bool = False

    @property
    def full(self) -> str:
        """Institution, short title, version and date, each where it is known and says something new."""
        parts = [self.institution, self.title, self.version, self.dated]
        return ", ".join(dict.fromkeys(part for part in parts if part)) or self.id

    @property
    def dated(self) -> str:
        """The date as the document gives it; a question mark where it was only found in the text."""
        return f"{self.date}?" if self.date and self.doubtful_date else self.date

    @property
    def year(self) -> str:
        """The latest year of the date ("2011, revised 2013": 2013); a question mark where it was found in the text."""
        years = _YEAR.findall(self.date)
        return f"{max(years)}{'?' * self.doubtful_date}" if years else ""

    def older_than(self, other: SourceName) -> bool:
        """Whether this source is from an earlier year; one without a date is neither older nor newer."""
        mine, its = (max(_YEAR.findall(each.date), default="") for each in (self, other))
        return "" < mine < its


class SourceNames:
    """The names of an audit's sources; a source that is not among them goes by its id."""

    def __init__(self, sources: Iterable[AuditSource], facet: str = "institution", group: str = "") -> None:
        sources = list(sources)
        shorts = _distinct(sources, facet, group)
        self._names = {each.id: _named(each, facet, short) for each, short in zip(sources, shorts, strict=True)}

    def __getitem__(self, source: str) -> SourceName:
        known = self._names.get(source)
        return known or SourceName(id=source, short=source, institution="", title=source, date="")

    def __iter__(self) -> Iterator[SourceName]:
        return iter(self._names.values())

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({ {each.id: each.short for each in self} })"

    def short(self, source: str) -> str:
        """The shortest name that tells the source from the others."""
        return self[source].short

    def full(self, source: str) -> str:
        """Institution, short title and date."""
        return self[source].full

    def institution(self, source: str) -> str:
        """Whose document it is; the source's own short name where nothing says so."""
        return _REMARK.sub("", self[source].institution) or self[source].short

    def both(self, a: str, b: str) -> str:
        """Two sources: `X and Y`."""
        return f"{self.short(a)} and {self.short(b)}"

    def both_judged(self, reasoning: str, a: str, b: str) -> str:
        """Two sources in the order in which the judge saw them: `X and Y`."""
        return self.both(*judged_order(reasoning, a, b))

    def topic_in_order(self, topic: str, reasoning: str, a: str, b: str) -> str:
        """What two sources differ in, for a table that lists them in another order than the judge: it names that."""
        first, second = judged_order(reasoning, a, b)
        if (first, second) == (a, b) or not _ORDERED.search(topic):
            return topic
        return f"{topic} [in this order: {self.short(first)}, {self.short(second)}]"

    def with_names(self, reasoning: str, a: str, b: str) -> str:
        """A judge's words on two sources, with their names where it plainly speaks of "source A" or "source B"."""
        return name_sides(reasoning, a, b, self.short)


def source_dates(sources: Iterable[AuditSource]) -> dict[str, str]:
    """The date of each source by its id, as readers are shown it; empty where none is known."""
    return {name.id: name.dated for name in SourceNames(sources)}


def _named(source: AuditSource, facet: str, short: str) -> SourceName:
    date, by = source.date, source.dated_by
    if not date:  # audits made before sources had a date
        date, by = next(iter(facet_values(source.facets, *_DATES)), ""), FROM_FACET
    return SourceName(
        id=source.id,
        short=short,
        institution=one_line(facet_value(source.facets, facet)),
        title=short_title(source.title),
        date=one_line(date),
        version=one_line(source.version),
        doubtful_date=by == FROM_TEXT,
    )


def short_title(full: str) -> str:
    """A title without its subtitle where it is long, cut to what a table can show."""
    title = one_line(full).rstrip(". ")
    head = title.partition(": ")[0]
    return cut(head if 12 <= len(head) < len(title) > _TITLE else title, _TITLE)


def _distinct(sources: Sequence[AuditSource], facet: str, group: str) -> list[str]:
    """A short name for each: its institution, and only what else tells documents of one institution apart."""
    steps: tuple[Callable[[AuditSource], str], ...] = (
        lambda each: ", ".join(facet_values(each.facets, group)),
        lambda each: short_title(each.title),
        lambda each: next(iter(_YEAR.findall(each.date or facet_value(each.facets, "year"))), ""),
        lambda each: each.id,
    )
    names = [_first_name(each, facet) for each in sources]
    for step in steps:
        clashing = {name for name in names if names.count(name) > 1}
        if not clashing:
            break
        parts = [step(each) for each in sources]
        helpful = {
            name for name in clashing if len({part for part, own in zip(parts, names, strict=True) if own == name}) > 1
        }
        names = [
            f"{name}, {part}" if name in helpful and part and part != name else name
            for name, part in zip(names, parts, strict=True)
        ]
    return names


def _first_name(source: AuditSource, facet: str) -> str:
    institution = _REMARK.sub("", one_line(facet_value(source.facets, facet)))
    return cut(institution, _INSTITUTION) or short_title(source.title) or source.id


_OPENING = re.compile(r"\A\(A is (?P<first>.+?), B is (?P<second>.+?)\.\) ")
_CARRIED = re.compile(r"\ACarried from (?P<first>.+?) \(A\) and (?P<second>.+?) \(B\): ")
_ORDERED = re.compile(r"(?<!\w)(?:vs\.?|versus|against|rather than|instead of)(?!\w)|\b[AB]\b", re.IGNORECASE)
_NOUNS = "source|answer|guideline|handbook|document|text|statement|side|policy"
_VERBS = (
    "recommends?|says?|states?|advises?|tells?|allows?|gives?|suggests?|requires?|instructs?|specif(?:ies|y)|permits?|"
    "forbids?|warns?|adds?|sets?|lists?|offers?|limits?|restricts?|prohibits?|does|do|is|are|has|have|only|would|could|"
    "may|might|also|both|leaves?|names?|asks?|calls?|starts?|begins?|excludes?|includes?|mentions?"
)
_SIDES = re.compile(
    rf"\b(?:(?:[Tt]he\s+)?(?P<nouns>[A-Za-z]+s)\s+A\s+and\s+B\b"
    rf"|(?:[Tt]he\s+)?(?:{_NOUNS}|{_NOUNS.title()})(?:\s+of\s+[Ss]ource)?\s+(?P<side>[AB])(?![\w-])"
    rf"|(?P<before>(?:(?:[Rr]eaders?|[Pp]atients?|[Pp]eople|[Ff]ollowers?|[Ww]ording|[Ll]imit|[Aa]dvice)\s+of|what|"
    rf"[Uu]nlike|[Ff]ollowing|[Aa]ccording\s+to|[Uu]nder|by)\s+)(?P<after>[AB])(?![\w-])"
    rf"|(?P<both>[AB])\s+and\s+[AB]\b"
    rf"|(?P<bare>[AB])(?=['’]s\b|\s+(?:{_VERBS})\b))"
)
_CLAUSE = re.compile(
    r"(?:\A|[.;:,(]\s*|\b(?:while|whereas|and|but|because|that|so|if|than|where|when|[Bb]oth|between|to)\s+)\Z"
)
_OTHERS = re.compile(
    r"\b(?:hepatitis|vitamins?|types?|groups?|grades?|influenza|class|level)\s+[AB](?:(?:,|\s+and|\s+or)\s+[A-E])*\b",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![\w-])(?:B|(?<![.:;!?]\s)(?<!\A)A)(?![\w-])")


def judged_order(reasoning: str, a: str, b: str) -> tuple[str, str]:
    """Two sources in the order in which the judge saw them, which its reasoning tells.

    What a judge says in short ("38.5 vs 38.0 °C") is in this order, so pairs are listed in it wherever that is shown.
    """
    opening = _OPENING.match(reasoning) or _CARRIED.match(reasoning)
    exchanged = opening is not None and (opening["first"] == b or opening["second"] == a)
    return (b, a) if exchanged else (a, b)


def name_sides(reasoning: str, a: str, b: str, name: Callable[[str], str]) -> str:
    """A judge's words with the names of the two sources in the place of its letters.

    A stored reasoning begins with who is A and who is B where the judge was shown the second source first, or where the
    label is from another pair. A bare letter is replaced only where it can't be anything else: "hepatitis B" stays.
    Where letters are left, the end of the text says whom they mean.
    """
    first, second = map(name, judged_order(reasoning, a, b))
    lead = ""
    if opening := _OPENING.match(reasoning):
        reasoning = reasoning[opening.end() :]
    elif opening := _CARRIED.match(reasoning):
        reasoning = reasoning[opening.end() :]
        first, second = name(opening["first"]), name(opening["second"])
        lead = f"Label of the pair {first} and {second}: "
    sides = {"A": first, "B": second}

    def named(match: re.Match[str]) -> str:
        starts = _CLAUSE.search(reasoning[: match.start()])
        if noun := match["nouns"]:
            known = re.fullmatch(rf"(?:{_NOUNS})s", noun, re.IGNORECASE)
            return f"{first} and {second}" if known else match[0]
        if match["side"]:
            return sides[match["side"]]
        if match["after"]:
            return f"{match['before']}{sides[match['after']]}"
        if match["both"]:
            return f"{sides[match['both']]} and {sides[match[0][-1]]}" if starts else match[0]
        return sides[match["bare"]] if starts else match[0]

    told = _SIDES.sub(named, reasoning)
    left = _LETTER.search(_without(told, (first, second)))
    return f"{lead}{told}{f' (A: {first}; B: {second}.)' if left else ''}"


def _without(text: str, names: Iterable[str]) -> str:
    """A text without the names in it and things such as hepatitis B, which have letters of their own."""
    text = _OTHERS.sub("_", text)
    for each in names:
        text = text.replace(each, "_") if each else text
    return text
