"""The golden set: commands of every verb on the teaching set, and a hash of all that they write.

A change that moves or renames code must not change what commands write. This runs the commands in a temporary folder,
with a model whose answers follow from the request alone (`golden_model.py`), and compares the hash of every file, of
the JSON object on standard output and of the keys in the ledger with those in `golden.json`. It calls the command line
and no other part of the package, so that it outlasts any change inside.

    python tools/golden.py                  compare: each difference is a line, and the exit code is 1
    python tools/golden.py --only 'audit*'  only these commands, and what they need
    python tools/golden.py --keep before    leave the files in this folder, to look into a difference with diff -r
    python tools/golden.py --on ray         the same bytes are expected from a Ray cluster (add --fresh)
    python tools/golden.py --twice          run every command twice: the second run must change nothing and call nobody
    python tools/golden.py --write          accept what is written now, unless a command fails
"""

from __future__ import annotations

import argparse
import array
import atexit
import contextlib
import csv
import fnmatch
import hashlib
import html
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

EXPECTED = Path(__file__).with_suffix(".json")
SCRIPTED = ("--model", "scripted")
ENCODER = "given/bigrams"  # written below; quick, and the same on every machine, which minilm is not
DENSE = f"dense[encoder={ENCODER}]"
LEFT_OUT = (".sqlite", ".db", "-wal", "-shm", "-claims", "calls.jsonl", ".out", ".err")
"""The ledger and its export hold clock times, the review store random links besides; what commands print holds
seconds. Keys, what is made from them, and the JSON objects without such fields are compared instead."""
VECTORS = Path(tempfile.gettempdir(), f"hoofbeat-golden-vectors-{os.getuid()}")
"""Vectors are kept from run to run, by encoder and text: minilm takes half of the time. Indexes are made anew."""
CHANGING = ("review", "ledger", "judge-sheet")
"""Verbs that change a store of theirs each time, and a command that never writes over a sheet."""
Facts = dict[str, str]
Main = Callable[[list[str]], None]


class Step(NamedTuple):
    """A command by its name, the words it is called with, and how it is run.

    It needs the steps whose output one of its words names, and those in `needs`. `before` prepares its input; `drop`
    names fields of its JSON object that differ by run or machine. A command that serves pages runs until `visit` is
    done with them, which is given its address and the folder.
    """

    name: str
    words: tuple[str, ...]
    code: int = 0
    needs: tuple[str, ...] = ()
    before: Callable[[Path], None] | None = None
    visit: Callable[[str, Path], None] | None = None
    drop: str = ""

    @property
    def outputs(self) -> list[str]:
        """What the step writes, as far as an option says so."""
        return [value for option, value in zip(self.words, self.words[1:], strict=False) if option in ("-o", "--db")]


# Input that other commands' output is made into, as people or other software would


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _predictions(folder: Path) -> None:
    """Answers that other software gave to the questions with options: the first option each time."""
    rows = [row for row in _lines(folder / "clinbench" / "questions.jsonl") if row.get("options")]
    _write_lines(folder / "given" / "predictions.jsonl", [{"id": row["id"], "predicted": "A"} for row in rows])


def _trec_run(folder: Path) -> None:
    """A run of other software: every case in the order of its name."""
    cases = sorted(path.stem for path in (folder / "given" / "cases").glob("*.xml"))
    rows = [row["id"] for row in _lines(folder / "bench" / "questions.jsonl")]
    lines = [f"{row} Q0 {case} {at} {100 - at} theirs" for row in rows for at, case in enumerate(cases, 1)]
    (folder / "given" / "theirs.trec").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _messages(folder: Path) -> None:
    """What people asked: the teaching set's questions, one twice, and two that are not for a handbook."""
    asked = [row["text"] for row in _lines(folder / "given" / "questions" / "patient_questions.jsonl")][:8]
    more = ["Does my insurance pay for the taxi to the clinic?", "ok", asked[0].upper()]
    _write_lines(folder / "given" / "asked.jsonl", [{"text": text} for text in [*asked, *more]])


