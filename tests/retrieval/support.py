"""A deterministic encoder and small collections for the retrieval tests."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.models.encoder import EncoderBase
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Passage
from hoofbeat.retrieval.index.analysis import ENGLISH


class HashedWords(EncoderBase):
    """An encoder of hashed bags of words, whose tokens are words; counts how often it is asked to encode."""

    name = identity = "hashed-words"
    dimension = 64

    def __init__(self) -> None:
        self.calls = self.texts = 0

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> NDArray[np.float32]:
        self.calls += 1
        self.texts += len(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for term in ENGLISH.terms(text):
                vectors[row, zlib.crc32(term.encode()) % self.dimension] += 1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\S+", text)]


def passages(*texts: str, per_document: int = 1) -> list[Passage]:
    """Passages p0, p1, ... of documents d0, d1, ..., so many to each."""
    return [
        Passage(id=f"p{number}", document=f"d{number // per_document}", text=text, end=len(text))
        for number, text in enumerate(texts)
    ]


class _BeirText(msgspec.Struct):
    id: str = msgspec.field(name="_id")
    text: str = ""
    title: str = ""


def beir_documents(folder: Path) -> list[Document]:
    rows = [msgspec.json.decode(line, type=_BeirText) for line in (folder / "corpus.jsonl").read_bytes().splitlines()]
    return [Document(id=row.id, title=row.title, text=row.text) for row in rows]


def beir_queries(folder: Path) -> list[tuple[str, str]]:
    rows = [msgspec.json.decode(line, type=_BeirText) for line in (folder / "queries.jsonl").read_bytes().splitlines()]
    return [(row.id, row.text) for row in rows]
