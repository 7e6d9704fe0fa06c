from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.query_vectors import NO_INSTRUCTIONS, Instructions, instructions
from hoofbeat.retrieval.line import stages
from hoofbeat.retrieval.retriever import Retriever
from tests.retrieval.support import HashedWords, passages

R2MED = [
    "biology",
    "bioinformatics",
    "medical-sciences",
    "medxpertqa-exam",
    "medqa-diag",
    "pmc-treatment",
    "pmc-clinical",
    "iiyi-clinical",
]


def test_every_set_has_words_of_its_own() -> None:
    queries = [instructions(name).query for name in (*R2MED, "scifact", "nfcorpus", "liveqa", "ogcare")]
    assert len(set(queries)) == len(queries)
    for query in queries:
        assert query.startswith("Instruct: Here is ")
        assert query.endswith(".\nQuery: ")


def test_none_is_nothing() -> None:
    assert instructions("none") == NO_INSTRUCTIONS
    assert not NO_INSTRUCTIONS.query
    assert not NO_INSTRUCTIONS.document


def test_an_unknown_set_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no instructions 'trec'") as caught:
        instructions("trec")
    assert caught.value.fix is not None
    assert "none, biology, " in caught.value.fix


def test_prefixes_of_encoders_and_a_file_of_ones_own(tmp_path: Path) -> None:
    assert instructions("e5") == Instructions(query="query: ", document="passage: ")
    own = tmp_path / "own.toml"
    own.write_text('frame = "Represent {task}: "\n[tasks]\nward = "a note of the ward"\n', encoding="utf-8")
    assert instructions(f"{own}#ward") == Instructions(query="Represent a note of the ward: ")
    with pytest.raises(UsageError, match="no instructions"):
        instructions(f"{own}#clinic")
    retriever = Retriever.over(
        passages("fever", "cough"), f"dense[instruct={own}#ward]", encoder=lambda _: HashedWords()
    )
    retriever.search([("q", "fever")], 1)
    told = retriever.describe()["instructions"]
    assert told == {f"{own}#ward": {"query": "Represent a note of the ward: ", "document": ""}}
    assert next(stages(retriever.tree)).folders() == (str(own),)
