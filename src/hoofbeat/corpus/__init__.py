"""Corpora: published and institutional documents as one kind of record, whatever file they came from.

`read_file` reads one file, `import_corpus` many into an artefact folder, and `Corpus` reads that folder. Readers keep
the text whole and in order and lay sections, figures and tables over it with offsets, so that every later stage can
say exactly where a statement stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.corpus.corpus import Corpus, ImportRejection
    from hoofbeat.corpus.corpus_import import import_corpus
    from hoofbeat.corpus.reader import read_file

__all__ = ["Corpus", "ImportRejection", "import_corpus", "read_file"]

__getattr__ = lazy_names(
    __name__,
    {
        "corpus": "Corpus ImportRejection",
        "corpus_import": "import_corpus",
        "reader": "read_file",
    },
)
