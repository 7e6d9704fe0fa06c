"""The embedded language model's server, asked over its own HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoofbeat.errors import InputError, ModelError, UsageError, WeightsError
from hoofbeat.models import embedded, weight_files

QUESTION = [{"role": "user", "content": "Is fever a sign of endocarditis?"}]
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def gguf_path() -> Path:
    try:
        return weight_files.weight_path("smollm2-135m")
    except WeightsError as err:
        pytest.skip(f"needs the tiny model's weights: {err.fix}")


@pytest.fixture(scope="module")
def server(gguf_path: Path) -> Iterator[embedded.EmbeddedServer]:
    with embedded.start_embedded("", context=1024, threads=1) as running:
        yield running


def ask(server: embedded.EmbeddedServer, path: str, body: dict[str, Any] | None, key: str | None = None) -> Any:
    """The status and the decoded answer."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key or server.api_key}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.native_url}{path}", data, headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as err:
        return err.code, json.load(err)


def chat(server: embedded.EmbeddedServer, **options: Any) -> Any:
    body = {"messages": QUESTION, "max_tokens": 16, "temperature": 0, **options}
    return ask(server, "/v1/chat/completions", body)


def text(server: embedded.EmbeddedServer, **options: Any) -> str:
    status, answer = chat(server, **options)
    assert status == 200, answer
    return str(answer["choices"][0]["message"]["content"])


def test_it_listens_on_loopback_only(server: embedded.EmbeddedServer) -> None:
    assert server.native_url.startswith("http://127.0.0.1:")
    assert server.base_url == f"{server.native_url}/v1"


def test_it_wants_the_key(server: embedded.EmbeddedServer) -> None:
    status, answer = ask(server, "/v1/chat/completions", {"messages": QUESTION, "max_tokens": 1}, key="wrong")
    assert (status, answer["error"]["type"]) == (401, "authentication_error")
    assert ask(server, "/tokenize", {"content": "fever"}, key="wrong")[0] == 401


def test_it_names_the_model_without_a_path(server: embedded.EmbeddedServer) -> None:
    assert ask(server, "/v1/models", None)[1]["data"][0]["id"] == "smollm2-135m" == server.name


def test_output_follows_a_json_schema(server: embedded.EmbeddedServer) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}
    assert json.loads(text(server, response_format=form, max_tokens=40))["answer"] in ("yes", "no")


def test_a_bad_schema_is_a_bad_request(server: embedded.EmbeddedServer) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {"type": "nonsense"}}}
    status, answer = chat(server, response_format=form)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


def test_log_probabilities_come_with_the_chat(server: embedded.EmbeddedServer) -> None:
    _, answer = chat(server, logprobs=True, top_logprobs=3, max_tokens=2)
    tokens = answer["choices"][0]["logprobs"]["content"]
    assert len(tokens) == 2
    for token in tokens:
        assert token["logprob"] <= 0
        assert len(token["top_logprobs"]) == 3
        assert token["logprob"] == max(each["logprob"] for each in token["top_logprobs"])


def test_a_prompt_that_is_too_long_says_so(server: embedded.EmbeddedServer) -> None:
    status, answer = chat(server, messages=[{"role": "user", "content": "fever " * 3000}])
    assert (status, answer["error"]["type"]) == (400, "exceed_context_size_error")
    assert answer["error"]["n_ctx"] == server.context == 1024


def test_seed_and_temperature_are_honoured(server: embedded.EmbeddedServer) -> None:
    short = {"max_tokens": 8}
    warm = [text(server, seed=seed, temperature=1.5, **short) for seed in (1, 1, 2, 3)]
    assert warm[0] == warm[1]
    assert len(set(warm)) > 1
    assert text(server, seed=1, **short) == text(server, seed=2, **short)


def test_an_answer_does_not_depend_on_the_one_before_or_on_the_start(server: embedded.EmbeddedServer) -> None:
    options = {"max_tokens": 16, "logprobs": True}
    first = chat(server, **options)[1]["choices"]
    text(server, messages=[{"role": "user", "content": "Name three bones."}])
    status, again = chat(server, **options)
    assert (status, again["choices"]) == (200, first)
    assert again["timings"]["cache_n"] == 0
    with embedded.start_embedded(context=2048, threads=1) as other:
        assert other is not server
        assert chat(other, **options)[1]["choices"] == first


def test_embeddings_need_a_server_for_them(server: embedded.EmbeddedServer) -> None:
    assert ask(server, "/v1/embeddings", {"input": ["fever"]})[0] == 501
    with embedded.start_embedded(context=1024, threads=1, embedding=True) as other:
        status, answer = ask(other, "/v1/embeddings", {"input": ["fever", "rash " * 560]})
    assert status == 200
    vectors = np.array([row["embedding"] for row in answer["data"]])
    assert vectors.shape == (2, 576)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)


