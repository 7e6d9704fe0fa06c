"""A real Ray cluster of two nodes: the same bytes as on this machine, whatever happens to workers, nodes and driver."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.filter import parse_filters
from hoofbeat.corpus.funnel import filter_corpus
from hoofbeat.corpus.specialties import label_corpus
from hoofbeat.engine import ray_engine, running_on
from hoofbeat.engine.ray_engine import RayEngine
from hoofbeat.engine.ray_worker import pack, unpack
from hoofbeat.errors import ClusterError, InputError
from hoofbeat.models.encoders import vector_cache
from hoofbeat.models.encoders.encoder_base import encoded_blocks
from hoofbeat.models.encoders.onnx_encoder import MiniLM
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.retrieval.index import postings, stored_texts
from tests.corpus.test_corpus_import import folder_bytes
from tests.docs.test_docs import _BLOCK as BLOCK
from tests.docs.test_docs import ROOT, commands, run_in
from tests.engine.works import KillsOnce, gpu_numbers, lose_the_owner, refuse, slow_square, square
from tests.helpers import needs_weights
from tests.retrieval.index.test_shards import WORDS, a_document, found, indexed

ray = pytest.importorskip("ray")
STORE = 100 * 1024 * 1024
with socket.create_server(("127.0.0.1", 0)) as _free:
    CLIENT_PORT = _free.getsockname()[1]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with one core each; workers find this project's modules by PYTHONPATH."""
    from ray import cluster_utils  # noqa: PLC0415 - skipped above where it is missing

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    node = {"num_cpus": 1, "object_store_memory": STORE}
    head = {**node, "include_dashboard": False, "ray_client_server_port": CLIENT_PORT}
    made: Any = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    made.add_node(**node, num_gpus=1)
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "figures").mkdir()
    (folder / "figures" / "a.png").write_bytes(b"\x89PNG")
    for number in range(60):
        words = " ".join(f"finding{number * 7 + place} of patient" for place in range(30))
        (folder / f"d{number:02d}.md").write_text(f"# Case {number}\n\n{words}.\n\n![Fig. 1: C](figures/a.png)\n")
    copied = (folder / "d07.md").read_text().replace("finding55", "sign55")
    (folder / "near.md").write_text(copied)
    (folder / "broken.xml").write_text("<article>")
    return folder


def on_both(make: Callable[[Path], object], tmp_path: Path) -> None:
    """What is made on this machine and on the cluster must be the same files; engines leave nothing behind."""
    made = []
    for where in ("local", "ray"):
        with running_on(where):
            make(tmp_path / where)
        made.append(folder_bytes(tmp_path / where))
    assert made[0]
    assert made[0] == made[1]


@pytest.mark.usefixtures("cluster")
def test_import_and_filters_give_the_same_bytes(source: Path, tmp_path: Path) -> None:
    on_both(lambda folder: import_corpus([source], folder), tmp_path / "import")
    corpus = Corpus.open(tmp_path / "import" / "ray")
    steps = parse_filters("not retracted; unique(minhash, 0.15); language=en")
    on_both(lambda folder: filter_corpus(corpus, steps, folder), tmp_path / "filter")
    on_both(lambda folder: label_corpus(corpus, folder), tmp_path / "label")
    assert "near-duplicate" in (tmp_path / "filter" / "ray" / "rejected.jsonl").read_text()


