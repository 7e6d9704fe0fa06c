"""What is fuzzed: everything that reads bytes which others wrote.

A target has inputs to begin with, from the teaching set and, where it is there, the real data beside the project, and a
function that reads one input as the program would. It returns a word about what came out: inputs that bring a new one
are mutated further. Errors that Hoofbeat raises on purpose are right; any other is a finding.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import hoofbeat
from hoofbeat import cli, teaching
from hoofbeat.answering.choice_reader import read_choice
from hoofbeat.answering.conditions import parse_condition
from hoofbeat.answering.prediction_import import PredictionImport, import_predictions
from hoofbeat.audit.answer_lines import line_of
from hoofbeat.audit.answers_file import parse_answer_fields, read_source_answers
from hoofbeat.audit.audit_gate import parse_condition as read_condition
from hoofbeat.audit.disagreement_cases import read_decisions
from hoofbeat.audit.pair_judge import scan_label
from hoofbeat.benchmarks.benchmark_import import import_benchmark
from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.citations import read_citations
from hoofbeat.corpus.fetch.articles import parse_answer, read_names
from hoofbeat.corpus.fetch.client import FetchError
from hoofbeat.corpus.figures import figure_references
from hoofbeat.corpus.filter import parse_filters
from hoofbeat.corpus.qrels import read_qrels
from hoofbeat.corpus.reader import DocumentWithImages, read_entries
from hoofbeat.corpus.readers.beir import read_beir
from hoofbeat.corpus.readers.mapped import parse_mapping
from hoofbeat.corpus.readers.r2med import read_r2med
from hoofbeat.corpus.specialties import load_scheme
from hoofbeat.corpus.vocabulary import read_hpoa, read_table
from hoofbeat.errors import HoofbeatError
from hoofbeat.findings.ranking_measures import read_trec_run
from hoofbeat.judging.humans import read_labels
from hoofbeat.models.batch_formats import read_answer, request_id
from hoofbeat.models.bounds import within_bounds
from hoofbeat.models.encoders.static_encoder import read_safetensors
from hoofbeat.models.fleet import _addresses, _text
from hoofbeat.models.http_backend import HttpBackend, _listed, _served, score_by_echo, score_by_forcing
from hoofbeat.models.known_models import load_known_models
from hoofbeat.models.model_loading import load_config
from hoofbeat.models.replay import ReplayBackend
from hoofbeat.models.reply_text import is_refusal, read_object, split_reasoning
from hoofbeat.models.requests import Reply
from hoofbeat.models.wire import classify, read_chat, retry_after_seconds
from hoofbeat.prompts import load_prompt
from hoofbeat.prompts.packs import load_pack, read_pack
from hoofbeat.recipes.messages.harvest import read_harvest
from hoofbeat.recipes.review_tasks import read_labels as read_review_labels
from hoofbeat.records import Answer, Document
from hoofbeat.retrieval.hero.hero_signals import read_words
from hoofbeat.retrieval.line import variants
from hoofbeat.retrieval.query_tasks import query_task
from hoofbeat.store import Ledger, open_artefact
from hoofbeat.store.artefact import folder_problems
from hoofbeat.store.tables import read_foreign_parquet, read_tsv
from hoofbeat.trust import FolderConfig
from tests.fuzz.samples import (
    AUDITED,
    BATCH,
    BEIR,
    CHATS,
    CONFIGS,
    CSV,
    DECISIONS,
    ENDPOINT,
    HTML,
    MANIFEST,
    OUTPUTS,
    PATIENTS,
    QUESTIONS,
    R2MED,
    TENSORS,
    TEXT,
    TYPED,
    rows_of,
)

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
OPTIONS = ("Sarcoidosis", "Tuberculosis", "Acute myeloid leukaemia, type 2", "None of the above", "B. burgdorferi")
Read = Callable[[bytes, Path], object]


class Target(NamedTuple):
    """A reader by its name. `read` gets an input and an empty folder. `slow` ones are only fuzzed by hand."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Read
    slow: bool = False


# Inputs to begin with


def _teaching(pattern: str, count: int = 4) -> list[bytes]:
    return [path.read_bytes() for path in islice(sorted(teaching.cases_folder().parent.glob(pattern)), count)]


