from __future__ import annotations

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.query_vectors import NO_INSTRUCTIONS, instructions

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
