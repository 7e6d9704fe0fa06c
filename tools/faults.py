"""Kills: whatever dies during a run, it must end with the bytes of an undisturbed run on this machine.

A real Ray cluster of three nodes on this machine, a real PostgreSQL with the ledger, and three model servers.
Commands run first on `local`, then undisturbed on the cluster, then once per kill, at a random moment of their work
(the seed decides). A command that can't go on must say so; it is then run once more. Compared are all files that it
writes, and how many model calls were made beyond those of the undisturbed run: at most those in flight.

    python -m tools.faults                    all twenty kills; prints a table, and ends with 1 where something differs
    python -m tools.faults --only node        only these kills
    python -m tools.faults --documents 150    less work per command
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.postgres import new_postgres_url, restart_postgres
from tools.golden import ENCODER, write_encoder

HOOFBEAT = (sys.executable, "-c", "from hoofbeat.cli import main; main()")
IN_FLIGHT = 8
SERVERS = 3
DELAY_MS = 100
NODES = 3
STORE = 100 * 1024 * 1024
LONGEST = 300.0
TASK = b"ray::run_parts"
_SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")
_CONDITIONS = ("--condition", "closed", "--condition", "oracle")


class Stage(NamedTuple):
    """A command: its name, its words, what it reads from the commands before it, and what it writes."""

    name: str
    words: tuple[str, ...]
    reads: tuple[str, ...]
    output: str
    calls: bool = False


STAGES = [
    Stage("import", ("corpus", "import", "articles"), ("articles",), "corpus"),
    Stage(
        "filter",
        ("corpus", "filter", "corpus", "--keep", "not retracted; unique(minhash, 0.15)"),
        ("corpus",),
        "unique",
    ),
    Stage("label", ("corpus", "label", "corpus"), ("corpus",), "labels"),
    Stage(
        "retrieve",
        ("retrieve", "bench", "--with", f"bm25 + dense[encoder={ENCODER}]"),
        ("corpus", "bench", "given"),
        "ranks",
    ),
    Stage(
        "answer",
        ("answer", "bench", "--model", "stub[temperature=0.5,samples=8]", *_CONDITIONS),
        ("corpus", "bench"),
        "run",
        calls=True,
    ),
    Stage(
        "judge",
        ("judge", "run", "--by", "equivalence", "--model", "stub"),
        ("corpus", "bench", "run"),
        "judged",
        calls=True,
    ),
]
PLAN = [
    *(("worker", name) for name in ("import", "filter", "label", "retrieve", "retrieve")),
    *(("node", name) for name in ("import", "filter", "label", "retrieve")),
    *(("command", name) for name in ("import", "filter", "retrieve", "answer", "judge")),
    *(("PostgreSQL", name) for name in ("answer", "judge")),
    *(("model server", name) for name in ("answer", "judge")),
    *(("head's service", name) for name in ("import", "retrieve")),
    *(("head", name) for name in ("import", "retrieve")),
]


class Row(NamedTuple):
    """What one kill did."""

    kill: str
    command: str
    after: float
    work: float
    seconds: float
    runs: int
    told: str
    same: bool
    twice: int | None

    @property
    def right(self) -> bool:
        return self.same and (self.twice is None or self.twice <= IN_FLIGHT)

    def line(self, number: int) -> str:
        twice = "–" if self.twice is None else str(self.twice)
        cells = (number, self.kill, self.command, f"{self.after:.1f} of {self.work:.1f}", f"{self.seconds:.0f}",
                 self.runs, "yes" if self.same else "NO", twice, self.told)  # fmt: skip
        return "| " + " | ".join(str(cell) for cell in cells) + " |"


HEADER = (
    "| | killed | during | after s of work | total s | runs | same bytes | calls made twice | message |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


class Cluster:
    """Three nodes with one core each: three raylets, as on three machines, and the head's services with the first."""

    def __init__(self) -> None:
        self._made: Any = None
        self.start()

    def start(self) -> None:
        from ray import cluster_utils  # noqa: PLC0415 - an extra

        node = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]  # said here, so that a service that is started again has the same
        self._made = cluster_utils.Cluster(initialize_head=True, head_node_args={**node, "gcs_server_port": port})
        self.heal()
        self._made.wait_for_nodes()

    def stop(self) -> None:
        self._made.shutdown()

    @property
    def address(self) -> str:
        return str(self._made.address)

    def tasks(self) -> list[int]:
        """The processes that work on parts now."""
        raylets = {info.process.pid for node in self._nodes() for info in node.all_processes.get("raylet", ())}
        return [pid for pid in _children(raylets) if _title(pid).startswith(TASK)]

    def _nodes(self) -> list[Any]:
        return [node for node in (self._made.head_node, *self._made.worker_nodes) if node is not None]

    def kill_node(self, rng: random.Random) -> None:
        nodes = sorted(self._made.worker_nodes, key=lambda node: str(node.node_id))
        self._made.remove_node(rng.choice(nodes), allow_graceful=False)

    def restart_service(self) -> None:
        """Kill the service that knows the cluster's nodes, and start it again: it remembers nothing."""
        self._made.head_node.kill_gcs_server(check_alive=False)
        time.sleep(2)
        self._made.head_node.start_gcs_server()

    def kill_head(self) -> None:
        """Kill all that runs on the head: its service, and the node that commands are connected to."""
        self._made.remove_node(self._made.head_node, allow_graceful=False)

    def heal(self) -> None:
        """Have three nodes again. Ray gives a node thirty seconds to start, which is short on a busy machine."""
        failures = 0
        while len(self._made.worker_nodes) < NODES - 1:
            try:
                self._made.add_node(num_cpus=1, object_store_memory=STORE)
            except Exception:
                failures += 1
                if failures == 5:
                    raise