def _real(pattern: str, count: int = 3, largest: int = 60_000) -> list[bytes]:
    found = (path for path in sorted(_DATA.glob(pattern)) if path.stat().st_size <= largest)
    return [path.read_bytes() for path in islice(found, count)]


def _real_lines(name: str, count: int = 5, largest: int = 20_000) -> list[bytes]:
    if not (_DATA / name).exists():
        return []
    with gzip.open(_DATA / name, "rb") if name.endswith(".gz") else (_DATA / name).open("rb") as stream:
        return [b"".join(line for line in islice(stream, count) if len(line) <= largest)]


def _package(kind: str) -> bytes:
    article = _teaching("cases/hbt-case-01.xml", 1)[0]
    made = io.BytesIO()
    members = {"PMC1/a.nxml": article, "PMC1/g1.jpg": b"\xff\xd8\xff\xe0JFIF", "PMC1/readme.txt": b"x"}
    if kind == "zip":
        with zipfile.ZipFile(made, "w") as zipped:
            for name, data in members.items():
                zipped.writestr(name, data)
        return made.getvalue()
    with tarfile.open(fileobj=made, mode="w") as tarred:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tarred.addfile(info, io.BytesIO(data))
    return made.getvalue()


def _table(kind: str) -> bytes:
    import polars  # noqa: PLC0415 - only for these targets

    frame = polars.DataFrame({"id": ["a", "b"], "question": ["What?", "Why?"], "answer": ["x", None], "year": [1, 2]})
    made = io.BytesIO()
    frame.write_parquet(made) if kind == "parquet" else frame.write_ipc_stream(made)
    return made.getvalue()


def _word() -> dict[str, str | bytes]:
    """The parts of a small Word file, with headings, a numbered list and a table."""
    from tests.corpus.office_files import paragraph, style, styled, word_parts  # noqa: PLC0415

    listed = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("Week", "May"))
    body = styled("After the operation", "Heading1") + paragraph("Keep the wound dry.", "", "<w:b/>")
    body += paragraph("Shower.", listed) + paragraph("Hidden.", "", "<w:vanish/>")
    body += f"<w:tbl><w:tr><w:trPr/>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>{paragraph('Table 1. Weeks.')}"
    level = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    return word_parts(
        body,
        styles=style("Heading1", "heading 1", '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>'),
        numbering=f'<w:abstractNum w:abstractNumId="1">{level}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>',
    )


@cache
def _slides() -> dict[str, str | bytes]:
    """The parts of a presentation with two slides, notes and a table."""
    import pptx  # noqa: PLC0415 - only for these targets

    deck = pptx.Presentation()
    for title in ("After the operation", "Bathing"):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "Keep the wound dry.\nShowers are fine."
        slide.notes_slide.notes_text_frame.text = "Say it twice."
    table = slide.shapes.add_table(2, 2, 0, 0, 914400, 914400).table
    table.cell(0, 0).text, table.cell(1, 1).text = "Week", "walk"
    made = io.BytesIO()
    deck.save(made)
    with zipfile.ZipFile(made) as package:
        return {name: package.read(name) for name in package.namelist()}


@cache
def _ledger() -> bytes:
    from tests.store.test_call_ledger import entry  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        with Ledger(Path(folder, "l.sqlite")) as ledger:
            ledger.add_all(entry(name) for name in "abc")
        return Path(folder, "l.sqlite").read_bytes()


def _package_data(name: str) -> list[bytes]:
    """A file of settings that comes with Hoofbeat."""
    return [Path(hoofbeat.__file__).parent.joinpath(name).read_bytes()]


# Reading one input


