"""What Ray costs beside this machine's processes, what stays serial, and whether the command's memory stays flat.

    python -m bench.scale [--times 1] [--rounds 1] [--stages import encoding ...] [--json]

Each stage runs with 2 processes or threads here, then on a Ray cluster of one node with 2 cores, in turns; the quickest
round counts. Every run is a process of its own. A run on Ray first joins the cluster and starts its workers, which is
told apart ("joining"): a fixed cost, whatever the work. The serial part is the CPU time of the command's own process on
Ray: what it reads, sends, collects and writes. With more cores only the rest gets quicker (Amdahl), so a stage ends no
sooner than that. On Ray an index of two shards is searched, here one without. Peak memory is that of the command's
process, at a quarter of the size and at the whole.

`--times 15` makes most stages take a minute on two cores; the goal is that Ray then costs at most 15%.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bench.answers import write_invented
from bench.client import stub
from bench.corpus_import import make
from bench.lexical_engines import SEED, passages, sentences
from hoofbeat.cli import cli
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.duplicates import minhash_duplicates
from hoofbeat.engine import Engine, running_on
from hoofbeat.records import Document
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.retrieval.index.kept_parts import keeping_indexes
from hoofbeat.retrieval.retriever import Retriever
from hoofbeat.store import Counts, Manifest, create
from hoofbeat.store.tables import write_jsonl

GOAL = 1.15
CORES = (16, 128, 1024)
STORE = 200 << 20
SIZES = {"import": 1600, "near-duplicates": 1600, "cutting": 4000, "indexing": 8000, "encoding": 60, "searching": 2000,
         "judging": 2000}  # fmt: skip
UNITS = {"import": "articles", "judging": "answers"}
PASSAGES_A_DOCUMENT = 8
QUERIES = 512


class Clocked(NamedTuple):
    """A part's result, and the CPU seconds that it took."""

    result: Any
    seconds: float