def _children(parents: set[int]) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if int(path.read_text("ascii", "replace").rpartition(")")[2].split()[1]) in parents:
                found.append(int(path.parent.name))
    return sorted(found)


def _title(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


class Servers:
    """The fleet of one run: processes that answer by the hash of the request, and write down what they receive."""

    def __init__(self, folder: Path) -> None:
        self._logs = [folder / f"server-{number}.log" for number in range(SERVERS)]
        command = [sys.executable, "-m", "tests.models.fault_server", "--delay-ms", str(DELAY_MS), "--log"]
        self._processes = [
            subprocess.Popen([*command, str(log)], stdout=subprocess.PIPE, text=True) for log in self._logs
        ]
        ports = [int(process.stdout.readline()) for process in self._processes if process.stdout is not None]
        self.addresses = [f"http://127.0.0.1:{port}/v1" for port in ports]

    def received(self) -> int:
        return sum(log.read_text("ascii").count("received") for log in self._logs if log.exists())

    def kill_one(self, rng: random.Random) -> None:
        rng.choice(self._processes).kill()

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


class Place:
    """A folder in which one command runs, with what it reads, its cache, its ledger and its model servers."""

    def __init__(self, root: Path, name: str, stage: Stage, before: Path) -> None:
        self.folder = root / name
        self.folder.mkdir()
        self.stage = stage
        for read in stage.reads:
            shutil.copytree(before / read, self.folder / read)
        self.servers = Servers(self.folder) if stage.calls else None
        if self.servers is not None:
            (self.folder / "hoofbeat.toml").write_text(
                f'ledger = "{new_postgres_url()}"\n[models.stub]\nname = "stub"\nendpoints = {self.servers.addresses}\n'
                f"max_in_flight = {IN_FLIGHT}\nprice_in = 1.0\nprice_out = 2.0\ncontext = 32000\nreasoning = 0\n"
            )

    def begin(self, where: str, address: str = "") -> subprocess.Popen[str]:
        words = [*self.stage.words, "-o", self.stage.output, "--on", where]
        more = {"HOOFBEAT_CACHE": str(self.folder / "cache"), "GIT_DIR": "none"}
        return subprocess.Popen(
            [*HOOFBEAT, *words],
            cwd=self.folder,
            env={**os.environ, **more, **({"RAY_ADDRESS": address} if address else {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def written(self) -> dict[str, bytes]:
        output = self.folder / self.stage.output
        return {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*") if path.is_file()}

    def close(self) -> None:
        if self.servers is not None:
            self.servers.stop()


def _finish(command: subprocess.Popen[str]) -> str:
    """Wait for a command: what it told when it failed, empty where it did not."""
    try:
        _, told = command.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        command.kill()
        command.communicate()
        return f"no end in {LONGEST:g} s"
    lines = [line.strip() for line in told.splitlines() if line.strip() and "left" not in line]
    if not command.returncode:
        return ""
    found = next((line for line in lines if line.startswith("error")), "")
    return found.removeprefix("error: ") or f"exit {command.returncode}, no message"


class Trial:
    """The commands as they are undisturbed, and what kills do to them."""

    def __init__(self, root: Path, cluster: Cluster, seed: int) -> None:
        self._root, self._cluster, self._seed = root, cluster, seed
        self._bytes: dict[str, dict[str, bytes]] = {}
        self._calls: dict[str, int] = {}
        self._work: dict[str, float] = {}
        self._local = root / "local"

    def prepare(self, documents: int, stages: Sequence[Stage]) -> Iterator[str]:
        """Run the commands on this machine, then undisturbed on the cluster; a line for each that is not the same."""
        self._local.mkdir()
        _write_articles(self._local / "articles", documents)
        (self._local / "given").mkdir()
        write_encoder(self._local / ENCODER)
        for stage in _with_what_they_read(stages):
            place = Place(self._root, f"local-{stage.name}", stage, self._local)
            told = _finish(place.begin("local"))
            assert not told, f"{stage.name} on local: {told}"
            self._bytes[stage.name] = place.written()
            self._calls[stage.name] = place.servers.received() if place.servers else 0
            place.close()
            shutil.copytree(place.folder / stage.output, self._local / stage.output)
            if stage.name == "import":
                words = [*HOOFBEAT, "build", "teaching", "corpus", "-o", "bench"]
                subprocess.run(words, cwd=self._local, check=True, capture_output=True)
        for stage in stages:
            place = Place(self._root, f"ray-{stage.name}", stage, self._local)
            command = place.begin("ray", self._cluster.address)
            self._began(place, command)
            began = time.monotonic()
            told = _finish(command)
            self._work[stage.name] = time.monotonic() - began
            place.close()
            if told or place.written() != self._bytes[stage.name]:
                yield f"{stage.name} undisturbed on the cluster is not the same: {told}"

    def kill(self, number: int, kind: str, stage: Stage) -> Row:
        """One kill, at a random moment of the command's work; earlier where the command was done before."""
        rng = random.Random(f"{self._seed} {number} {kind} {stage.name}")
        after = rng.uniform(0.05, 0.8) * self._work[stage.name]
        for attempt in range(6):
            place = Place(self._root, f"{number:02d}-{attempt}", stage, self._local)
            try:
                row = self._killed(place, kind, after, rng)
            finally:
                place.close()
                self._cluster.heal()
            if row is not None:
                return row
            after /= 2
        raise AssertionError(f"{stage.name} ended before anything could be killed")

    def _killed(self, place: Place, kind: str, after: float, rng: random.Random) -> Row | None:
        started = time.monotonic()
        command = place.begin("ray", self._cluster.address)
        self._began(place, command)
        time.sleep(after)
        if command.poll() is not None or not self._strike(kind, place, command, rng):
            told = _finish(command)
            assert not told, f"{place.stage.name} failed before anything was killed: {told}"
            return None
        told = _finish(command)
        struck = time.monotonic()
        if kind.startswith("head"):
            self._cluster.stop()
            self._cluster.start()
        started += time.monotonic() - struck  # starting a cluster is not the command's time
        runs = 1
        if told:
            told = "" if kind == "command" else told
            runs = 2
            if again := _finish(place.begin("ray", self._cluster.address)):
                told = f"{told}; again: {again}"
        twice = place.servers.received() - self._calls[place.stage.name] if place.servers else None
        return Row(
            kind,
            place.stage.name,
            after,
            self._work[place.stage.name],
            time.monotonic() - started,
            runs,
            told,
            place.written() == self._bytes[place.stage.name],
            twice,
        )

    def _began(self, place: Place, command: subprocess.Popen[str]) -> None:
        """Wait for the command's first part of work, or its first call."""
        servers = place.servers
        at_work: Callable[[], object] = self._cluster.tasks if servers is None else servers.received
        while command.poll() is None and not at_work():
            time.sleep(0.02)

    def _strike(self, kind: str, place: Place, command: subprocess.Popen[str], rng: random.Random) -> bool:
        """Kill; whether there was something to kill."""
        if kind == "worker":
            while command.poll() is None:
                if tasks := self._cluster.tasks():
                    os.kill(rng.choice(tasks), signal.SIGKILL)
                    return True
            return False
        if kind == "node":
            self._cluster.kill_node(rng)
        elif kind == "head's service":
            self._cluster.restart_service()
        elif kind == "head":
            self._cluster.kill_head()
        elif kind == "command":
            command.kill()
        elif kind == "PostgreSQL":
            restart_postgres()
        else:
            assert place.servers is not None
            place.servers.kill_one(rng)
        return True


def _with_what_they_read(stages: Sequence[Stage]) -> list[Stage]:
    needed = {stage.name for stage in stages} | {"import"}
    for stage in reversed(STAGES):
        if stage.name in needed:
            needed |= {other.name for other in STAGES if other.output in stage.reads}
    return [stage for stage in STAGES if stage.name in needed]


def _write_articles(folder: Path, count: int) -> None:
    """The teaching set's cases among invented articles, two of which are nearly the same."""
    import hoofbeat  # noqa: PLC0415 - only its folder

    shutil.copytree(Path(hoofbeat.__file__).parent / "teaching" / "cases", folder)
    rng = random.Random(0)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(3_000)]
    for number in range(count):
        paragraphs = [" ".join(rng.choices(words, k=120)) for _ in range(12)]
        (folder / f"article-{number:05d}.md").write_text(f"# Case {number}\n\n" + ".\n\n".join(paragraphs) + ".\n")
    (folder / "near.md").write_text((folder / "article-00000.md").read_text().replace("# Case 0", "# Case none"))


def _run(root: Path, documents: int, seed: int, wanted: Sequence[tuple[int, str, str]]) -> list[Row]:
    by_name: Mapping[str, Stage] = {stage.name: stage for stage in STAGES}
    cluster = Cluster()
    rows = []
    try:
        trial = Trial(root, cluster, seed)
        needed = [stage for stage in STAGES if any(name == stage.name for _, _, name in wanted)]
        for line in trial.prepare(documents, needed):
            raise SystemExit(line)
        print(HEADER, flush=True)
        for number, kind, name in wanted:
            rows.append(trial.kill(number, kind, by_name[name]))
            print(rows[-1].line(number), flush=True)
    finally:
        cluster.stop()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="KILL", help="worker, node, import, ...")
    parser.add_argument("--documents", type=int, default=600, help="invented articles beside the teaching set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave what was written in this new folder")
    given = parser.parse_args()
    wanted = [
        (number, kind, name)
        for number, (kind, name) in enumerate(PLAN, 1)
        if not given.only or {kind, name, f"{kind}:{name}"} & set(given.only)
    ]
    if not wanted:
        parser.error(f"no kill fits {' or '.join(given.only)}")
    root = given.keep or Path(tempfile.mkdtemp(prefix="hoofbeat-faults-"))
    root.mkdir(exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)  # for workers and commands
    try:
        rows = _run(root.resolve(), given.documents, given.seed, wanted)
    finally:
        if not given.keep:
            shutil.rmtree(root, ignore_errors=True)
    right = sum(row.right for row in rows)
    twice = sum(row.twice or 0 for row in rows)
    print(f"\n{right} of {len(rows)} kills ended as they should; {twice} calls were made twice")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