def _fill_sheets(folder: Path, pattern: str, fill: Callable[[Path, int, dict[str, str]], dict[str, str]]) -> None:
    """Fill sheets in as people would: `fill` gives columns of a row from its sheet, number and what it holds."""
    for sheet in sorted(folder.glob(pattern)):
        with sheet.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
        rows = [row | fill(sheet, number, row) for number, row in enumerate(rows)]
        with (folder / "given" / sheet.name).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)


def _answers(folder: Path) -> None:
    """Answers that people gave, by source: one sentence each, and one that says nothing."""
    rows = [
        {"question": f"May I {verb} in week {week}?", "source": source, "answer": f"You may {verb} after week {limit}."}
        for verb, week in (("swim", 3), ("drive", 5))
        for source, limit in (("north", 2), ("south", 6), ("west", 6))
    ]
    _write_lines(folder / "given" / "answers.jsonl", [*rows[:-1], {**rows[-1], "answer": "", "absent": True}])


def _annotate(folder: Path) -> None:
    """Two people label the pairs; they differ about every fifth."""
    labels = ("Consistent", "Complementary", "Divergent", "Contradictory", "Absent")

    def label(sheet: Path, number: int, row: dict[str, str]) -> dict[str, str]:
        found = labels[(int(digest(row["item"].encode()), 16) + (number % 5 == 0 and sheet.stem == "annotator-1")) % 5]
        return {"label": found, "significance": "high" if found in ("Divergent", "Contradictory") else ""}

    _fill_sheets(folder, "packets/*/*.csv", label)


def _judge(folder: Path) -> None:
    """A person says of every other answer that it is right."""
    _fill_sheets(folder, "sheet.csv", lambda _, number, __: {"label": ("equivalent", "mismatch")[number % 2]})


def _recorded(folder: Path) -> None:
    """The calls as the ledger exported them, without their times: a replayed model is named after its file's hash."""
    rows = [row | {"seconds": 0, "made": 0} for row in _lines(folder / "calls.jsonl")]
    _write_lines(folder / "given" / "calls.jsonl", sorted(rows, key=lambda row: str(row["key"])))


class Browser:
    """What it takes to read pages and to save labels: cookies, and the token against forged posts."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self._token = ""

    def get(self, path: str) -> str:
        with self._opener.open(self._address + path) as answer:
            page: str = answer.read().decode("utf-8", "replace")  # images, too
        self._token = (re.findall(r'name="csrf" (?:content|value)="([^"]+)"', page) or [self._token])[0]
        return page.replace(self._token, "TOKEN") if self._token else page

    def post(self, path: str, value: object = None) -> None:
        headers = {"X-CSRF-Token": self._token, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, json.dumps(value).encode(), headers)
        with self._opener.open(request) as answer:
            answer.read()


def _label(address: str, folder: Path) -> None:
    """Two reviewers label what they were given; the second has a finding where the first has none."""
    for number in (1, 2):
        browser = Browser(address)
        invited = json.loads((folder / "outputs" / f"review-invite-{number}.out").read_text("utf-8"))
        link = urllib.parse.urlsplit(invited["link"])
        browser.get(link.path)
        browser.post(link.path)
        for study in set(re.findall(r'href="/review/(two-level-1-\w+)"', browser.get("/review"))):
            items = sorted(set(re.findall(rf'href="/review/{study}/items/([^"]+)"', browser.get(f"/review/{study}"))))
            for place, item in enumerate(items):
                values = {"missing information": "pass", "options overlap": "pass"}
                if number == 2 and place == 0:
                    values |= {"missing information": "finding", "what is missing": "The age."}
                saved = {"values": values, "state": "done", "base": 0, "request": f"{number}-{place}"}
                browser.get(f"/review/{study}/items/{item}")
                browser.post(f"/api/review/{study}/items/{item}", saved)


def _read_pages(address: str, folder: Path) -> None:
    """Keep the pages that can be reached: three of each shape of address, so that every kind of page is among them."""
    browser, waiting, shapes = Browser(address), ["/"], Counter[str]()
    seen = set(waiting)
    (folder / "pages").mkdir()
    while waiting:
        path = waiting.pop(0)
        try:
            page = re.sub(r"Made \d[-\d :]+ UTC", "Made TIME", browser.get(path))
        except urllib.error.HTTPError as err:
            page = f"status {err.code}"
        (folder / "pages" / f"{re.sub(r'[^a-z0-9.=-]+', '_', path.lower())[:120]}.html").write_text(page, "utf-8")
        for link in re.findall(r'href="(/[^"#]*)', page):
            shape = re.sub(r"[^/?&=]*\d[^/?&=]*", "N", link)
            if link not in seen and not link.startswith(("/static", "/api")) and shapes[shape] < 3:
                seen.add(link)
                shapes[shape] += 1
                waiting.append(html.unescape(link))


def write_encoder(folder: Path) -> None:
    """A static encoder (model2vec): every pair of letters has its vector, so that like words are near each other."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = [*letters, *(one + other for one in letters for other in letters)]
    vocabulary = ["[UNK]", *pieces, *(f"##{piece}" for piece in pieces)]
    tokenizer: dict[str, Any] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {token: at for at, token in enumerate(vocabulary)}},
    }  # fmt: skip
    rows = [hashlib.sha256(token.encode()).digest() for token in vocabulary]
    numbers = array.array("f", [float(byte - 127) for row in rows for byte in row])
    shape = {"dtype": "F32", "shape": [len(rows), 32], "data_offsets": [0, 4 * len(numbers)]}
    head = json.dumps({"embeddings": shape}).encode()
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec"}), "utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + numbers.tobytes())


