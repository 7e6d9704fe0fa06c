"""What Ray costs beside this machine's processes, what stays serial, and whether the command's memory stays flat.

    python -m bench.scale [--minute] [--times 1] [--rounds 1] [--stages import encoding ...] [--json]

Each stage runs with 2 processes or threads here, then on a Ray cluster of one node with 2 cores, in turns. Ratios are
told two ways: the median of the rounds' ratios by the clock, which other work on the machine disturbs least, and the
same by CPU time, Ray's own processes included. Every run is a process of its own. A run on Ray first joins the cluster
and starts its workers, which is told apart ("joining"): a fixed cost, whatever the work. "Met" says whether the median
ratios by the clock and by CPU time are both at most the goal. On a shared machine even CPU times of equal work differ
by a fifth, so the load (processes that run or want to) is told as well. The serial part is the CPU time of the
command's own process on Ray: what it reads, sends, collects and writes. With more cores only the rest gets quicker
(Amdahl), so a stage ends no sooner than that. "searching" is two shards on Ray beside one index here; "searching
shards" has two shards on both sides. Peak memory is that of the command's process, at a quarter of the size and at the
whole.

`--minute` takes sizes at which every stage of the goal takes about a minute on two idle cores; the goal is that Ray
then costs at most 15%. With `--rounds 3` that takes about 80 minutes and 15 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.answers import write_invented
from bench.client import stub
from bench.corpus_import import family, make, templates
from bench.lexical_engines import GUIDELINES, REPORTS, SEED, passages, sentences
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
SERVICES = "BENCH_RAY_SERVICES"
SIZES = {"import": 1600, "near-duplicates": 1600, "cutting": 4000, "indexing": 8000, "encoding": 60, "searching": 2000,
         "searching shards": 2000, "judging": 2000}  # fmt: skip
MINUTE = {"import": 52_000, "near-duplicates": 140_000, "indexing": 385_000, "encoding": 660, "searching": 30_000,
          "searching shards": 30_000, "judging": 140_000}  # fmt: skip
UNITS = {"import": "articles", "judging": "answers"}
QUERIES = 512
CUT = ("indexing", "encoding", "searching", "searching shards")


class Data(NamedTuple):
    """What the stages read: which of the real articles, whose sentences, the lengths of documents in pieces of some
    150 words, in turn, and which share of such a piece a question is."""

    articles: slice
    sentences: Path
    lengths: tuple[int, ...]
    asked: float = 1.0


DATA = {
    "usual": Data(slice(None), REPORTS, (8,)),
    "fit": Data(slice(0, None, 2), REPORTS, (8,)),
    "test": Data(slice(1, None, 2), GUIDELINES, (2, 4, 18), 0.5),
}


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
    """One run: wall seconds; CPU seconds of the command's process, of all its processes here, of parts on Ray, and of
    all processes of the cluster; seconds until the cluster was joined; peak memory of the command's process in MiB;
    characters of the documents, passages, and bytes of the files that were written; the machine's load at the end."""

    wall: float
    own: float
    here: float
    parts: float
    cluster: float
    joining: float
    peak: float
    characters: int = 0
    passages: int = 0
    written: int = 0
    load: float = 0.0

    @property
    def cpu(self) -> float:
        """CPU seconds in all, those of Ray's own processes included."""
        return self.here + self.cluster


class Row(NamedTuple):
    """A stage: the runs of each engine in turns, and peak memory on Ray at a quarter of the size."""

    stage: str
    size: int
    locally: list[Measured]
    on_ray: list[Measured]
    peak_of_quarter: float

    @property
    def local(self) -> Measured:
        """The quickest run here."""
        return min(self.locally, key=lambda one: one.wall)

    @property
    def ray(self) -> Measured:
        """The quickest run on Ray."""
        return min(self.on_ray, key=lambda one: one.wall)

    @property
    def by_clock(self) -> float:
        """The median over the rounds of Ray's time to that of the local run just before it."""
        return median(ray.wall / local.wall for local, ray in zip(self.locally, self.on_ray, strict=True))

    @property
    def with_joining(self) -> float:
        """The same with joining."""
        pairs = zip(self.locally, self.on_ray, strict=True)
        return median((ray.wall + ray.joining) / local.wall for local, ray in pairs)

    @property
    def by_cpu(self) -> float:
        """The median ratio of CPU times, Ray's own processes included."""
        return median(ray.cpu / local.cpu for local, ray in zip(self.locally, self.on_ray, strict=True))

    @property
    def load(self) -> str:
        """The lowest and the highest load of the machine."""
        loads = sorted(run.load for run in (*self.locally, *self.on_ray))
        return f"{loads[0]:.0f} to {loads[-1]:.0f}"

    @property
    def is_met(self) -> bool:
        """Whether Ray costs no more than the goal, by the clock and by CPU time."""
        return max(self.by_clock, self.by_cpu) <= GOAL

    def seconds(self, cores: int) -> float:
        """The stage on so many cores: the serial part, and the rest divided."""
        return self.ray.own + self.ray.parts / cores


