"""A language model of our own, so that every command runs offline and without a key.

llama.cpp's server is started from pinned weights and speaks the same HTTP as any other endpoint: the one client serves
both. It runs in a separate process (`llama_server.py`), so that a fault in native code can't stop or delay a run, and
ends with this one. It always listens on a loopback port, so it asks for a key that only this process knows.

A local model's output changes with the number of threads, the context window and the build; all of them are in the
server's `identity`. Prompts are not cached by default: an answer must not depend on what was asked before it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hoofbeat.errors import InputError, ModelError, UsageError
from hoofbeat.models import weight_files
from hoofbeat.models.bounds import MAX_BODY, read_url
from hoofbeat.store.files import file_sha256

DEFAULT_MODEL = "smollm2-135m"

_CONTEXTS = {"smollm2-135m": 4096, "qwen2.5-coder-1.5b": 8192}
_DEFAULT_CONTEXT = 4096
_MAX_THREADS = 4
_SERVER_FILE = Path(__file__).with_name("llama_server.py")
_START_TIMEOUT = 600.0


class _Settings(NamedTuple):
    """Everything that can change a server's output, besides its weights' bytes and the build."""

    name: str
    path: Path
    context: int
    threads: int
    embedding: bool
    cache_prompt: bool
    exact: bool


class EmbeddedServer:
    """A llama.cpp server; made by `start_embedded`, closed by `close`, the end of a `with`, or process exit.

    `context` is the window the model really has, in tokens, prompt and answer together: llama.cpp rounds what was asked
    for up to a multiple of 256 and cuts it at what the model was trained for.
    """

    def __init__(self, settings: _Settings, sha256: str) -> None:
        self._settings = settings
        self._references = 1
        self.api_key = secrets.token_hex(24)
        self._process: subprocess.Popen[str] | None = _launch()
        try:
            answer = _greet(self._process, settings, self.api_key)
            self.native_url = answer["url"]
            self.context = _window(self.native_url, self.api_key)
        except BaseException:
            self._stop()
            raise
        self.identity = _identity(settings, self.context, sha256, answer["build"])

    @property
    def name(self) -> str:
        """The model's name, as the server's `/v1/models` gives it."""
        return self._settings.name

    @property
    def base_url(self) -> str:
        """Where the OpenAI-compatible API is."""
        return f"{self.native_url}/v1"

    @property
    def threads(self) -> int:
        """The number of threads it computes with."""
        return self._settings.threads

    @property
    def closed(self) -> bool:
        """Whether the server has been stopped."""
        return self._process is None

    @property
    def process_id(self) -> int:
        """The id of the server's process; 0 once it has been stopped."""
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        """Whether the server's process runs; a crash in native code ends it before it is closed."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """Give the server back; it stops when everyone who started it has done so."""
        with _LOCK:
            self._references -= 1
            if self._references == 0:
                if _RUNNING.get(self._settings) is self:
                    del _RUNNING[self._settings]
                self._stop()

    def _stop(self) -> None:
        """End the server's process; it keeps nothing that would have to be saved."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_RUNNING: dict[_Settings, EmbeddedServer] = {}
_LOCK = threading.Lock()


def start_embedded(
    name: str = "",
    *,
    context: int | None = None,
    threads: int | None = None,
    embedding: bool = False,
    cache_prompt: bool = False,
    exact: bool = False,
) -> EmbeddedServer:
    """Start a model, or share the one that this process runs with the same settings.

    `name` is one of the pinned language models (empty: the tiny one) or the path of a .gguf file. `exact` turns off
    flash attention and keeps keys and values in 32 bits, for checks against a reference. `embedding` starts a server
    for `/v1/embeddings` instead of text.
    """
    model, path, sha256 = _locate(name)
    settings = _Settings(
        name=model,
        path=path,
        context=_positive(context, "context") or _CONTEXTS.get(model, _DEFAULT_CONTEXT),
        threads=_positive(threads, "threads") or default_threads(),
        embedding=embedding,
        cache_prompt=cache_prompt,
        exact=exact,
    )
    with _LOCK:
        running = _RUNNING.get(settings)
        if running is not None and running.alive:
            running._references += 1
            return running
        server = EmbeddedServer(settings, sha256 or file_sha256(path))
        _RUNNING[settings] = server
        return server