STEPS = [
    Step("corpus-import", ("corpus", "import", "given/cases", "-o", "cases", "--workers", "1")),
    Step("corpus-import-handbooks", ("corpus", "import", "given/handbooks", "-o", "handbooks", "--workers", "1")),
    Step("corpus-import-pdf", ("corpus", "import", "given/pdf", "-o", "pdfs", "--facet", "kind=pdf", "--workers", "1")),
    Step("corpus-filter", (
        "corpus", "filter", "cases", "--keep", "not retracted; words>=300; unique(minhash, 0.15)", "-o", "filtered",
        "--plot", "filtered.svg",
    )),
    Step("corpus-stats", ("corpus", "stats", "cases", "--tokenizer", "none", "-o", "stats", "--plot", "stats.svg")),
    Step("corpus-show", ("corpus", "show", "cases", "hbt-case-01", "--find", "biopsy", "--vocabulary", "icd10cm")),
    Step("corpus-label", ("corpus", "label", "cases", "-o", "labels")),
    Step("corpus-label-by-model", ("corpus", "label", "cases", "--by-model", *SCRIPTED, "-o", "labels-by-model")),
    Step("corpus-export-csv", ("corpus", "export", "cases", "--format", "csv", "-o", "cases-csv")),
    Step("corpus-export-markdown", ("corpus", "export", "handbooks", "--format", "markdown", "-o", "handbooks-md")),
    Step("build-teaching", ("build", "teaching", "cases", "-o", "bench")),
    Step("corpus-export-beir", ("corpus", "export", "cases", "--questions", "bench", "-o", "cases-beir")),
    Step("build-clinbench", (
        "build", "clinbench", "cases", *SCRIPTED, "--select", "", "--unique", "", "--stem-words", "60", "--physicians",
        "0.3", "--encoder", ENCODER, "-o", "clinbench",
    )),
    Step("build-cupcase", (
        "build", "cupcase", "cases", *SCRIPTED, "--encoder", ENCODER, "--encounters", "false", "-o", "cupcase",
    )),
    Step("build-ogcare", (
        "build", "ogcare", "cases", *SCRIPTED, "--second-model", "scripted", "--venues", "any", "--year", "2000",
        "--encoder", ENCODER, "-o", "ogcare",
    )),
    Step("build-r2med", (
        "build", "r2med", "cases", *SCRIPTED, "--second-model", "scripted", "--encoder", ENCODER, "-o", "r2med",
    )),
    Step("build-sourceqa", (
        "build", "sourceqa", "handbooks", *SCRIPTED, "--second-model", "scripted", "--harvest", "given/asked.jsonl",
        "--encoder", ENCODER, "-o", "sourceqa",
    ), before=_messages),
    Step("export-jsonl", ("export", "clinbench", "--as", "jsonl", "-o", "export-jsonl")),
    Step("export-beir", ("export", "bench", "--as", "beir", "-o", "export-beir")),
    Step("export-r2med", ("export", "r2med", "--as", "r2med", "-o", "export-r2med")),
    Step("export-ogcare", ("export", "ogcare", "--as", "ogcare", "-o", "export-ogcare")),
    Step("export-cupcase", ("export", "cupcase", "--as", "cupcase", "-o", "export-cupcase")),
    Step("export-clinbench", ("export", "clinbench", "--as", "clinbench", "-o", "export-clinbench")),
    Step("export-sourceqa", ("export", "sourceqa", "--as", "sourceqa", "-o", "export-sourceqa")),
    Step("export-lm-eval", ("export", "clinbench", "--as", "lm-eval", "-o", "export-lm-eval")),
    Step("export-inspect", ("export", "clinbench", "--as", "inspect", "-o", "export-inspect")),
    Step("export-huggingface", ("export", "clinbench", "--as", "huggingface", "-o", "export-huggingface")),
    Step("show-question", ("show", "bench", "q-hbt-case-01")),
    Step("show-rejected", ("show", "clinbench", "hbt-case-01")),
    Step("retrieve-bm25", ("retrieve", "bench", "--with", "bm25", "--explain", "2", "-o", "rank-bm25")),
    Step("retrieve-fusion", ("retrieve", "bench", "--with", f"bm25 + {DENSE}", "-o", "rank-fusion")),
    Step("retrieve-model", (
        "retrieve", "bench", "--with", "hyde > bm25 > rerank@5", *SCRIPTED, "--limit", "6", "-o", "rank-model",
    )),
    Step("retrieve-lines", (
        "retrieve", "bench", "--with", "bm25[k1={0.9|1.2}]", "--with", f"lamer > {DENSE} > rerank[with=listwise]@4",
        "--with", "search-o1 > bm25", "--run", "given/theirs.trec", *SCRIPTED, "--limit", "6", "--page", "lines.html",
        "-o", "rank-lines",
    ), before=_trec_run, needs=("build-teaching",)),
    Step("retrieve-hero", (
        "retrieve", "handbooks", "--query", "May I swim after the operation?", "--each-source", "--with",
        f"hero[encoder={ENCODER},route=0]", "--explain", "1", "-o", "evidence",
    )),
    Step("compare-rankings", ("compare", "rank-bm25", "rank-fusion", "--page", "compared.html", "-o", "compared")),
    Step("answer", (
        "answer", "bench", *SCRIPTED, "--condition", "closed", "--condition", "bm25 @2", "--condition", "oracle",
        "--condition", "agent over bm25", "--limit", "8", "-o", "run",
    )),
    Step("answer-samples", (
        "answer", "bench", "--model", "scripted[temperature=0.5,samples=2]", "--instruction", "brief", "--limit", "8",
        "-o", "run-samples",
    )),
    Step("answer-letter", (
        "answer", "clinbench", *SCRIPTED, "--protocol", "letter", "--condition", "closed", "--condition", "first 50%",
        "--limit", "8", "-o", "run-letter",
    )),
    Step("answer-images", (
        "answer", "clinbench", *SCRIPTED, "--edition", "image", "--condition", "images", "--limit", "6", "-o",
        "run-images",
    )),
    Step("answer-likelihood", (
        "answer", "clinbench", *SCRIPTED, "--protocol", "likelihood", "--limit", "6", "-o", "run-likelihood",
    )),
    Step("predictions", (
        "predictions", "given/predictions.jsonl", "--benchmark", "clinbench", "--model", "theirs", "-o", "run-theirs",
    ), before=_predictions),
    Step("judge", (
        "judge", "run", *SCRIPTED, "--by", "equivalence", "--by", "rouge-l", "--by", "exact", "--by", "fuzzy", "--by",
        "edit", "--by", "failure-mode", "--by", "error-type", "--by", "relevance", "--probe", "order", "--probe-size",
        "6", "-o", "judged",
    )),
    Step("judge-samples", ("judge", "run-samples", *SCRIPTED, "-o", "judged-samples")),
    Step("judge-choices", ("judge", "run-letter", "--by", "choice", "-o", "judged-choices")),
    Step("judge-sheet", ("judge", "run", "--sample-for-humans", "8", "-o", "sheet.csv")),
    Step("judge-people", ("judge", "judged", "--human", "given/sheet.csv", "--annotator", "A", "-o", "judged-people"),
         needs=("judge-sheet",), before=_judge),
    Step("compare-answers", ("compare", "judged", "judged-samples", "-o", "compared-answers")),
    Step("check", ("check", "clinbench", *SCRIPTED, "--limit", "6", "-o", "check")),
    Step("leakage", (
        "leakage", "clinbench", *SCRIPTED, "--run", "run-letter", "--cutoff", "scripted=2024-06", "--against", "bench",
        "--limit", "6", "-o", "leaks",
    )),
    Step("audit", (
        "audit", "handbooks", "teaching", *SCRIPTED, "--with", f"hero[encoder={ENCODER}]", "--whole-up-to", "0",
        "--passages", "2", "--limit", "4", "--probe-order", "6", "-o", "audit",
    )),
    Step("audit-economy", (
        "audit", "handbooks", "teaching", *SCRIPTED, "--with", "bm25", "--limit", "4", "--economy", "0.4", "-o",
        "audit-economy",
    )),
    *(
        Step(f"audit-shard-{part}", (
            "audit", "handbooks", "teaching", *SCRIPTED, "--with", "bm25", "--limit", "4", "--shard", f"{part}/2",
            "-o", f"shard-{part}",
        ))
        for part in (1, 2)
    ),
    Step("audit-merge", ("audit", "merge", "shard-1", "shard-2", "-o", "audit-merged")),
    Step("audit-answers", ("audit", "--answers", "given/answers.jsonl", *SCRIPTED, "-o", "audit-answers"),
         before=_answers),
    Step("audit-export", ("audit", "export", "audit", "-o", "audit-export")),
    Step("audit-compare", ("audit", "compare", "audit", "audit-merged", "-o", "audit-compared")),
    Step("audit-themes", ("audit", "themes", "audit", *SCRIPTED, "--encoder", ENCODER, "-o", "themes")),
    Step("audit-trial", ("audit", "trial", "--judge", "scripted", "--limit", "10", "-o", "trial")),
    Step("audit-packets", ("audit", "validate", "audit", "--per-label", "4", "--packets", "packets", "-o", "packets")),
    Step("audit-validate", (
        "audit", "validate", "audit", "--packets", "packets", "--labels", "given/annotator-1.csv", "--labels",
        "given/annotator-2.csv", "-o", "validation",
    ), before=_annotate),
    Step("audit-ablate", ("audit", "ablate", "audit", *SCRIPTED, "--per-label", "3", "--order", "-o", "ablation")),
    Step("show-audit", ("show", "audit", "tq-01")),
    Step("report", (
        "report", "cases", "stats", "clinbench", "rank-bm25", "rank-fusion", "judged", "judged-choices", "audit",
        "themes", "validation", "ablation", "leaks", "--published", "clinbench", "--draws", "4", "--size", "50", "-o",
        "report",
    )),
    *(
        Step(f"review-invite-{number}", ("review", "invite", f"Reader {number}", "--db", "review.db"),
             drop="id invited link link_until until")
        for number in (1, 2)
    ),
    Step("review", (
        "review", "clinbench", "--form", "two-level-1", "--sample", "6", "--per-item", "0", "--assign", "--no-serve",
        "--db", "review.db",
    ), needs=("review-invite-1", "review-invite-2")),
    Step("review-exam", ("review", "clinbench", "--exam", "--questions", "4", "--no-serve", "--db", "review.db")),
    Step("review-serve", ("review", "--port", "0", "--db", "review.db"), needs=("review", "review-exam"), visit=_label,
         drop="address come_in come_in_until"),
    Step("review-status", ("review", "status", "--db", "review.db"), needs=("review-serve",), drop="created person"),
    Step("review-export", ("review", "export", "two-level-1", "--db", "review.db", "-o", "reviews.jsonl"),
         needs=("review-serve",)),
    Step("review-revoke", ("review", "revoke", "Reader 2", "--db", "review.db"), needs=("review-serve",),
         drop="person"),
    Step("review-apply", ("review", "apply", "clinbench", "--labels", "reviews.jsonl", "-o", "clinbench-2")),
    Step("serve", (
        "serve", "cases", "bench", "clinbench", "rank-fusion", "run-letter", "judged", "audit", "report", "--port", "0",
    ), visit=_read_pages, drop="address"),
    Step("ask", ("ask", "cases", "A woman with fever and a rash. What next?", "--line", "bm25", *SCRIPTED)),
    Step("ask-search", ("ask", "cases", "handbooks", "May I drive after the operation?", "--line", DENSE)),
    Step("verify", ("verify", "cases", "clinbench", "audit", "report")),
    Step("ledger-stats", ("ledger", "stats", "--ledger", "ledgers/answer.sqlite"), needs=("answer",),
         drop="bytes"),
    Step("ledger-export", ("ledger", "export", "calls.jsonl", "--ledger", "ledgers/answer.sqlite"), needs=("answer",)),
    Step("answer-replayed", (
        "answer", "bench", "--model", "replay:given/calls.jsonl", "--condition", "closed", "--limit", "8", "-o",
        "run-again",
    ), needs=("ledger-export",), before=_recorded),
    Step("demo", ("demo", *SCRIPTED, "-o", "demo")),
    Step("weights-list", ("weights", "list"), drop="path state folder"),
]  # fmt: skip