def _office(parts: Callable[[], dict[str, str | bytes]], changed: str, data: bytes, folder: Path) -> object:
    """A Word file or a presentation with one part changed: changed bytes of a zip file hardly ever reach a part."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as package:
        for name, content in {**parts(), changed: data}.items():
            package.writestr(name, content)
    return _documents("a.docx" if changed.startswith("word/") else "a.pptx", made.getvalue(), folder)


def _part(parts: Callable[[], dict[str, str | bytes]], name: str) -> list[bytes]:
    found = parts()[name]
    return [found.encode() if isinstance(found, str) else found]


def _answer_xml(data: bytes, folder: Path) -> object:
    try:
        return len(parse_answer(data))
    except FetchError as err:
        return str(err)[:20]


def _settings(data: bytes, folder: Path) -> object:
    """A configuration, named and as it is found in a folder."""
    file = folder / "hoofbeat.toml"
    file.write_bytes(data)
    FolderConfig.of(file)
    return sorted(load_config(file).models)[:3]


def _typed(data: bytes, folder: Path) -> object:
    """What is typed after an option: lines, conditions, filters, mappings."""
    text, read = data.decode("utf-8", "replace"), []
    for parse in (variants, parse_filters, read_condition, parse_condition, parse_mapping, parse_answer_fields):
        with contextlib.suppress(HoofbeatError):
            parse(text)
            read.append(parse.__name__)
    return read


def _lines_of_audit(data: bytes, folder: Path) -> object:
    """What a model wrote in an audit: answers in one line, labels, quotes."""
    text = data.decode("utf-8", "replace")
    answer = Answer(question="q", model="m", condition="c", text=text)
    document = Document(id="d", title="", text="Keep the wound dry for 2 days… Showers are fine; no baths, though.")
    found = find_quote(document, text)
    return bool(line_of(answer)[0]), scan_label(text, load_pack("transplant")), found is None


def _stored_calls(data: bytes, folder: Path) -> object:
    (folder / "l.sqlite").write_bytes(data)
    with Ledger(folder / "l.sqlite") as ledger:
        return len(list(islice(ledger.entries(), 5)))


def _documents(name: str, data: bytes, folder: Path, beside: dict[str, bytes] | None = None) -> object:
    for other, content in (beside or {}).items():
        (folder / other).parent.mkdir(parents=True, exist_ok=True)
        (folder / other).write_bytes(content)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    found = []
    for entry in read_entries(folder / name, folder / "scratch"):
        if isinstance(entry, DocumentWithImages):
            _sound(entry.document)
            found.append(f"{len(entry.document.sections)} {len(entry.document.tables)} {len(entry.document.figures)}")
        else:
            found.append(entry.group)
    return found[:5]


def _sound(document: Document) -> None:
    """What every stage after the import relies on."""
    size = len(document.text)
    assert document.id, "a document without an id"
    assert all(0 <= part.start <= part.end <= size for part in document.sections), "a section outside the text"
    assert all(0 <= part.start <= part.end <= size for part in document.figures), "a figure outside the text"
    document.text.encode()
    figure_references(document)


def _in_file(read: Callable[[Path], object], name: str, data: bytes, folder: Path) -> object:
    (folder / name).write_bytes(data)
    found = read(folder / name)
    return [type(each).__name__ for each in islice(found, 3)] if isinstance(found, Iterator | list | tuple) else None


def _judged(read: Callable[[Path], object], files: dict[str, bytes], changed: str, data: bytes, folder: Path) -> object:
    for name, content in {**files, changed: data}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    read(folder)
    return None


def _questions(name: str, data: bytes, folder: Path) -> object:
    (folder / name).write_bytes(data)
    made = import_benchmark(folder / name, folder / "made")
    return made.manifest.counts.kept > 0, sorted(made.manifest.counts.reasons)[:3]


def _predictions(name: str, data: bytes, folder: Path) -> object:
    (folder / name).write_bytes(data)
    made = import_predictions(folder / name, folder / "made", PredictionImport(model="theirs"))
    return made.manifest.counts.kept > 0, sorted(made.manifest.counts.failures)


def _chat(data: bytes, folder: Path) -> object:
    found = [within_bounds(read_chat(data))]
    found += [
        within_bounds(classify(status, {"retry-after": data[:40].decode("latin-1")}, data))
        for status in (429, 400, 500)
    ]
    retry_after_seconds(data[:60].decode("latin-1"))
    json.dumps([repr(each) for each in found]).encode()
    return [getattr(each, "kind", getattr(each, "finish", "")) for each in found]


def _batch(data: bytes, folder: Path) -> object:
    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError):  # what `batch` expects for a line of another kind
            request_id(line)
        try:
            _, found = read_answer(line)
        except ValueError:
            continue
        return getattr(within_bounds(found), "kind", "reply")
    return None


def _endpoint(data: bytes, folder: Path) -> object:
    """The other paths of an endpoint: embeddings, relevance, log-likelihoods, windows."""

    async def post(*_: object) -> bytes:
        return data

    async def ask() -> list[object]:
        backend = HttpBackend(url="http://127.0.0.1:9/v1", name="m", identity="m")
        backend.post = post  # type: ignore[assignment]
        replies: list[object] = [await backend.embed(["a", "b"]), await backend.relevance("a", ["b", "c"])]
        replies += [
            await score_by_echo(post, "u", "m", "a context", " b"),
            await score_by_forcing(post, "u", "a", " b"),
        ]
        return [within_bounds(each) for each in replies]

    with contextlib.suppress(ValueError, RecursionError):
        told = json.loads(data)
        _listed(told, "m")
        _served(told)
    return [getattr(each, "kind", "") for each in asyncio.run(ask())]


def _output(data: bytes, folder: Path) -> object:
    """What a model wrote, in every way that it is read."""
    text = data.decode("utf-8", "surrogatepass" if data.isascii() else "replace")
    parted = split_reasoning(text)
    schema = _schema()
    found = read_object(Reply(text=parted.text), schema)
    chosen = read_choice(text, OPTIONS)
    assert chosen.choice is None or chosen.choice in OPTIONS, "a choice that is not an option"
    assert len(parted.text) <= len(text), "an answer longer than the output"
    return is_refusal(text), type(found).__name__, chosen.words, parted.unfinished


@cache
def _schema() -> dict[str, object]:
    schema = load_prompt("absence").schema
    assert schema is not None
    return schema


def _manifest(data: bytes, folder: Path) -> object:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "manifest.json").write_bytes(data)
    (folder / "corpus" / "documents.jsonl").write_bytes(b"{}\n")
    problems = folder_problems(folder / "corpus")
    opened = open_artefact(folder / "corpus")
    opened.reference()
    return len(problems)


# Tables in folders of every kind, read by the commands


@cache
def _folders() -> Path:
    from tests.web.folders import web_folders  # noqa: PLC0415 - only for these targets

    made = Path(os.environ["HOOFBEAT_FUZZ_FOLDERS"]) / "study"
    return made if made.exists() else web_folders(made)


def _read_by_commands(table: str, data: bytes, folder: Path) -> object:
    from tests.cli.test_damaged_tables import commands  # noqa: PLC0415

    kind, _, name = table.partition("/")
    shutil.copytree(_folders() / kind, folder / kind)
    (folder / kind / name).write_bytes(data)
    codes = []
    os.environ |= {"HOOFBEAT_TRUST_CHANGED": "1", "HOOFBEAT_LEDGER": str(folder / "ledger.sqlite")}
    choices = commands(folder / kind, _folders(), folder / "out")
    for words in (choices[len(data) % len(choices)], choices[sum(data[:99]) % len(choices)]):
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            try:
                cli.main(words)
            except SystemExit as ended:
                codes.append(ended.code)
        assert codes[-1] != 70, f"exit 70 of {' '.join(words)}: {told.getvalue()[-1500:]}"
        shutil.rmtree(folder / "out", ignore_errors=True)
    return codes


def _tables() -> list[Target]:
    from tests.cli.test_damaged_tables import TABLES  # noqa: PLC0415

    def seed(table: str) -> list[bytes]:
        return [(_folders() / table).read_bytes()]

    names = [*TABLES, *(f"{kind}/manifest.json" for kind in ("audit", "bench", "cases", "judged", "run", "ranked"))]
    return [
        Target(f"folder-{n.replace('/', '-')}", partial(seed, n), partial(_read_by_commands, n), slow=True)
        for n in names
    ]


# All targets


def _seeds(*groups: Sequence[bytes]) -> Callable[[], Sequence[bytes]]:
    return lambda: [each for group in groups for each in group]


def targets() -> list[Target]:
    """Everything that is fuzzed."""
    cases, books = _teaching("cases/*.xml"), _teaching("handbooks/*.md")
    table = [rows_of({"id": "1", "title": "A", "text": "b", "year": 2020, "sections": [{"heading": "h", "text": "t"}]})]
    table += [PATIENTS, *_real_lines("guidelines.jsonl.gz", 2), *_real_lines("medquad_multisource.jsonl.gz")]
    array = b"[" + b",".join(line for line in table[0].splitlines()) + b"]"
    answers = rows_of(*({"question": "May I swim?", "source": s, "answer": "Yes."} for s in ("north", "south")))
    guesses = [
        rows_of(
            {
                "id": "q",
                "question": "What?",
                "options": {"A": "x", "B": "y"},
                "answer": "A",
                "predicted": "B",
                "model": "m",
                "seconds": 1.5,
                "tokens": 3,
                "confidence": 0.5,
            }
        ),
        b"id,predicted,options\n1,A,\"['x','y']\"\n",
        *_real_lines("mcq_predictions.jsonl.gz"),
    ]
    readers: list[tuple[str, str, Callable[[], Sequence[bytes]]]] = [
        ("jats", "a.xml", _seeds(cases, _real("jats/*xml"))),
        ("html", "a.html", _seeds([HTML])),
        ("markdown", "a.md", _seeds(books)),
        ("text", "a.txt", _seeds([TEXT], _real("syntheses/*.txt"))),
        ("pdf", "a.pdf", partial(_teaching, "handbooks/pdf/*.pdf")),
        ("jsonl", "a.jsonl", _seeds(table)),
        ("json", "a.json", _seeds([array, b"[" + PATIENTS + b"]"])),
        ("csv", "a.csv", _seeds([CSV])),
        ("tsv", "a.tsv", _seeds([CSV.replace(b",", b"\t")])),
        ("gzip", "a.jsonl.gz", lambda: [gzip.compress(table[0], mtime=0)]),
        ("zip", "a.zip", lambda: [_package("zip")]),
        ("tar", "a.tar", lambda: [_package("tar")]),
        ("tgz", "a.tar.gz", lambda: [gzip.compress(_package("tar"), mtime=0)]),
        ("patients", "PMC-Patients.json", _seeds([b"[" + PATIENTS.strip() + b"]"])),
    ]
    files: list[tuple[str, str, Callable[[], Sequence[bytes]], Callable[[Path], object]]] = [
        ("config-models", "m.toml", partial(_package_data, "models/data/models.toml"), load_known_models.__wrapped__),
        ("config-scheme", "s.toml", partial(_package_data, "corpus/data/specialties-cupcase.toml"),
         lambda p: load_scheme.__wrapped__(str(p))),
        ("config-tasks", "t.toml", partial(_package_data, "retrieval/query_tasks.toml"),
         lambda p: query_task(f"{p}#x")),
        ("config-words", "w.tsv", _seeds([b"kidney\trenal; nephric\n# x\n"]), read_words),
        ("config-endpoints", "e.txt", _seeds([b"http://127.0.0.1:8000/v1\n# x\n"]), lambda p: _addresses(_text(p))),
        ("names", "n.txt", _seeds([b"PMC1\nPMC2\n# x\n"]), read_names),
        ("vocabulary", "v.tsv", _seeds([b"code\tname\tsynonyms\nA1\tGout\tpodagra|x\n"]), read_table),
        ("vocabulary-hpoa", "phenotype.hpoa", _seeds([b"#version: 1\nOMIM:1\tGout\t\tHP:1\n"]), read_hpoa),
        ("review-labels", "l.jsonl", _seeds([rows_of({"item": "a", "criterion": "c", "value": "pass"})]),
         read_review_labels),
        ("review-labels-csv", "l.csv", _seeds([b"item,criterion,value,note\na,c,pass,'=x\n"]), read_review_labels),
        ("weights-safetensors", "m.safetensors", _seeds([TENSORS]), read_safetensors),
    ]  # fmt: skip
    office = [(_word, f"word/{name}.xml") for name in ("document", "styles", "numbering")]
    office += [(_slides, f"ppt/{name}.xml") for name in ("slides/slide2", "presentation", "notesSlides/notesSlide1")]
    return [
        *(Target(f"reader-{name}", seeds, partial(_documents, file)) for name, file, seeds in readers),
        *(Target(f"reader-beir-{Path(n).stem}", _seeds([BEIR[n]]), partial(_judged, read_beir, BEIR, n)) for n in BEIR),
        *(
            Target(f"reader-r2med-{Path(n).stem}", _seeds([R2MED[n]]), partial(_judged, read_r2med, R2MED, n))
            for n in R2MED
        ),
        Target(
            "reader-qrels", _seeds([b"q1 0 d1 1\n", BEIR["qrels/test.tsv"]]), partial(_in_file, read_qrels, "q.tsv")
        ),
        Target(
            "reader-trec-run",
            _seeds([b"q1 Q0 d1 1 9.5 r\n"]),
            partial(_in_file, lambda p: list(read_trec_run(p)), "r.trec"),
        ),
        Target(
            "reader-citations",
            _seeds([b"citing,cited\nPMC1,PMC2\n10.1/a,PMID:3\n"]),
            partial(_in_file, lambda p: [read_citations([p])], "c.csv"),
        ),
        Target(
            "reader-citations-json",
            _seeds([rows_of({"citing": "PMC1", "cited": "PMC2", "types": ["Case Reports"]})]),
            partial(_in_file, lambda p: [read_citations([p])], "c.jsonl"),
        ),
        *(
            Target(f"questions-{suffix}", _seeds(QUESTIONS), partial(_questions, f"q.{suffix}"))
            for suffix in ("jsonl", "json")
        ),
        Target(
            "questions-csv", _seeds([b"id,question,A,B,answer\n1,What?,x,y,A\n", CSV]), partial(_questions, "q.csv")
        ),
        Target("questions-parquet", lambda: [_table("parquet")], partial(_questions, "q.parquet"), slow=True),
        Target("questions-arrow", lambda: [_table("arrow")], partial(_questions, "q.arrow"), slow=True),
        Target("predictions-jsonl", _seeds(guesses), partial(_predictions, "p.jsonl")),
        Target("predictions-csv", _seeds(guesses), partial(_predictions, "p.csv")),
        Target("answers-jsonl", _seeds([answers]), partial(_in_file, lambda p: [read_source_answers(p)], "a.jsonl")),
        Target(
            "answers-csv",
            _seeds([b"question,source,answer\nMay I?,a,Yes\nMay I?,b,No\n"]),
            partial(_in_file, lambda p: [read_source_answers(p)], "a.csv"),
        ),
        Target(
            "labels-csv",
            _seeds([b"item,label,annotator\na,equivalent,A\n"]),
            partial(_in_file, lambda p: [read_labels(p)], "l.csv"),
        ),
        Target("decisions", _seeds([DECISIONS]), partial(_in_file, read_decisions, "d.jsonl")),
        Target(
            "harvest",
            _seeds([rows_of({"text": "May I swim?"}), CSV]),
            partial(_in_file, lambda p: read_harvest([p]), "h.jsonl"),
        ),
        Target(
            "pack",
            _seeds([path.read_bytes() for path in _packs()]),
            partial(_in_file, lambda p: [read_pack(p)], "p.toml"),
        ),
        Target(
            "replay",
            _seeds([rows_of({"contains": "x", "text": "y"}), *_recorded()]),
            partial(_in_file, lambda p: [ReplayBackend(p)], "r.jsonl"),
        ),
        Target("table-tsv", _seeds([b"a\tb\n1\t2\n"]), partial(_in_file, lambda p: list(read_tsv(p)), "t.tsv")),
        Target(
            "table-parquet",
            lambda: [_table("parquet")],
            partial(_in_file, lambda p: [read_foreign_parquet(p)], "t.parquet"),
            slow=True,
        ),
        *(Target(name, seeds, partial(_in_file, read, file)) for name, file, seeds, read in files),
        *(
            Target(f"reader-{name.replace('/', '-')}", partial(_part, parts, name), partial(_office, parts, name))
            for parts, name in office
        ),
        Target("config", _seeds(CONFIGS), _settings),
        Target("typed", _seeds(TYPED), _typed),
        Target("ledger", lambda: [_ledger()], _stored_calls),
        Target("manifest", _seeds([MANIFEST]), _manifest),
        Target("endpoint-chat", _seeds(CHATS), _chat),
        Target("endpoint-batch", _seeds(BATCH), _batch),
        Target("endpoint-other", _seeds(ENDPOINT), _endpoint),
        Target("endpoint-search", _seeds([b"<eSearchResult><Count>1</Count><Id>2</Id></eSearchResult>"]), _answer_xml),
        Target("output", _seeds(OUTPUTS), _output),
        Target("output-audit", _seeds(OUTPUTS, AUDITED), _lines_of_audit),
        *_tables(),
    ]


def _packs() -> list[Path]:
    import hoofbeat.prompts.packs as packs  # noqa: PLC0415 - only its folder

    return sorted(Path(packs.__file__).parent.glob("*.toml"))[:2]


def _recorded() -> list[bytes]:
    lines = (teaching.cases_folder().parent / "recorded.jsonl").read_bytes().splitlines(keepends=True)
    return [b"".join(lines[:3])]


if __name__ == "__main__":
    _folders()