def default_threads() -> int:
    """`HOOFBEAT_THREADS`, else the physical cores this process may use, four at most."""
    chosen = os.environ.get("HOOFBEAT_THREADS", "")
    if chosen:
        if not chosen.isdecimal() or int(chosen) == 0:
            raise UsageError(
                f"HOOFBEAT_THREADS is '{chosen}', not a number of threads", fix="set it to 1 or more, or unset it"
            )
        return int(chosen)
    return max(1, min(_physical_cores(), _MAX_THREADS))


def _physical_cores() -> int:
    """Cores this process may use, hyper-threads not counted; where the system doesn't say, its processors."""
    try:
        usable = os.sched_getaffinity(0)
        topology = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
        return len({Path(topology.format(cpu)).read_text(encoding="ascii") for cpu in usable})
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _positive(value: int | None, what: str) -> int | None:
    if value is not None and value < 1:
        raise UsageError(f"{what} must be 1 or more, not {value}", fix=f"leave out {what} for the default")
    return value


def _locate(name: str) -> tuple[str, Path, str]:
    """A model's name, file, and pinned hash (empty for a file of the user's own)."""
    name = name or DEFAULT_MODEL
    known = {
        key: file
        for key, weight in weight_files.load_weights_table().weights.items()
        for file in weight.files
        if _is_gguf(file.name)
    }
    if name in known:
        return name, weight_files.weight_path(name, known[name].name), known[name].sha256
    if not _is_gguf(name):
        raise ModelError(
            f"there is no embedded model '{name}'",
            fix=f"choose one of: {', '.join(known)}, or the path of a .gguf file",
        )
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise InputError("there is no such model file", where=name, fix="check the path")
    return path.stem, path, ""


def _is_gguf(name: str) -> bool:
    return name.lower().endswith(".gguf")


def _launch() -> subprocess.Popen[str]:
    """Start the server's process. Idle OpenMP threads must sleep, or they slow everything else down."""
    quiet = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", str(_SERVER_FILE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=quiet | os.environ,
    )


def _greet(process: subprocess.Popen[str], settings: _Settings, key: str) -> dict[str, str]:
    """Send the settings, and wait for the answer that says where the server listens."""
    assert process.stdin is not None
    assert process.stdout is not None
    patience = threading.Timer(_START_TIMEOUT, process.kill)
    patience.start()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps({**settings._asdict(), "path": str(settings.path), "key": key}) + "\n")
        process.stdin.flush()
    line = process.stdout.readline()
    patience.cancel()
    answer: dict[str, str] = json.loads(line) if line.startswith("{") else {}
    if "missing" in answer:
        raise ModelError(
            f"the embedded model's runtime can't be loaded: {answer['missing']}",
            fix="pip install --force-reinstall xllamacpp; it also needs libgomp (Debian: apt install libgomp1)",
        )
    if "url" not in answer:
        silence = f"its process ended or did not answer within {_START_TIMEOUT:.0f} s"
        raise ModelError(
            f"the model '{settings.name}' could not be started: {answer.get('error', silence)}",
            where=str(settings.path),
            fix="check that the file is a GGUF model and that there is memory for it; a smaller context needs less",
        )
    return answer


def _window(url: str, key: str) -> int:
    props = json.loads(read_url(f"{url}/props", key=key, seconds=30, max_bytes=MAX_BODY))
    return int(props["default_generation_settings"]["n_ctx"])


def _identity(settings: _Settings, context: int, sha256: str, build: str) -> str:
    parts = [f"embedded:{settings.name}@{sha256[:12]}", f"ctx={context}", f"threads={settings.threads}"]
    parts += [word for word in ("embedding", "cache_prompt", "exact") if getattr(settings, word)]
    return ";".join([*parts, f"llama.cpp=xllamacpp-{build}"])


@atexit.register
def _close_all() -> None:
    """Stop what still runs; each would notice by itself that this process is gone."""
    with _LOCK:
        for server in _RUNNING.values():
            server._stop()
        _RUNNING.clear()