# Running


def plan(steps: list[Step], patterns: list[str]) -> list[Step]:
    """The steps that these patterns name, with those they need, in order; without patterns all."""
    wanted = {step.name for step in steps if not patterns or any(fnmatch.fnmatch(step.name, p) for p in patterns)}
    for step in reversed(steps):
        if step.name in wanted:
            read = {word.partition("/")[0] for word in step.words[1:]} - set(step.outputs)  # without the verb
            wanted |= {other.name for other in steps if read & set(other.outputs)} | set(step.needs)
    return [step for step in steps if step.name in wanted]


@contextlib.contextmanager
def model(folder: Path, engine: str) -> Iterator[None]:
    """The scripted model, as `scripted` in the folder's configuration; `identity` keeps its port out of the keys."""
    script = Path(__file__).with_name("golden_model.py")
    words = [sys.executable, str(script), str(folder / "given" / "gold.jsonl")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())
        settings = f'[models.scripted]\nspec = "http://127.0.0.1:{port}/v1#scripted"\nidentity = "scripted"\n'
        (folder / "hoofbeat.toml").write_text(
            f'on = "{engine}"\n{settings}price_in = 1.0\nprice_out = 2.0\ncontext = 32000\nreasoning = 0\n', "utf-8"
        )
        yield
        server.stdin.close()