class Clock:
    """Work that says how long it took."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, part: object) -> Clocked:
        """The result of a part, with its CPU time."""
        began = time.process_time()
        return Clocked(self._work(part), time.process_time() - began)


class Measured(NamedTuple):
    """One run: wall seconds; CPU seconds of the command's process, of all its processes here, and of parts on Ray;
    seconds until the cluster was joined; peak memory of the command's process in MiB; characters of the documents,
    passages, and bytes of the files that were written."""

    wall: float
    own: float
    here: float
    parts: float
    joining: float
    peak: float
    characters: int = 0
    passages: int = 0
    written: int = 0


class Row(NamedTuple):
    """A stage: the quickest run of each engine, and peak memory on Ray at a quarter of the size."""

    stage: str
    size: int
    local: Measured
    ray: Measured
    peak_of_quarter: float

    @property
    def ratio(self) -> float:
        """Ray's time to this machine's, once the cluster is joined."""
        return self.ray.wall / self.local.wall

    @property
    def ratio_in_all(self) -> float:
        """The same with joining."""
        return (self.ray.wall + self.ray.joining) / self.local.wall

    def seconds(self, cores: int) -> float:
        """The stage on so many cores: the serial part, and the rest divided."""
        return self.ray.own + self.ray.parts / cores


def square(number: int) -> int:
    """The smallest part there is, to start workers by."""
    return number * number


def write_corpus(folder: Path, count: int) -> None:
    """A corpus of different documents of some 1,200 words."""
    stream = passages(SEED, sentences())
    with create(folder, replace_kind="corpus") as draft:
        texts = ("\n\n".join(islice(stream, PASSAGES_A_DOCUMENT)) for _ in range(count))
        documents = (
            Document(id=f"d{number:07}", title=f"Document {number}", text=text) for number, text in enumerate(texts)
        )
        write_jsonl(draft.path / "documents.jsonl", documents)
        write_jsonl(draft.path / "rejected.jsonl", [])
        draft.finish(Manifest(kind="corpus", title="invented documents", counts=Counts(kept=count)))


def hoofbeat(*words: str) -> None:
    """Run the command in this process."""
    cli.main(args=list(words), standalone_mode=False)


def prepare(stage: str, size: int, place: Path, url: str) -> None:
    """Write what a stage starts from."""
    if stage == "import":
        make(place / "articles", size)
    elif stage == "judging":
        write_invented(place, size)
        os.environ["HOOFBEAT_LEDGER"] = str(place / "ledger.sqlite")
        hoofbeat("answer", str(place / "bench"), "--model", f"{url}#answering", "-o", str(place / "run"), "--json")
    else:
        write_corpus(place / "corpus", size)


def prepared(stage: str, place: Path, target: Path, url: str) -> Callable[[], object]:
    """The work of a stage; what comes before it is done now."""
    os.environ["HOOFBEAT_CACHE"] = str(target / "cache")
    if stage == "import":
        return lambda: import_corpus([place / "articles"], target / "corpus", workers=2)
    if stage == "judging":
        os.environ["HOOFBEAT_LEDGER"] = str(target / "ledger.sqlite")
        words = ("--model", f"{url}#judging", "-o", str(target / "judged"), "--json")
        return lambda: hoofbeat("judge", str(place / "run"), *words)
    corpus = Corpus.open(place / "corpus")
    if stage == "near-duplicates":
        return lambda: minhash_duplicates(corpus)
    indexes = index_corpus(corpus)
    if stage == "cutting":
        return indexes.collection
    collection = indexes.collection()
    if stage == "indexing":
        return lambda: collection.bm25(0.9, 0.4)
    if stage == "encoding":
        return lambda: collection.dense("minilm")
    asked = [(f"q{number}", text) for number, text in enumerate(islice(passages(SEED + 1, sentences()), QUERIES))]
    retriever = Retriever(indexes, "bm25")
    retriever.search(asked[:1], 1)
    return lambda: retriever.search(asked, 100)


def watch(engine: Engine) -> list[float]:
    """Have an engine note the CPU seconds of its parts."""
    noted: list[float] = []
    plain = engine.map

    def watched(work: Callable[[Any], Any], parts: Any, **settings: Any) -> Iterator[Any]:
        for answer in plain(Clock(work), parts, **settings):
            noted.append(answer.seconds if isinstance(answer, Clocked) else 0.0)
            yield answer.result if isinstance(answer, Clocked) else answer

    engine.map = watched  # type: ignore[method-assign]
    return noted


def run_one(stage: str, where: str, size: int, place: Path, url: str) -> None:
    """The measured process: print what a stage took. `prepare` in place of an engine writes what it starts from."""
    if where == "prepare":
        prepare(stage, size, place, url)
        return
    shards = 2 if where == "ray" and stage == "searching" else 1
    with tempfile.TemporaryDirectory(dir=place) as target, keeping_indexes(shards=shards), running_on(where) as engine:
        began = time.perf_counter()
        if where == "ray":
            list(engine.map(square, range(8)))
        joining = time.perf_counter() - began
        work = prepared(stage, place, Path(target), url)
        noted = watch(engine) if where == "ray" else []
        wall, own, here = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
        work()
        wall, own = time.perf_counter() - wall, _cpu(resource.RUSAGE_SELF) - own
        here = own + _cpu(resource.RUSAGE_CHILDREN) - here
        sizes = _sizes(place if (place / "corpus").exists() else Path(target), Path(target))
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps(Measured(wall, own, here, sum(noted), joining, peak, *sizes)._asdict()))


def _sizes(place: Path, target: Path) -> tuple[int, int, int]:
    """Characters of the corpus there, passages that were cut of it, and bytes of all files written."""
    characters = passages = 0
    if (place / "corpus" / "manifest.json").exists():
        characters = sum(len(document.text) for document in Corpus.open(place / "corpus").documents())
    for file in target.rglob("passages.jsonl"):
        with file.open("rb") as lines:
            passages += sum(1 for _ in lines)
    return characters, passages, sum(file.stat().st_size for file in target.rglob("*") if file.is_file())


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def run(stage: str, where: str, size: int, place: Path, url: str, address: str = "") -> str:
    """Run one process, and give the last line that it prints."""
    command = [sys.executable, "-c", "import sys; from pathlib import Path; from bench.scale import run_one; "
               "run_one(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), sys.argv[5])",
               stage, where, str(size), str(place), url]  # fmt: skip
    environment = {**os.environ, "RAY_ADDRESS": address}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1], check=False
    )
    if done.returncode:
        raise SystemExit(f"{stage} on {where} failed:\n{done.stderr}")
    return done.stdout.strip().rpartition("\n")[2]


def measure(stage: str, where: str, size: int, place: Path, url: str, address: str = "") -> Measured:
    """What one stage takes, over what was prepared."""
    return Measured(**json.loads(run(stage, where, size, place, url, address)))


@contextmanager
def cluster() -> Iterator[str]:
    """One node with 2 cores; gives its address. Workers find this project by PYTHONPATH."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only where Ray is measured

    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    os.environ |= {"RAY_worker_niceness": "0"}  # else 15: beside other work they would get hardly any time
    node = {"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False}
    made: Any = Cluster(initialize_head=True, head_node_args=node)
    try:
        yield str(made.address)
    finally:
        made.shutdown()


def compare(stage: str, size: int, rounds: int, address: str, url: str) -> Row:
    """Both engines in turns on one stage."""
    with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-") as name:
        quarter, whole = Path(name, "quarter"), Path(name, "whole")
        for place, count in ((quarter, max(1, size // 4)), (whole, size)):
            place.mkdir()
            run(stage, "prepare", count, place, url)
        small = measure(stage, "ray", max(1, size // 4), quarter, url, address)
        seen: dict[str, list[Measured]] = {"local": [], "ray": []}
        for _ in range(rounds):
            for where, runs in seen.items():
                runs.append(measure(stage, where, size, whole, url, address))
        best = {where: min(runs, key=lambda one: one.wall) for where, runs in seen.items()}
    return Row(stage, size, best["local"], best["ray"], small.peak)


def show(row: Row) -> None:
    """One line of each table."""
    local, ray = row.local, row.ray
    print(
        f"| {row.stage} | {row.size:,} {UNITS.get(row.stage, 'documents')} | {local.wall:.1f} | {ray.wall:.1f} "
        f"| {row.ratio:.2f} | {row.ratio_in_all:.2f} | {(ray.own + ray.parts) / local.here:.2f} | {ray.own:.1f} "
        f"| {ray.own / (ray.own + ray.parts):.1%} | {row.peak_of_quarter:.0f} → {ray.peak:.0f} "
        f"| {' · '.join(f'{row.seconds(cores):.1f}' for cores in CORES)} |",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, default=1.0, help="times the usual sizes (default 1)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--stages", nargs="*", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = []
    if not options.json:
        print(f"| stage | size | local, s | Ray, s | Ray to local | with joining | by CPU | serial, s | share "
              f"| peak of the command at 1/4 → 1, MiB | s on {', '.join(map(str, CORES))} cores |")  # fmt: skip
        print("|" + "---|" * 11)
    with cluster() as address, stub() as url:
        for stage in options.stages:
            rows.append(compare(stage, round(SIZES[stage] * options.times), options.rounds, address, url))
            if not options.json:
                show(rows[-1])
    if options.json:
        told = [row._asdict() | {"local": row.local._asdict(), "ray": row.ray._asdict()} for row in rows]
        print(json.dumps({"rows": told, "goal": GOAL}))
        return
    above = [row.stage for row in rows if row.ratio_in_all > GOAL and row.local.wall >= 45]
    print(f"joining took {min(row.ray.joining for row in rows):.1f} s at least; stages of a minute above {GOAL}: "
          f"{', '.join(above) or 'none'}")  # fmt: skip


if __name__ == "__main__":
    main()
