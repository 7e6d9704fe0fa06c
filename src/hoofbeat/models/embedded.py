"""A language model inside this process, so that every command runs offline and without a key.

llama.cpp's server is started from pinned weights and speaks the same HTTP as any other endpoint: the one client serves
both. It always listens on a loopback port, so it asks for a key that only this process knows.

A local model's output changes with the number of threads, the context window and the build; all of them stand in the
server's `identity`. Prompts are not cached by default: an answer must not depend on what was asked before it.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import threading
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from hoofbeat.errors import InputError, ModelError, UsageError
from hoofbeat.models import weights
from hoofbeat.store.files import file_sha256

__all__ = ["DEFAULT_MODEL", "EmbeddedServer", "default_threads", "start"]

DEFAULT_MODEL = "smollm2-135m"

_CONTEXTS = {"smollm2-135m": 4096, "qwen2.5-coder-1.5b": 8192}
_DEFAULT_CONTEXT = 4096
_MOST_THREADS = 4


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
    """A llama.cpp server in this process; made by `start`, closed by `close`, the end of a `with`, or process exit.

    `context` is the window the model really has, in tokens, prompt and answer together: llama.cpp rounds what was asked
    for up to a multiple of 256 and cuts it at what the model was trained for.
    """

    def __init__(self, settings: _Settings, sha256: str) -> None:
        self._settings = settings
        self._references = 1
        self.api_key = secrets.token_hex(24)
        runtime = _runtime()
        try:
            self._server: Any = runtime.Server(_parameters(runtime, settings, self.api_key))
        except RuntimeError as err:
            raise ModelError(
                f"the model '{settings.name}' could not be started: {err}",
                where=str(settings.path),
                fix="check that the file is a GGUF model and that there is memory for it; a smaller context needs less",
            ) from err
        self.native_url = str(self._server.listening_address).rstrip("/")
        self.context = _window(self.native_url, self.api_key)
        self.identity = _identity(settings, self.context, sha256, str(runtime.__version__))

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
        return self._server is None

    def close(self) -> None:
        """Give the server back; it stops when everyone who started it has done so."""
        with _LOCK:
            self._references -= 1
            if self._references == 0:
                _RUNNING.pop(self._settings, None)
                self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_RUNNING: dict[_Settings, EmbeddedServer] = {}
_LOCK = threading.Lock()


def start(
    name: str = "",
    *,
    context: int | None = None,
    threads: int | None = None,
    embedding: bool = False,
    cache_prompt: bool = False,
    exact: bool = False,
) -> EmbeddedServer:
    """Start a model, or share the one that runs in this process with the same settings.

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
        if running is not None:
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
    return max(1, min(_physical_cores(), _MOST_THREADS))


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
        raise UsageError(f"{what} must be 1 or more, not {value}", fix=f"leave {what} out for the default")
    return value


def _locate(name: str) -> tuple[str, Path, str]:
    """A model's name, file, and pinned hash (empty for a file of the user's own)."""
    name = name or DEFAULT_MODEL
    known = {
        key: file for key, weight in weights.table().weights.items() for file in weight.files if _is_gguf(file.name)
    }
    if name in known:
        return name, weights.path_of(name, known[name].name), known[name].sha256
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


def _runtime() -> Any:
    """Import llama.cpp late, as it takes time; idle OpenMP threads must sleep, or they slow everything else down."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    try:
        import xllamacpp  # noqa: PLC0415
    except ImportError as err:
        raise ModelError(
            f"the embedded model's runtime can't be loaded: {err}", fix="pip install --force-reinstall xllamacpp"
        ) from err
    return xllamacpp


def _parameters(runtime: Any, settings: _Settings, key: str) -> Any:
    parameters = runtime.CommonParams()
    parameters.model.path = str(settings.path)
    parameters.model_alias = {settings.name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.cors_origins = "http://127.0.0.1"
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = 0
    parameters.n_ctx = settings.context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = settings.threads
    parameters.cpuparams_batch.n_threads = settings.threads
    parameters.n_gpu_layers = 0
    parameters.fit_params = False
    parameters.warmup = False
    parameters.cache_prompt = settings.cache_prompt
    parameters.cache_ram_mib = 0
    parameters.load_mode = runtime.llama_load_mode.LLAMA_LOAD_MODE_MMAP
    if settings.embedding:
        parameters.embedding = True
        parameters.n_batch = parameters.n_ubatch = settings.context
        parameters.pooling_type = runtime.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    if settings.exact:
        parameters.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        parameters.cache_type_k = runtime.ggml_type.GGML_TYPE_F32
        parameters.cache_type_v = runtime.ggml_type.GGML_TYPE_F32
    return parameters


def _window(url: str, key: str) -> int:
    request = urllib.request.Request(f"{url}/props", headers={"Authorization": f"Bearer {key}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        return int(json.load(response)["default_generation_settings"]["n_ctx"])


def _identity(settings: _Settings, context: int, sha256: str, build: str) -> str:
    parts = [f"embedded:{settings.name}@{sha256[:12]}", f"ctx={context}", f"threads={settings.threads}"]
    parts += [word for word in ("embedding", "cache_prompt", "exact") if getattr(settings, word)]
    return ";".join([*parts, f"llama.cpp=xllamacpp-{build}"])


@atexit.register
def _close_all() -> None:
    """Stop what still runs before the interpreter takes the runtime apart."""
    with _LOCK:
        for server in _RUNNING.values():
            server._server = None
        _RUNNING.clear()
