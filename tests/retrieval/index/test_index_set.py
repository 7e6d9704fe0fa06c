"""Kept indexes: what is found again, what is made again, and that nothing half-made is ever read."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.models.encoder import Instructions
from hoofbeat.progress import SILENT
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import Chunking
from hoofbeat.retrieval.index.kept_parts import PartPlace
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.retriever import Retriever
from tests.retrieval.support import HashedWords, passages

TEXTS = ["renal transplant rejection", "tacrolimus after a kidney transplant", "fever in children", "zebra stripes"]
LINE = "bm25 + dense + bm25[chunk=whole] + dense[chunk=tokens:3/1]"


class Counted:
    """Documents that count how often they are read."""

    def __init__(self, *texts: str) -> None:
        self.read = 0
        self._documents = [Document(id=f"d{n}", title=f"Title {n}", text=text) for n, text in enumerate(texts)]

    def __iter__(self) -> object:
        self.read += 1
        return iter(self._documents)


def indexes(
    folder: Path | None, source: Counted, encoder: HashedWords | None = None, content: str = "same"
) -> IndexSet:
    encoder = encoder or HashedWords()
    place = None if folder is None else PartPlace(folder)
    return IndexSet(source, encoder=lambda _: encoder, place=place, content=content)  # type: ignore[arg-type]


def search(made: IndexSet, line: str = LINE) -> list[tuple[str, float, str]]:
    (hits,) = Retriever(made, line).search([("q", "kidney transplant in children")], 4)
    return [(hit.document, hit.score, hit.passage) for hit in hits]


def test_kept_and_built_in_memory_are_the_same(tmp_path: Path) -> None:
    expected = search(indexes(None, Counted(*TEXTS)))
    assert search(indexes(tmp_path, Counted(*TEXTS))) == expected
    assert len(expected) == 4


def test_a_full_disk_is_said_with_what_helps_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, array: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(np, "save", full)
        with pytest.raises(OutputError, match="No space left") as caught:
            search(indexes(tmp_path, Counted(*TEXTS)))
    assert "HOOFBEAT_CACHE" in str(caught.value.fix)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file() and not path.name.endswith(".lock")] == []
    assert search(indexes(tmp_path, Counted(*TEXTS))) == search(indexes(None, Counted(*TEXTS)))


def test_only_what_a_line_searches_is_cut(tmp_path: Path) -> None:
    search(indexes(tmp_path, Counted(*TEXTS)), "bm25[chunk=whole]")
    assert [path.parent.name.rpartition("-")[0] for path in tmp_path.rglob("passages")] == ["whole"]


def test_the_second_time_nothing_is_read_or_encoded(tmp_path: Path) -> None:
    first = search(indexes(tmp_path, Counted(*TEXTS)))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    source, encoder = Counted(*TEXTS), HashedWords()
    assert search(indexes(tmp_path, source, encoder)) == first
    assert source.read == 0
    assert encoder.texts == 2  # the query, once for each collection that is searched by its vector
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_changed_documents_find_no_old_index(tmp_path: Path) -> None:
    search(indexes(tmp_path, Counted(*TEXTS)))
    changed = [*TEXTS[:3], "kidney transplant in children"]
    found = search(indexes(tmp_path, Counted(*changed), content="other"))
    assert found[0][0] == "d3"


@pytest.mark.parametrize("part", ["passages", "lexical", "vectors"])
def test_a_part_that_lost_its_manifest_or_a_file_is_made_again(tmp_path: Path, part: str) -> None:
    expected = search(indexes(tmp_path, Counted(*TEXTS)), "bm25 + dense")
    (folder,) = [path for path in tmp_path.rglob(f"{part}*") if path.is_dir()]
    for path in list(folder.iterdir()):
        if path.name != "manifest.json":
            path.write_bytes(path.read_bytes()[:-1])
    assert search(indexes(tmp_path, Counted(*TEXTS)), "bm25 + dense") == expected


@pytest.mark.parametrize("harm", ["no file", "no manifest", "half a manifest", "zeros"])
def test_a_part_that_is_damaged_in_any_way_is_made_again(tmp_path: Path, harm: str) -> None:
    expected = search(indexes(tmp_path, Counted(*TEXTS)), "bm25")
    (folder,) = [path for path in tmp_path.rglob("passages") if path.is_dir()]
    manifest, table = folder / "manifest.json", folder / "passages.jsonl"
    match harm:
        case "no file":
            (folder / "passages.npy").unlink()
        case "no manifest":
            manifest.unlink()
        case "half a manifest":
            manifest.write_bytes(manifest.read_bytes()[:40])
        case "zeros":
            table.write_bytes(bytes(table.stat().st_size))
    assert search(indexes(tmp_path, Counted(*TEXTS)), "bm25") == expected


def test_a_part_whose_numbers_were_changed_is_made_again(tmp_path: Path) -> None:
    """It loads, and ranks the wrong texts first: only the hash tells."""
    expected = search(indexes(tmp_path, Counted(*TEXTS)), "bm25")
    (table,) = tmp_path.rglob("lexical*/texts.npy")
    numbers = np.load(table)
    np.save(table, (numbers.max() - numbers).astype(numbers.dtype))
    assert search(indexes(tmp_path, Counted(*TEXTS)), "bm25") == expected


def test_an_encoder_s_own_prompt_is_part_of_its_vectors(tmp_path: Path) -> None:
    plain, prompted = HashedWords(), HashedWords()
    prompted.prompts = Instructions(document="zebra ")
    first = search(indexes(tmp_path, Counted(*TEXTS), plain), "dense")
    second = search(indexes(tmp_path, Counted(*TEXTS), prompted), "dense")
    assert first != second
    assert second == search(indexes(None, Counted(*TEXTS), prompted), "dense")


def test_two_tokenizers_cut_under_different_ids() -> None:
    class Letters(HashedWords):
        identity = "letters"

        def token_spans(self, text: str) -> list[tuple[int, int]]:
            return [(place, place + 1) for place in range(len(text))]

    encoders = {"minilm": HashedWords(), "letters": Letters()}
    documents = [Document(id="d", title="", text="alpha beta gamma delta")]
    made = IndexSet(documents, encoder=lambda spec: encoders[spec])
    (hits,) = Retriever(made, "bm25[chunk=tokens:2] + dense[encoder=letters,chunk=tokens:8]").search_passages(
        [("q", "alpha beta")], 9
    )
    texts = {hit.passage: made.passage(hit.passage).text for hit in hits}
    assert {"alpha beta", "alpha be"} <= set(texts.values())


def test_a_line_is_described_by_what_it_searches_alone() -> None:
    made = indexes(None, Counted(*TEXTS))
    search(made, "dense[search=ivf:2/1]")
    lexical = Retriever(made, "bm25")
    lexical.search([("q", "kidney")], 1)
    assert "vectors" not in str(lexical.describe())
    assert "recall" in str(Retriever(made, "dense[search=ivf:2/1]").describe())


KILLED = """
import os, sys
from pathlib import Path
from tests.retrieval.index import test_index_set as t
from hoofbeat.retrieval import index_set