def prepare(folder: Path) -> None:
    """Copy the teaching set's files into the folder `given`: the commands' words have no machine's paths."""
    found = importlib.util.find_spec("hoofbeat")
    assert found is not None
    assert found.origin is not None, "hoofbeat can't be imported"
    teaching = Path(found.origin).parent / "teaching"
    given = folder / "given"
    shutil.copytree(teaching, given, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (given / "handbooks" / "pdf").rename(given / "pdf")
    (given / "cases" / "gold.jsonl").rename(given / "gold.jsonl")
    write_encoder(folder / ENCODER)
    (folder / "outputs").mkdir()


def load(verbs: set[str]) -> Main:
    """The command line with these verbs imported: a fork of this process then starts at once."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported: threads do not outlive a fork
    from hoofbeat.cli import main  # noqa: PLC0415

    for verb in verbs:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main([verb, "--help"])
    return main


def environment(cache: Path, step: Step) -> dict[str, str]:
    """Nothing of the caller's settings but where weights lie; every step has its own ledger.

    `GIT_DIR` leads nowhere, so that manifests and reports hold no revision.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOOFBEAT_", "OPENAI_"))}
    kept |= {name: os.environ[name] for name in ("HOOFBEAT_WEIGHTS",) if name in os.environ}
    ledger = f"ledgers/{step.name}.sqlite"
    return {
        **kept,
        "COLUMNS": "120",
        "TZ": "UTC",
        "HOOFBEAT_CACHE": str(cache),
        "HOOFBEAT_LEDGER": ledger,
        "GIT_DIR": "none",
    }


def run(main: Main, step: Step, folder: Path, cache: Path, *, loud: bool) -> tuple[int, str, str]:
    """The command in a fork of this process: its exit code, output and messages."""
    outputs = folder / "outputs"
    out, err = outputs / f"{step.name}.out", outputs / f"{step.name}.err"
    child = os.fork()
    if child == 0:
        _be(main, [*step.words, "--json"], folder, environment(cache, step), (out, err))
    if step.visit is not None:
        try:
            if address := _address(out):
                step.visit(address, folder)
        finally:
            os.kill(child, signal.SIGINT)
    _, status, used = os.wait4(child, 0)
    if loud:
        print(f"{used.ru_utime + used.ru_stime:6.1f} s  {step.name}", file=sys.stderr)
    return os.waitstatus_to_exitcode(status), out.read_text("utf-8"), err.read_text("utf-8")


def _address(out: Path) -> str:
    """Where a server listens, once it has said so; empty where it says something else, or nothing in a minute."""
    for _ in range(600):
        if out.exists() and (told := out.read_text("utf-8")).endswith("\n"):
            return str(json.loads(told).get("address", "")).rstrip("/")
        time.sleep(0.1)
    return ""


def _be(main: Main, words: list[str], folder: Path, env: dict[str, str], streams: tuple[Path, Path]) -> NoReturn:
    """Be the command and end; modules are not taken apart, which takes longer than a short command."""
    code: object = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in enumerate(streams, 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = ["hoofbeat", *words]
        main(words)
    except SystemExit as left:
        code = left.code
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


# What was written


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def hash_file(path: Path) -> str:
    """The hash of a file; of a manifest, without the version and what follows from files that are hashed themselves."""
    data = path.read_bytes()
    if path.name != "manifest.json":
        return digest(data)
    manifest = json.loads(data)
    manifest |= {"version": "", "files": sorted(manifest.get("files", {}))}
    return digest(without(manifest, {"sha256"}))


def without(value: object, drop: set[str]) -> bytes:
    """JSON without these fields, wherever they are."""

    def kept(each: object) -> object:
        if isinstance(each, dict):
            return {name: kept(inner) for name, inner in each.items() if name not in drop}
        return [kept(inner) for inner in each] if isinstance(each, list) else each

    return json.dumps(kept(value), ensure_ascii=False).encode()


class Watch:
    """What has changed in a folder since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}
        self._hashes: dict[tuple[str, int, int], str] = {}
        self._calls: set[tuple[str, str]] = set()
        self.changes()

    def changes(self) -> Facts:
        """The hash of every file that is new or different, `gone` for those removed, and the ledgers' new keys."""
        now, ledgers = {}, []
        for path in sorted(self._folder.rglob("*")):
            if path.name.endswith(".sqlite"):
                ledgers.append(path)
            elif path.is_file() and not path.name.endswith(LEFT_OUT):
                now[path.relative_to(self._folder).as_posix()] = self._hash(path)
        facts = {name: value for name, value in now.items() if self._known.get(name) != value}
        facts |= dict.fromkeys(self._known.keys() - now.keys(), "gone")
        self._known = now
        return facts | self._new_calls(ledgers)

    def _hash(self, path: Path) -> str:
        """Hash a file anew only where it was written since."""
        found = path.stat()
        key = (str(path), found.st_mtime_ns, found.st_size)
        if key not in self._hashes:
            self._hashes[key] = hash_file(path)
        return self._hashes[key]

    def _new_calls(self, ledgers: list[Path]) -> Facts:
        """By prompt, how many calls there are and the hash of their keys: of the requests as they were made."""
        keys: dict[str, list[str]] = defaultdict(list)
        for path in ledgers:
            with contextlib.closing(sqlite3.connect(path)) as ledger:
                for key, operation, prompt in ledger.execute("SELECT lower(hex(key)), operation, prompt FROM calls"):
                    if (path.name, key) not in self._calls:
                        self._calls.add((path.name, key))
                        keys[prompt.partition("@")[0] or operation].append(key)
        return {f"calls: {name}": f"{len(of)} {digest(' '.join(sorted(of)).encode())}" for name, of in keys.items()}


def facts_of(step: Step, watch: Watch, result: tuple[int, str, str], folder: Path) -> Facts:
    code, out, err = result
    facts = watch.changes()
    if code != step.code:
        print(f"{step.name}: exit code {code}\n{out}{err}", file=sys.stderr)
    if "Traceback" in err:
        print(err, file=sys.stderr)
    try:
        told = without(json.loads(out), {"seconds", "earlier_replies", *step.drop.split()})
    except json.JSONDecodeError:
        told = out.encode()
    if str(folder).encode() in told:
        print(f"{step.name}: the folder's path is in its output", file=sys.stderr)
    return {"exit code": str(code), "output": digest(told), **facts}


def run_all(
    steps: list[Step], folder: Path, cache: Path, *, loud: bool, engine: str, twice: bool = False
) -> dict[str, Facts]:
    """Run the steps in the folder; what each wrote, and with `twice` what a second run changed."""
    prepare(folder)
    main = load({step.words[0] for step in steps})
    written: dict[str, Facts] = {}
    with model(folder, engine):
        watch = Watch(folder)
        for step in steps:
            if step.before is not None:
                step.before(folder)
                watch.changes()
            result = run(main, step, folder, cache, loud=loud)
            facts = written[step.name] = facts_of(step, watch, result, folder)
            if twice and step.visit is None and not {step.name, step.words[0]} & {*CHANGING}:
                again = facts_of(step, watch, run(main, step, folder, cache, loud=loud), folder)
                again.pop("output")  # it says how many calls were made now
                told = {name: value for name, value in again.items() if facts.get(name) != value}
                facts |= {f"second run: {name}": value for name, value in told.items()}
    return written


def differences(expected: dict[str, Facts], found: dict[str, Facts]) -> list[str]:
    """A line for each fact that differs: command, file, and whether it was added, removed or changed."""
    lines = []
    for step, facts in found.items():
        before = expected.get(step, {})
        for name in sorted(before.keys() | facts.keys()):
            if before.get(name) != facts.get(name):
                how = "added" if name not in before else "removed" if name not in facts else "changed"
                values = f" ({before[name]} → {facts[name]})" if how == "changed" and name == "exit code" else ""
                lines.append(f"{step}: {name}: {how}{values}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="accept what is written now")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only commands of this name")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave what was written in this new folder")
    parser.add_argument("--fresh", action="store_true", help="compute the encoders' vectors anew, too")
    parser.add_argument("--loud", action="store_true", help="say how long each command computed")
    parser.add_argument("--on", default="local", metavar="WHERE", help="where the commands' work runs: local or ray")
    parser.add_argument("--twice", action="store_true", help="run every command twice; the second run changes nothing")
    given = parser.parse_args()
    if given.twice and given.write:
        parser.error("--write accepts one run, not two")
    steps = plan(STEPS, given.only)
    if not steps:
        parser.error(f"no command fits {' or '.join(given.only)}")
    scratch = Path(tempfile.mkdtemp())  # not TemporaryDirectory: every fork would remove it at its end
    try:
        folder = given.keep.resolve() if given.keep else scratch / "folder"
        cache = scratch / "cache"
        folder.mkdir(parents=True)
        cache.mkdir()
        if not given.fresh:
            VECTORS.mkdir(mode=0o700, exist_ok=True)
            (cache / "vectors").symlink_to(VECTORS)
        found = run_all(steps, folder, cache, loud=given.loud, engine=given.on, twice=given.twice)
    finally:
        shutil.rmtree(scratch)
    expected: dict[str, Facts] = json.loads(EXPECTED.read_text("utf-8")) if EXPECTED.exists() else {}
    lines = differences(expected, found)
    if not given.only:
        lines += [f"{name}: removed" for name in expected.keys() - found.keys()]
    print("\n".join(lines) or f"{len(found)} commands wrote what they should")
    failed = [step.name for step in steps if found.get(step.name, {}).get("exit code") != str(step.code)]
    if failed:
        print(f"not as it should end: {', '.join(failed)}", file=sys.stderr)
        return 1
    if given.write:
        kept = {name: expected[name] for name in expected if given.only and name not in found}
        EXPECTED.write_text(json.dumps({**kept, **found}, indent=1, sort_keys=True) + "\n", "utf-8")
        return 0
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