def square(number: int) -> int:
    """The smallest part there is, to start workers by."""
    return number * number


def write_corpus(folder: Path, count: int, data: Data) -> None:
    """A corpus of different documents of some 1,200 words on average."""
    stream = passages(SEED, sentences(data.sentences))
    with create(folder, replace_kind="corpus") as draft:
        texts = ("\n\n".join(islice(stream, length)) for length in islice(cycle(data.lengths), count))
        documents = (
            Document(id=f"d{number:07}", title=f"Document {number}", text=text) for number, text in enumerate(texts)
        )
        write_jsonl(draft.path / "documents.jsonl", documents)
        write_jsonl(draft.path / "rejected.jsonl", [])
        draft.finish(Manifest(kind="corpus", title="invented documents", counts=Counts(kept=count)))


def hoofbeat(*words: str) -> None:
    """Run the command in this process."""
    cli.main(args=list(words), standalone_mode=False)


def prepare(stage: str, size: int, place: Path, url: str, data: Data) -> None:
    """Write what a stage starts from."""
    if stage == "import":
        make(place / "articles", size, templates()[data.articles])
    elif stage == "judging":
        write_invented(place, size)
        os.environ["HOOFBEAT_LEDGER"] = str(place / "ledger.sqlite")
        hoofbeat("answer", str(place / "bench"), "--model", f"{url}#answering", "-o", str(place / "run"), "--json")
    else:
        write_corpus(place / "corpus", size, data)
        if stage in CUT:
            os.environ["HOOFBEAT_CACHE"] = str(place / "cache")
            index_corpus(Corpus.open(place / "corpus")).collection()


def queries(size: int) -> int:
    """How many queries are searched in so many documents."""
    return max(QUERIES, size * 4 // 5)


def asked(count: int, data: Data) -> list[str]:
    """So many questions."""
    texts = islice(passages(SEED + 1, sentences(data.sentences)), count)
    return [text[: round(len(text) * data.asked)] for text in texts]


def prepared(stage: str, place: Path, target: Path, url: str, data: Data) -> Callable[[], object]:
    """The work of a stage; what comes before it is done now. Passages that were cut are linked, not copied."""
    os.environ["HOOFBEAT_CACHE"] = str(target / "cache")
    if stage in CUT:
        shutil.copytree(place / "cache", target / "cache", copy_function=os.link)
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
    texts = asked(queries(corpus.manifest.counts.kept), data)
    questions = [(f"q{number}", text) for number, text in enumerate(texts)]
    retriever = Retriever(indexes, "bm25")
    retriever.search(questions[:1], 1)
    return lambda: retriever.search(questions, 100)


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


def run_one(stage: str, where: str, size: int, place: Path, url: str, data: str) -> None:
    """The measured process: print what a stage took. `prepare` in place of an engine writes what it starts from."""
    if where == "prepare":
        prepare(stage, size, place, url, DATA[data])
        return
    shards = 2 if stage == "searching shards" or (where == "ray" and stage == "searching") else 1
    with tempfile.TemporaryDirectory(dir=place) as target, keeping_indexes(shards=shards), running_on(where) as engine:
        began = time.perf_counter()
        if where == "ray":
            list(engine.map(square, range(8)))
        joining = time.perf_counter() - began
        noted = watch(engine) if where == "ray" else []  # now, so that workers which open a shard know `Clock` already
        work = prepared(stage, place, Path(target), url, DATA[data])
        noted.clear()
        used = _cluster_cpu() if where == "ray" else 0.0
        wall, own, here = time.perf_counter(), _cpu(resource.RUSAGE_SELF), _cpu(resource.RUSAGE_CHILDREN)
        work()
        wall, own = time.perf_counter() - wall, _cpu(resource.RUSAGE_SELF) - own
        here = own + _cpu(resource.RUSAGE_CHILDREN) - here
        used = _cluster_cpu() - used if where == "ray" else 0.0
        load = os.getloadavg()[0]
        sizes = _sizes(place if (place / "corpus").exists() else Path(target), Path(target))
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps(Measured(wall, own, here, sum(noted), used, joining, peak, *sizes, load)._asdict()))


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


