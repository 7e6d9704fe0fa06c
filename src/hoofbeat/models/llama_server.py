"""The embedded model's own process: llama.cpp's server, and nothing else.

Run as a file, never imported by the package. Settings come as one line of JSON on standard input, so that the key is in
no process list; one line of JSON goes back on standard output: where the server listens, or why it can't. It lives as
long as its standard input stays open and its parent lives. llama.cpp's server, stopped properly, can wait for one
of its threads for ever while holding the interpreter; here it is never stopped, its process simply ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

_LOOK_EVERY = 2.0


def parameters(runtime: Any, settings: dict[str, Any]) -> Any:
    """llama.cpp's parameters for the given settings."""
    made = runtime.CommonParams()
    made.model.path = settings["path"]
    made.model_alias = {settings["name"]}
    made.hostnames = ["127.0.0.1"]
    made.port = 0
    made.api_keys = [settings["key"]]
    made.cors_origins = "http://127.0.0.1"
    made.ui = False
    made.endpoint_slots = False
    made.verbosity = 0
    made.n_ctx = settings["context"]
    made.n_parallel = 1
    made.cpuparams.n_threads = settings["threads"]
    made.cpuparams_batch.n_threads = settings["threads"]
    made.n_gpu_layers = 0
    made.fit_params = False
    made.warmup = False
    made.cache_prompt = settings["cache_prompt"]
    made.cache_ram_mib = 0
    made.load_mode = runtime.llama_load_mode.LLAMA_LOAD_MODE_MMAP
    if settings["embedding"]:
        made.embedding = True
        made.n_batch = made.n_ubatch = settings["context"]
        made.pooling_type = runtime.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    if settings["exact"]:
        made.flash_attn_type = runtime.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        made.cache_type_k = runtime.ggml_type.GGML_TYPE_F32
        made.cache_type_v = runtime.ggml_type.GGML_TYPE_F32
    return made


def main() -> None:
    """Start the server, say where it is, and stay until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    settings = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what llama.cpp prints is no answer
    try:
        import xllamacpp  # noqa: PLC0415
    except ImportError as err:
        _say(answers, {"missing": str(err)})
        os._exit(1)
    try:
        server = xllamacpp.Server(parameters(xllamacpp, settings))
    except RuntimeError as err:
        _say(answers, {"error": str(err)})
        os._exit(1)
    _say(answers, {"url": str(server.listening_address).rstrip("/"), "build": str(xllamacpp.__version__)})
    threading.Thread(target=_outlive, args=[parent], daemon=True).start()
    sys.stdin.read()  # nothing more is ever sent: it ends when the pipe is closed
    os._exit(0)


def _outlive(parent: int) -> None:
    """End with the parent even where another of its children holds the pipe open."""
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    os._exit(0)


def _say(answers: Any, answer: dict[str, str]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