@pytest.mark.usefixtures("cluster")
def test_indexes_and_vectors_give_the_same_bytes(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_weights("minilm")
    monkeypatch.setattr(vector_cache, "_BLOCK", 4)
    monkeypatch.setattr(postings, "_BLOCK", 4)
    monkeypatch.setattr(stored_texts, "_RECORDS", 4)
    monkeypatch.setattr(stored_texts, "_FEWEST", 1)  # so that a stretch has several blocks
    corpus = Corpus(import_corpus(sorted(source.glob("d0*.md")), tmp_path / "corpus"))

    def build(folder: Path) -> None:
        monkeypatch.setenv("HOOFBEAT_CACHE", str(folder))
        passages = index_corpus(corpus).collection()
        found = passages.bm25(0.9, 0.4).search(["finding70 of a patient"], 5)
        passages.dense("minilm")
        np.save(folder / "ranking.npy", found[0].indices)

    on_both(build, tmp_path / "cache")
    assert list((tmp_path / "cache" / "ray").rglob("vectors.npy"))
    steps = parse_filters("unique(embedding, 0.95)")
    on_both(lambda folder: filter_corpus(corpus, steps, folder), tmp_path / "filter")


def test_small_arrays_travel_in_one_buffer_and_large_ones_are_read_in_place() -> None:
    small, large = np.arange(100), np.arange(20_000.0)
    packed = pack([("a", small), ("b", large)])
    assert [len(each) for each in packed[1:]] == [large.nbytes]
    (_, first), (_, second) = unpack(packed)
    assert np.array_equal(first, small)
    assert np.array_equal(second, large)
    assert np.shares_memory(second, large)


@pytest.mark.usefixtures("cluster")
def test_work_for_gpus_goes_to_workers_that_have_one() -> None:
    with running_on("ray") as engine:
        assert engine.gpus() == 1
        assert list(engine.map(gpu_numbers, range(3), gpu=True)) == [["0"]] * 3
        assert list(engine.map(gpu_numbers, range(3))) == [[]] * 3
    with running_on("local") as engine:
        assert engine.gpus() == 0


@pytest.mark.usefixtures("cluster")
def test_encoding_asks_for_gpus_and_says_where_they_cant_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_weights("minilm")
    blocks = [["rash on the hand", "fever"], ["", "a stone in the left kidney"]]
    encoder = MiniLM()
    here = [encoder.encode(block) for block in blocks]
    encoder.device = "cuda"
    with running_on("ray"):
        there = list(encoded_blocks(encoder, blocks))
        assert ray.available_resources().get("GPU", 0) == 0, "its worker holds the GPU until the command ends"
    assert all(map(np.array_equal, here, there))
    monkeypatch.setenv("HOOFBEAT_DEVICE", "cuda")
    with running_on("ray"):
        asked = MiniLM()
    assert (asked.device, asked.identity) == ("cpu", encoder.identity)
    assert "the cluster's GPU machine has no CUDA provider" in asked.assumption


@pytest.mark.usefixtures("cluster")
def test_shards_that_workers_build_and_search_give_the_same_rankings(tmp_path: Path) -> None:
    documents = [a_document(number, [*WORDS[number % 5 :], f"sign{number}"]) for number in range(20)]
    queries = ["fever of zebra sign4", "kidney transplant rejection", "unknown words"]
    for line in ("bm25[query=weighted] + dense", "hero"):
        one = found(indexed(tmp_path / "one", documents, 1), line, queries)
        with running_on("ray") as engine:
            assert isinstance(engine, RayEngine)
            assert found(indexed(tmp_path / "shards", documents, 5), line, queries) == one
            assert sorted(engine._keepers) == [(False, 0), (False, 1)], (
                "one for each core, and each has kept its shards"
            )


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_keeps_shards_and_is_killed_costs_nothing(tmp_path: Path) -> None:
    engine = RayEngine()
    work = KillsOnce(tmp_path / "mark", 5)
    assert list(engine.map(work, range(12), home=lambda number: number % 3)) == [number**2 for number in range(12)]
    assert (tmp_path / "mark").exists()
    assert list(engine.map(square, range(4))) == [0, 1, 4, 9], "keepers leave the cores to other work"
    engine.close()


@pytest.mark.usefixtures("cluster")
def test_order_errors_and_files_that_a_worker_cant_see(tmp_path: Path) -> None:
    engine = RayEngine()
    seen: list[int] = []
    results = engine.map(square, (seen.append(number) or number for number in range(200)))  # type: ignore[func-returns-value]
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(seen) <= 12, "few parts wait, so the command's memory stays flat"
    assert list(results) == [number * number for number in range(3, 200)]
    with pytest.raises(InputError, match="three is no good") as caught:
        list(engine.map(refuse, range(9)))
    assert str(caught.value.where).startswith("part 3 (on ")
    with pytest.raises(ClusterError, match="a worker can't see a file or folder") as unseen:
        list(engine.map(square, range(9), sees=[tmp_path / "elsewhere"]))
    assert str(tmp_path / "elsewhere") in str(unseen.value.where)


@pytest.mark.usefixtures("cluster")
def test_a_part_whose_worker_loses_the_cluster_says_so() -> None:
    with running_on("ray") as engine, pytest.raises(ClusterError, match="the cluster lost a part of the work"):
        list(engine.map(lose_the_owner, range(3)))


@pytest.mark.usefixtures("cluster")
def test_what_ray_says_of_the_cluster_stays_out_of_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with running_on("ray") as engine:
        assert list(engine.map(square, [3])) == [9]
    told = {"ip": "", "pid": "raylet", "job": "01", "lines": ["a node is gone"], "is_err": False}
    ray._private.worker.print_to_stdstream({**told, "actor_name": None, "task_name": None}, ignore_prefix=False)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "a node is gone" in printed.err


@pytest.mark.usefixtures("cluster")
def test_machines_without_the_package_or_with_another_version_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "__version__", "99.0")
    with pytest.raises(ClusterError, match=r"a machine of the cluster has Hoofbeat .*, this command is 99\.0"):
        list(RayEngine().map(square, [1]))
    monkeypatch.setattr(ray_engine, "_PACKAGE", "hoofbeat_that_is_missing")
    with pytest.raises(ClusterError, match="a machine of the cluster has no Hoofbeat") as caught:
        list(RayEngine().map(square, [1]))
    assert "hoofbeat[ray]==99.0" in str(caught.value.fix)