def test_the_same_settings_share_a_server(server: embedded.EmbeddedServer) -> None:
    shared = embedded.start_embedded("smollm2-135m", context=1024, threads=1)
    assert shared is server
    shared.close()
    assert not server.closed
    assert ask(server, "/health", None)[0] == 200


def test_close_stops_it(gguf_path: Path) -> None:
    with (
        embedded.start_embedded(str(gguf_path), context=256, threads=1) as one,
        embedded.start_embedded(str(gguf_path), context=256, threads=1) as two,
    ):
        assert one is two
        one.close()
        assert not two.closed
        one.close()
        assert two.closed
        with pytest.raises(urllib.error.URLError):
            ask(one, "/health", None)
    with embedded.start_embedded(str(gguf_path), context=256, threads=1) as fresh:
        assert fresh is not one
        one.close()
        with embedded.start_embedded(str(gguf_path), context=256, threads=1) as shared:
            assert shared is fresh
        assert ask(fresh, "/health", None)[0] == 200


def test_identity_holds_what_changes_the_output(server: embedded.EmbeddedServer) -> None:
    start = "embedded:smollm2-135m@b179c9523d0e;ctx=1024;threads="
    assert server.identity.startswith(f"{start}1;llama.cpp=xllamacpp-")
    with embedded.start_embedded(context=1024, threads=2, cache_prompt=True) as other:
        assert other.identity.startswith(f"{start}2;cache_prompt;")


def test_context_is_the_window_there_really_is(gguf_path: Path) -> None:
    with embedded.start_embedded(context=1000, threads=1) as rounded:
        assert rounded.context == 1024
        assert ";ctx=1024;" in rounded.identity


def test_threads_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOFBEAT_THREADS", "3")
    assert embedded.default_threads() == 3
    monkeypatch.setenv("HOOFBEAT_THREADS", "many")
    with pytest.raises(UsageError, match="not a number of threads"):
        embedded.default_threads()
    monkeypatch.delenv("HOOFBEAT_THREADS")
    assert 1 <= embedded.default_threads() <= 4


def test_unknown_models_list_the_known_ones() -> None:
    with pytest.raises(ModelError, match="no embedded model 'gpt-9'") as caught:
        embedded.start_embedded("gpt-9")
    assert "smollm2-135m, qwen2.5-coder-1.5b, or the path" in (caught.value.fix or "")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model file"):
        embedded.start_embedded(str(tmp_path / "none.gguf"))


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + bytes(2000))
    with pytest.raises(ModelError, match="model 'bad' could not be started"):
        embedded.start_embedded(str(path))


def test_settings_must_be_positive(gguf_path: Path) -> None:
    with pytest.raises(UsageError, match="threads must be 1 or more"):
        embedded.start_embedded(threads=0)


def test_a_process_that_forgets_to_close_ends_quietly(gguf_path: Path) -> None:
    code = "from hoofbeat.models import embedded; s = embedded.start_embedded(context=256, threads=1); print(s.context)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=dict(os.environ), check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "256\n", "")


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended and only waits to be collected does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see the server's process")
def test_the_server_s_process_ends_with_one_that_was_killed(gguf_path: Path) -> None:
    code = (
        "import os; from hoofbeat.models import embedded; s = embedded.start_embedded(context=256, threads=1)\n"
        "print(s.process_id, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    child = int(done.stdout)
    deadline = time.monotonic() + 120
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def test_many_servers_start_and_stop_beside_one_that_works(server: embedded.EmbeddedServer) -> None:
    """Stopping llama.cpp's server inside a process can wait for ever: six rounds under load used to be enough."""
    for turn in range(6):
        with embedded.start_embedded(context=512, threads=1, embedding=turn % 2 == 0) as other:
            assert ask(other, "/health", None)[0] == 200
        assert other.closed
    assert ask(server, "/health", None)[0] == 200


def test_a_server_that_dies_is_out_of_reach_and_not_shared_again(gguf_path: Path) -> None:
    with embedded.start_embedded(context=256, threads=1) as first:
        os.kill(first.process_id, signal.SIGKILL)
        while first.alive:
            time.sleep(0.01)
        with pytest.raises(urllib.error.URLError):
            ask(first, "/health", None)
        with embedded.start_embedded(context=256, threads=1) as second:
            assert second is not first
            assert ask(second, "/health", None)[0] == 200
