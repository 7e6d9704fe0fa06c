"""How fast articles come in and how much memory that takes, beside pubmed_parser on the same files.

    python -m bench.corpus_import [--articles 50000] [--rounds 1] [--json]

The articles are the real ones beside the project (`../shared/data/jats`), repeated with new ids. Every measurement is a
process of its own whose memory, children included, is sampled from outside. Hoofbeat reads every word, table and figure
with offsets, hashes and writes a corpus; pubmed_parser (`parse_pubmed_xml` and `parse_pubmed_paragraph`) gives metadata
and paragraphs back and writes nothing. "lxml" is the floor: it parses each file and looks at the name and text of every
element, and keeps nothing. Memory is measured at a tenth of the articles too: it should not grow. On a busy
machine trust the ratio of CPU times, or take several rounds: readers take turns in them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from lxml import etree

from hoofbeat.corpus import import_corpus

ARTICLES = Path(__file__).resolve().parents[2] / "shared" / "data" / "jats"
A_FOLDER = 2_000
SAMPLE_EVERY = 0.05
FLAT = 1.5
CPU_GOAL = 1.5
WALL_GOAL = 3.0

_ID = re.compile(rb'(<article-id pub-id-type="pmc(?:id)?">)[^<]*(</article-id>)')
_META = re.compile(rb"<article-meta[^>]*>")


class Measured(NamedTuple):
    """One run: articles read, wall and CPU seconds, peak memory in MiB; children are counted in."""

    articles: int
    seconds: float
    cpu: float
    peak: float

    @property
    def rate(self) -> float:
        """Articles a second."""
        return self.articles / self.seconds


def templates() -> list[tuple[bytes, bytes]]:
    """Each real file with one article as the bytes before and after its id."""
    found = []
    for path in sorted([*ARTICLES.glob("*.xml"), *ARTICLES.glob("*.nxml")]):
        data = path.read_bytes()
        if data.count(b"<article-meta") != 1:
            continue
        if match := _ID.search(data):
            found.append((data[: match.end(1)], data[match.start(2) :]))
        elif meta := _META.search(data):
            tag = b'<article-id pub-id-type="pmc">'
            found.append((data[: meta.end()] + tag, b"</article-id>" + data[meta.end() :]))
    return found


def make(folder: Path, count: int, pieces: Sequence[tuple[bytes, bytes]]) -> None:
    """So many articles in folders of a few thousand, made of these in turn."""
    for number in range(count):
        place = folder / f"{number // A_FOLDER:03d}"
        if number % A_FOLDER == 0:
            place.mkdir(parents=True)
        before, after = pieces[number % len(pieces)]
        (place / f"PMC9{number:07d}.xml").write_bytes(before + b"9%07d" % number + after)


def run_hoofbeat(folder: Path, workers: int, target: Path) -> int:
    """Import a folder; the number of documents taken."""
    return import_corpus([folder], target, workers=workers).manifest.counts.kept


def _parse(path: str) -> bool:
    import pubmed_parser  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: PLC0415

    with suppress(Exception):
        pubmed_parser.parse_pubmed_xml(path)
        pubmed_parser.parse_pubmed_paragraph(path, all_paragraph=True)
        return True
    return False


def run_pubmed_parser(folder: Path, workers: int) -> int:
    """Parse a folder and let the results go; the number of articles that could be parsed."""
    paths = sorted(map(str, folder.rglob("*.xml")))
    if workers == 1:
        return sum(map(_parse, paths))
    with multiprocessing.Pool(workers) as pool:
        return sum(pool.imap(_parse, paths, chunksize=20))


def run_lxml(folder: Path) -> int:
    """Parse a folder with lxml, and look at every element once."""
    count = 0
    for path in sorted(folder.rglob("*.xml")):
        for element in etree.parse(str(path)).iter():
            _ = element.tag, element.text, element.tail
        count += 1
    return count


def family(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))


def resident(pid: int) -> int:
    """Resident bytes of a process and its descendants now."""
    total = 0
    for each in family(pid):
        with suppress(OSError, StopIteration):
            status = Path(f"/proc/{each}/status").read_text()
            total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * 1024
    return total


def measure(what: str, folder: Path, workers: int) -> Measured:
    """Run one reader over a folder in a process of its own and watch it."""
    with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-", dir=folder.parent) as target:
        command = [sys.executable, "-m", "bench.corpus_import", "--run", what, str(folder), str(workers), target]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        peak = 0
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(SAMPLE_EVERY)
        assert process.stdout is not None
        output = process.stdout.read().split()
    if process.returncode or len(output) != 3:
        raise SystemExit(f"{what} failed on {folder}")
    return Measured(int(output[0]), float(output[1]), float(output[2]), peak / 2**20)


def run_one(what: str, folder: Path, workers: int, target: Path) -> None:
    """The measured process: print how many articles, in what time, with how much CPU."""
    began = time.monotonic()
    if what == "hoofbeat":
        count = run_hoofbeat(folder, workers, target / "corpus")
    else:
        count = run_lxml(folder) if what == "lxml" else run_pubmed_parser(folder, workers)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(count, time.monotonic() - began, sum(each.ru_utime + each.ru_stime for each in used))


def bench(articles: int, rounds: int) -> dict[str, object]:
    """All measurements, readers taking turns, and their ratios."""
    contenders = [("hoofbeat", 1), ("hoofbeat", 2), ("lxml", 1)]
    with suppress(metadata.PackageNotFoundError):
        metadata.version("pubmed_parser")
        contenders += [("pubmed_parser", 1), ("pubmed_parser", 2)]
    results: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-") as place:
        whole, tenth = Path(place, "whole"), Path(place, "tenth")
        make(whole, articles, templates())
        make(tenth, max(1, articles // 10), templates())
        size = sum(path.stat().st_size for path in whole.rglob("*.xml"))
        for _ in range(rounds):
            for what, workers in contenders:
                for name, folder in (("tenth", tenth), ("whole", whole)):
                    results.setdefault(f"{what}/{workers}/{name}", []).append(measure(what, folder, workers))
        shutil.rmtree(whole)
    figures: dict[str, object] = {"articles": articles, "megabytes": round(size / 1e6)}
    for name, runs in results.items():
        figures[name] = {
            "articles": runs[0].articles,
            "per_second": round(statistics.median(run.rate for run in runs), 1),
            "cpu_ms": round(statistics.median(1000 * run.cpu / run.articles for run in runs), 2),
            "peak_mib": round(statistics.median(run.peak for run in runs), 1),
        }
    return figures


def show(figures: dict[str, object]) -> None:
    """The figures as a table, then as ratios."""
    print(f"{figures['articles']} articles, {figures['megabytes']} MB")
    found = {name: value for name, value in figures.items() if isinstance(value, dict)}
    for name, value in found.items():
        speed = f"{value['per_second']:>8}/s {value['cpu_ms']:>7} ms CPU each"
        print(f"  {name:24} {value['articles']:>7} read {speed}  peak {value['peak_mib']:>7} MiB")
    for workers in (1, 2):
        ours, theirs = found[f"hoofbeat/{workers}/whole"], found.get(f"pubmed_parser/{workers}/whole")
        growth = ours["peak_mib"] / found[f"hoofbeat/{workers}/tenth"]["peak_mib"]
        print(f"hoofbeat, {workers} workers: memory × {growth:.2f} for ten times the articles (flat: below {FLAT})")
        if theirs:
            wall, cpu = ours["per_second"] / theirs["per_second"], theirs["cpu_ms"] / ours["cpu_ms"]
            goal = CPU_GOAL if workers == 1 else WALL_GOAL
            met = "met" if (cpu if workers == 1 else wall) >= goal else "missed"
            measure = "by CPU time" if workers == 1 else "by the clock"
            print(f"  speed × {wall:.2f} of pubmed_parser with as many processes (by CPU time: × {cpu:.2f})")
            print(f"  goal, at least × {goal} {measure}: {met}")
            if workers == 1:
                floor = theirs["cpu_ms"] / found["lxml/1/whole"]["cpu_ms"]
                print(f"  lxml alone, which keeps nothing: × {floor:.2f} of pubmed_parser by CPU time")
    print(
        f"two workers: speed × {found['hoofbeat/2/whole']['per_second'] / found['hoofbeat/1/whole']['per_second']:.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or (inside it) one measured reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run", nargs=4, metavar=("READER", "FOLDER", "WORKERS", "TARGET"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        what, folder, workers, target = options.run
        run_one(what, Path(folder), int(workers), Path(target))
        return
    if not ARTICLES.is_dir():
        raise SystemExit("needs the articles in ../shared/data/jats, which are not here")
    figures = bench(options.articles, options.rounds)
    if options.json:
        print(json.dumps(figures))
    else:
        show(figures)


if __name__ == "__main__":
    main()
