"""Loading a vocabulary by name, compiled once and kept in the user's cache folder.

The cached file is named by a hash of the source file's content and of the code and data that compile it: a new release
or a changed rule makes a new file, and what is stale is removed. A cache that can't be written or read is only slower.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path

import msgspec

from hoofbeat.corpus.vocabularies.sources import SOURCES, find_source, read_hpoa, read_icd10cm, read_table
from hoofbeat.corpus.vocabularies.terms import Term
from hoofbeat.corpus.vocabularies.vocabulary import Compiled, Vocabulary, compile_terms
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.store.files import file_sha256, user_cache, write_bytes

__all__ = ["cache_folder", "load_vocabulary", "vocabulary_names"]

_READERS: dict[str, Callable[[Path], tuple[list[Term], str]]] = {
    "icd10cm": read_icd10cm,
    "rare-diseases": read_hpoa,
}
_COMPILERS = ("words.py", "wordings.py", "terms.py", "vocabulary.py", "sources.py")


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


def _cached(file: Path) -> Compiled | None:
    with suppress(OSError, zlib.error, msgspec.DecodeError):
        return msgspec.msgpack.decode(zlib.decompress(file.read_bytes()), type=Compiled)
    return None


def _keep(file: Path, compiled: Compiled) -> None:
    with suppress(OSError, OutputError):
        write_bytes(file, zlib.compress(msgspec.msgpack.encode(compiled), level=3))
        for stale in file.parent.glob(f"{compiled.name}-*.msgpack.z"):
            if stale != file:
                stale.unlink()