@pytest.mark.usefixtures("cluster")
def test_a_command_outside_the_cluster_comes_in_by_ray_client(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(20):
        (tmp_path / "in" / f"{number}.md").write_text(f"# Case {number}\n\nText {number}.\n")
    words = [sys.executable, "-c", "from hoofbeat.cli import main; main()", "corpus", "import", "in", "-o", "c", "--on"]
    made = []
    for where in ("local", f"ray://127.0.0.1:{CLIENT_PORT}"):
        done = subprocess.run([*words, where], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made.append(folder_bytes(tmp_path / "c"))
    assert made[0] == made[1]


@pytest.mark.parametrize("end", ["os.abort()", "words.dismiss()"])
def test_a_command_that_ray_ends_says_so(end: str) -> None:
    code = f"import os; from hoofbeat.engine.ray_engine import LastWords; words = LastWords('the head'); {end}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = "error: Ray or the system ended this command" in done.stderr
    assert told == (done.returncode != 0)
    assert told == ("at: the head" in done.stderr) == ("abort" in end)


def test_a_cluster_that_asks_for_a_token_or_has_another_ray_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_token(**_: object) -> None:
        raise ConnectionError("Failed to connect") from ray.exceptions.AuthenticationError("token is missing")

    def refuse_version(**_: object) -> None:
        ray._private.utils.check_version_info({"ray_version": "2.50.0", "python_version": "3.12.1"}, "this one")

    def time_out(**_: object) -> None:
        raise RuntimeError("The current node timed out during startup.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", refuse_token)
    with pytest.raises(ClusterError, match="the Ray cluster asks for a token") as caught:
        list(RayEngine().map(square, [1]))
    assert "RAY_AUTH_MODE=token" in str(caught.value.fix)
    monkeypatch.setattr(ray, "init", refuse_version)
    with pytest.raises(
        ClusterError, match=r"can't be joined: Version mismatch: .* Ray: 2\.50\.0 Python: 3\.12\.1"
    ) as other:
        list(RayEngine().map(square, [1]))
    assert "the same versions of Python and of Ray" in str(other.value.fix)
    for said, told in (
        ("Could not find any running Ray instance.", "ray start --head"),
        ("ray client connection timeout", "Ray Client (10001)"),
        ("Failed to connect to Ray cluster at 127.0.0.1:10001", "the head's (6379)"),
    ):

        def fail(said: str = said, **_: object) -> None:
            raise ConnectionError(said)

        monkeypatch.setattr(ray, "init", fail)
        with pytest.raises(ClusterError, match="can't be joined") as wrong_port:
            list(RayEngine().map(square, [1]))
        assert told in str(wrong_port.value.fix)
    monkeypatch.setattr(ray, "init", time_out)
    with pytest.raises(ClusterError, match="timed out during startup") as slow:
        list(RayEngine().map(square, [1]))
    assert "when the machine has less to do" in str(slow.value.fix)


@pytest.mark.usefixtures("cluster")
def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    work = KillsOnce(tmp_path / "mark", 5)
    assert list(RayEngine().map(work, range(12))) == [number * number for number in range(12)]
    assert (tmp_path / "mark").exists()


def test_a_node_that_leaves_in_the_middle_costs_nothing(cluster: Any) -> None:
    extra = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    cluster.wait_for_nodes()
    results = RayEngine().map(slow_square, range(24))
    first = [next(results) for _ in range(6)]
    cluster.remove_node(extra, allow_graceful=False)
    assert [*first, *results] == [number * number for number in range(24)]


def test_a_command_killed_with_9_is_run_again_to_the_same_bytes(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(200):
        (tmp_path / "in" / f"{number}.md").write_text(f"# Case {number}\n\n" + f"Text {number}. " * 2_000)
    words = [sys.executable, "-c", "from hoofbeat.cli import main; main()", "corpus", "import", "in", "-o", "c"]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    killed = subprocess.Popen([*words, "--on", "ray"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    written = 0
    while killed.poll() is None and not written:
        time.sleep(0.02)
        with suppress(FileNotFoundError):  # renamed between looking and measuring
            written = sum(each.stat().st_size for each in tmp_path.glob(".c.*.draft/.documents*"))
    killed.send_signal(signal.SIGKILL)
    _, told = killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL, told.decode()
    assert not (tmp_path / "c").exists()
    subprocess.run([*words, "--on", "ray"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    again = folder_bytes(tmp_path / "c")
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    assert folder_bytes(tmp_path / "c") == again


def test_a_small_part_of_the_golden_set_is_the_same_on_the_cluster(cluster: Any) -> None:
    needs_weights("minilm")  # its tokens measure the passages of lexical search
    words = [sys.executable, "tools/golden.py", "--on", "ray", "--fresh", "--only", "corpus-filter", "--only"]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = subprocess.run(
        [*words, "retrieve-fusion"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "4 commands wrote what they should\n", "with the import and the build that they need"


def test_the_page_on_scale_runs_as_it_stands(
    cluster: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    (tmp_path / "articles").symlink_to(source)
    page = ROOT / "docs" / "scale.md"
    run_in(tmp_path, commands(page, "console"))
    made = [folder_bytes(tmp_path / name) for name in ("corpus", "corpus-by-ray")]
    for files in made:
        files["manifest.json"] = files["manifest.json"].replace(b"corpus-by-ray", b"corpus")  # the -o of the command
    assert made[0] == made[1]
    one, sharded = (folder_bytes(tmp_path / name) for name in ("ranked", "ranked-by-shards"))
    sharded["manifest.json"] = sharded["manifest.json"].replace(b"ranked-by-shards", b"ranked")
    assert one == sharded
    assert b"finding70" in one["questions.jsonl"]
    [code] = [body for kind, body in BLOCK.findall(page.read_text("utf-8")) if kind == "python"]
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # the page's own words