def _cluster_cpu() -> float:
    """CPU seconds so far of all processes of the cluster, also of those that have ended."""
    ticks = 0
    for service in os.environ[SERVICES].split():
        for process in family(int(service)):
            with suppress(OSError):
                after_name = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
                ticks += sum(map(int, after_name[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(stage: str, where: str, size: int, place: Path, url: str, *, address: str = "", data: str = "usual") -> str:
    """Run one process, and give the last line that it prints."""
    command = [sys.executable, "-c", "import sys; from pathlib import Path; from bench.scale import run_one; "
               "run_one(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), *sys.argv[5:])",
               stage, where, str(size), str(place), url, data]  # fmt: skip
    environment = {**os.environ, "RAY_ADDRESS": address}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[1], check=False
    )
    if done.returncode:
        raise SystemExit(f"{stage} on {where} failed:\n{done.stderr}")
    return done.stdout.strip().rpartition("\n")[2]


def measure(
    stage: str, where: str, size: int, place: Path, url: str, *, address: str = "", data: str = "usual"
) -> Measured:
    """What one stage takes, over what was prepared."""
    return Measured(**json.loads(run(stage, where, size, place, url, address=address, data=data)))


@contextmanager
def cluster() -> Iterator[str]:
    """One node with 2 cores; gives its address. Workers find this project by PYTHONPATH."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - only where Ray is measured

    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    os.environ |= {"RAY_worker_niceness": "0"}  # else 15: beside other work they would get hardly any time
    node = {"num_cpus": 2, "object_store_memory": STORE, "include_dashboard": False}
    made: Any = Cluster(initialize_head=True, head_node_args=node)
    started = (info.process.pid for infos in made.head_node.all_processes.values() for info in infos)
    os.environ[SERVICES] = " ".join(map(str, started))
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
        small = measure(stage, "ray", max(1, size // 4), quarter, url, address=address)
        seen: dict[str, list[Measured]] = {"local": [], "ray": []}
        for _ in range(rounds):
            for where, runs in seen.items():
                runs.append(measure(stage, where, size, whole, url, address=address))
    return Row(stage, size, seen["local"], seen["ray"], small.peak)


def show(row: Row) -> None:
    """One line of each table."""
    local, ray = row.local, row.ray
    cpu = [median(run.cpu for run in runs) for runs in (row.locally, row.on_ray)]
    on_cores = " · ".join(f"{row.seconds(cores):.1f}" for cores in CORES)
    print(
        f"| {row.stage} | {row.size:,} {UNITS.get(row.stage, 'documents')} | {local.wall:.1f} | {ray.wall:.1f} "
        f"| {row.by_clock:.2f} | {row.with_joining:.2f} | {cpu[0]:.1f} | {cpu[1]:.1f} | {row.by_cpu:.2f} "
        f"| {'yes' if row.is_met else 'no'} | {row.load} | {ray.own:.1f} | {ray.own / (ray.own + ray.parts):.1%} "
        f"| {row.peak_of_quarter:.0f} → {ray.peak:.0f} | {on_cores} |",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minute", action="store_true", help="sizes that take a minute on two idle cores")
    parser.add_argument("--times", type=float, default=1.0, help="times the usual sizes (default 1)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--stages", nargs="*", choices=list(SIZES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    sizes = {**SIZES, **MINUTE} if options.minute else SIZES
    stages = options.stages or list(MINUTE if options.minute else SIZES)
    rows = []
    if not options.json:
        print(f"| stage | size | local, s | Ray, s | median ratio | with joining | local, CPU s | Ray, CPU s "
              f"| by CPU | met | load | serial, s | share | peak of the command at 1/4 → 1, MiB "
              f"| s on {', '.join(map(str, CORES))} cores |")  # fmt: skip
        print("|" + "---|" * 15)
    with cluster() as address, stub() as url:
        for stage in stages:
            rows.append(compare(stage, round(sizes[stage] * options.times), options.rounds, address, url))
            if not options.json:
                show(rows[-1])
    if options.json:
        told = [
            row._asdict()
            | {"locally": [run._asdict() for run in row.locally], "on_ray": [run._asdict() for run in row.on_ray]}
            for row in rows
        ]
        print(json.dumps({"rows": told, "goal": GOAL}))
        return
    long = [row for row in rows if row.local.wall >= 45]
    above = [f"{row.stage} {row.by_clock:.2f}, by CPU {row.by_cpu:.2f}" for row in long if not row.is_met]
    print(f"joining took {min(row.ray.joining for row in rows):.1f} s at least")
    print(f"{len(long)} stages took about a minute; above {GOAL} of them: {'; '.join(above) or 'none'}")


if __name__ == "__main__":
    main()