def killed(path):
    (path / "half").write_bytes(b"x" * 10)
    os.kill(os.getpid(), 9)

real = index_set.kept
wanted = sys.argv[2]
index_set.kept = lambda target, settings, build, load: real(
    target, settings, killed if target.folder.name.startswith(wanted) else build, load
)
t.search(t.indexes(Path(sys.argv[1]), t.Counted(*t.TEXTS)), "bm25 + dense")
"""


@pytest.mark.parametrize("part", ["lexical", "vectors"])
def test_a_build_that_was_killed_is_built_again_and_never_half_read(tmp_path: Path, part: str) -> None:
    expected = search(indexes(None, Counted(*TEXTS)), "bm25 + dense")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), part], env=dict(os.environ), timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.rglob("half"))
    assert search(indexes(tmp_path, Counted(*TEXTS)), "bm25 + dense") == expected
    assert not list(tmp_path.rglob("half"))


def test_two_processes_may_build_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.retrieval.index import test_index_set as t\n"
        "print(t.search(t.indexes(Path(sys.argv[1]), t.Counted(*t.TEXTS))))"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) for _ in range(3)]
    printed = {run.communicate(timeout=60)[0] for run in runs}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert printed == {f"{search(indexes(None, Counted(*TEXTS)))}\n".encode()}


def test_two_documents_with_one_id_are_refused(tmp_path: Path) -> None:
    twins = [Document(id="d", title="", text="one"), Document(id="d", title="", text="two")]
    with pytest.raises(InputError, match="two documents have the id 'd'"):
        IndexSet(twins, encoder=lambda _: HashedWords()).collection()
    assert not list(tmp_path.iterdir())


def test_passages_cut_already_are_not_cut_again() -> None:
    made = IndexSet.of_passages(passages(*TEXTS), encoder=lambda _: HashedWords(), progress=SILENT)
    with pytest.raises(UsageError, match="already cut"):
        made.collection(Chunking("whole"))


def test_passages_of_a_document_must_hang_together() -> None:
    one, two, three = passages(*TEXTS[:3])
    mixed = [one, two, one.__class__(id="p9", document=one.document, text="again"), three]
    with pytest.raises(InputError, match="are not adjacent"):
        IndexSet.of_passages(mixed, encoder=lambda _: HashedWords())


def test_a_passage_is_found_by_its_id_in_every_way_of_cutting(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        made = indexes(folder, Counted(*TEXTS))
        for _, _, name in search(made):
            assert made.passage(name).id == name
        with pytest.raises(InputError, match="no passage 'd0#99'"):
            made.passage("d0#99")
