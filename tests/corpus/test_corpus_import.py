"""Import: what is taken, what is not and why, and that nothing gets out of the folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.corpus_import import other_files_note
from hoofbeat.corpus.roles import CASE_ROLES
from hoofbeat.errors import ArtefactError, InputError, OutputError, UsageError
from hoofbeat.findings.caveats import caveats
from hoofbeat.store import Artefact
from tests.corpus.checks import check_offsets
from tests.helpers import shared_data

TEACHING = Path(__file__).parents[2] / "src" / "hoofbeat" / "teaching"
PNG = b"\x89PNG\r\n\x1a\nnot really"


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def rejected(artefact: Artefact) -> list[tuple[str, str]]:
    lines = artefact.file("rejected.jsonl").read_text().splitlines()
    return [(row["source"], row["reason"]) for row in map(json.loads, lines)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.md").write_text("---\nid: bee\norgan: kidney\nyear: 2020\n---\n# Bee\n\nText of bee.\n")
    (folder / "a.txt").write_text("Text of a.\n")
    (folder / "sub" / "c.md").write_text("---\nid: sea\norgan: liver\ntags: [x, y]\n---\n# Sea\n\nText of sea.\n")
    return folder


def test_import_and_read_back(source: Path, tmp_path: Path) -> None:
    artefact = import_corpus([source], tmp_path / "c", facets={"year": "2024"}, title="Mine", command=["hoofbeat", "x"])
    manifest = artefact.manifest
    assert (manifest.kind, manifest.title, manifest.command) == ("corpus", "Mine", ["hoofbeat", "x"])
    assert (manifest.counts.kept, manifest.counts.rejected) == (3, 0)
    assert [ref.name for ref in manifest.inputs] == ["a.txt", "b.md", "sub/c.md"]
    assert manifest.settings == {"facets": {"year": "2024"}}
    assert artefact.verify() == []
    corpus = Corpus.open(tmp_path / "c")
    assert corpus.ids() == ("a", "bee", "sea")
    assert len(corpus) == 3
    assert "bee" in corpus
    assert [document.id for document in corpus.documents()] == ["a", "bee", "sea"]
    assert corpus.get("sea").facets == {"organ": "liver", "tags": ["x", "y"], "year": "2024"}
    assert [d.id for d in corpus.select(organ="kidney")] == ["bee"]
    assert [d.id for d in corpus.select(organ=["kidney", "liver"], year="2024")] == ["bee", "sea"]
    assert [d.id for d in corpus.select(tags="y")] == ["sea"]
    assert corpus.select(organ="heart") == []
    provenance = corpus.get("sea").provenance
    assert provenance is not None
    assert (provenance.source, provenance.reader) == ("c.md", "markdown/2")
    with pytest.raises(InputError) as caught:
        corpus.get("be")
    assert "bee" in str(caught.value.fix)


def test_the_same_files_give_the_same_bytes(source: Path, tmp_path: Path) -> None:
    import_corpus([source], tmp_path / "one")
    import_corpus([source], tmp_path / "two")
    first = folder_bytes(tmp_path / "one")
    assert first == folder_bytes(tmp_path / "two")
    import_corpus([source], tmp_path / "one")
    assert first == folder_bytes(tmp_path / "one")
    assert str(tmp_path) not in b"".join(first.values()).decode()


def test_bad_files_and_duplicates_are_listed(source: Path, tmp_path: Path) -> None:
    (source / "broken.xml").write_text("<article>")
    (source / "copy.md").write_bytes((source / "b.md").read_bytes())
    (source / "other.md").write_text("---\nid: bee\n---\nAnother text.")
    (source / "same.md").write_text("---\nid: bee\nnotice: later\n---\n# Bee\n\nText of bee.")
    (source / "nothing.xml").write_text("<article><front/></article>")
    (source / "picture.png").write_bytes(PNG)
    artefact = import_corpus([source, source / "picture.png"], tmp_path / "c")
    reasons = dict(rejected(artefact))
    assert reasons["broken.xml"].startswith("not well-formed XML: ")
    assert reasons["copy.md"] == "same content as b.md"
    assert reasons["other.md"] == "id already used by b.md: bee"
    assert reasons["same.md"] == "same content as b.md"
    assert reasons["nothing.xml"] == "no text: nothing"
    assert reasons["picture.png"].startswith("Hoofbeat can't read this kind of file")
    assert artefact.manifest.counts.kept == 3
    assert artefact.manifest.counts.reasons == {
        "id already used": 1,
        "Hoofbeat can't read this kind of file": 1,
        "no text": 1,
        "not well-formed XML": 1,
        "same content": 2,
    }


def test_files_of_one_name_in_several_folders_are_said(tmp_path: Path) -> None:
    """The handbook of the second institution was missing from an audit without a word."""
    for name in ("larch", "birch"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "handbook.md").write_text(f"# {name}\n\nText of {name}.")
    [told] = caveats(import_corpus([tmp_path / "in"], tmp_path / "c").manifest)
    assert told.startswith("1 document was left out, because one in another folder has the same id.")
    (tmp_path / "ids.csv").write_text("file,id\nlarch/handbook.md,larch\nbirch/handbook.md,birch\n")
    both = import_corpus([tmp_path / "in"], tmp_path / "both", facets_from=tmp_path / "ids.csv")
    assert both.manifest.counts.kept == 2
    assert caveats(both.manifest) == []


def test_files_of_other_formats_are_counted(tmp_path: Path) -> None:
    """A folder with a .doc and a spreadsheet beside its Markdown lost them without a word."""
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    (folder / "a.md").write_text("# Care\n\nText.")
    for name in ("b.doc", "more/c.xlsx", "more/d.DOC", "figure.png", ".hidden.doc"):
        (folder / name).write_bytes(b"x")
    made = import_corpus([folder], tmp_path / "c")
    assert made.manifest.metrics["other_files"] == {".doc": 2, ".xlsx": 1}
    assert "3 files of other formats left out (2 .doc, 1 .xlsx)" in other_files_note(made.manifest)
    assert other_files_note(import_corpus([folder / "a.md"], tmp_path / "d").manifest) == ""


def test_nothing_to_import_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match="nothing to import"):
        import_corpus([tmp_path / "in"], tmp_path / "c")
    (tmp_path / "in" / "x.xml").write_text("<article>")
    with pytest.raises(InputError, match=r"nothing could be imported: x\.xml: not well-formed"):
        import_corpus([tmp_path / "in"], tmp_path / "c")
    with pytest.raises(InputError, match="no such file"):
        import_corpus([tmp_path / "none"], tmp_path / "c")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_foreign_folder_is_left_alone(source: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError):
        import_corpus([source], source / "sub")
    with pytest.raises(ArtefactError):
        Corpus.open(source)


def test_images_beside_a_document_are_copied(source: Path, tmp_path: Path) -> None:
    (source / "figures").mkdir()
    (source / "figures" / "a b.png").write_bytes(PNG)
    (source / "scan.jpg").write_bytes(PNG + b"2")
    (source / "fig.xml").write_text(
        "<article xmlns:xlink='x'><body><fig><caption><p>C</p></caption><graphic xlink:href='scan'/>"
        "<graphic xlink:href='nowhere/a b.png'/><graphic xlink:href='gone.png'/></fig></body></article>"
    )
    artefact = import_corpus([source], tmp_path / "c")
    figure = Corpus(artefact).get("fig").figures[0]
    assert figure.files == ("images/fig/scan.jpg", "images/fig/a_b.png")
    assert artefact.file("images/fig/a_b.png").read_bytes() == PNG
    assert artefact.manifest.metrics == {"images": 2, "images_missing": 1}


@pytest.mark.parametrize(
    "reference",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        "../secret.png",
        "file:///etc/passwd",
        "..\\secret.png",
        "%2e%2e/secret.png",
        "link.png",
        "secret.csv",
        ".hidden.png",
        "x" * 5000 + ".png",
        "é" * 150 + ".png",
        "",
    ],
)
def test_figure_references_never_escape(tmp_path: Path, reference: str) -> None:
    inner = tmp_path / "in"
    inner.mkdir()
    for name in ("secret.png", "secret.csv"):
        (tmp_path / name).write_bytes(b"SECRET")
    (inner / "secret.csv").write_bytes(b"SECRET")
    (inner / ".hidden.png").write_bytes(b"SECRET")
    (inner / "link.png").symlink_to(tmp_path / "secret.png")
    (inner / "d.xml").write_text(
        "<article xmlns:xlink='x'><front><article-meta><article-id pub-id-type='doi'>../../out</article-id>"
        f"</article-meta></front><body><p>T</p><fig><graphic xlink:href='{reference}'/></fig></body></article>"
    )
    before = set(tmp_path.rglob("*"))
    artefact = import_corpus([inner], tmp_path / "c")
    document = next(Corpus(artefact).documents())
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", document.id)
    assert document.figures[0].files == ()
    assert all(b"SECRET" not in data for data in folder_bytes(artefact.path).values())
    assert {p for p in set(tmp_path.rglob("*")) - before if (tmp_path / "c") not in (p, *p.parents)} == set()


def test_links_out_of_a_folder_are_not_followed(source: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "o.md").write_text("Outside.")
    (source / "o.md").symlink_to(outside / "o.md")
    (source / "folder").symlink_to(outside)
    (source / "loop").symlink_to(source)
    assert Corpus(import_corpus([source], tmp_path / "c")).ids() == ("a", "bee", "sea")


def test_teaching_material(tmp_path: Path) -> None:
    cases, handbooks = TEACHING / "cases", TEACHING / "handbooks"
    if not list(cases.glob("*.xml")) or not list(handbooks.glob("*.md")):
        pytest.skip("the teaching material is not here")
    artefact = import_corpus([cases], tmp_path / "cases")
    assert rejected(artefact) == []
    for document in Corpus(artefact).documents():
        assert document.kind == "case-report"
        assert any(section.role in CASE_ROLES for section in document.sections)
        check_offsets(document)
    artefact = import_corpus(sorted(handbooks.glob("hb-*.md")), tmp_path / "handbooks")
    assert rejected(artefact) == []
    assert len(Corpus(artefact)) == len(list(handbooks.glob("hb-*.md")))


def test_pictures_in_pdfs_come_along(tmp_path: Path) -> None:
    artefact = import_corpus(sorted(TEACHING.rglob("*.pdf")), tmp_path / "c")
    files = [file for document in Corpus(artefact) for figure in document.figures for file in figure.files]
    assert len(files) == artefact.manifest.metrics["images"] == 8
    assert all(artefact.file(file).read_bytes().startswith(b"\x89PNG") for file in files)
    assert not (tmp_path / "c" / ".work").exists()


def test_real_articles(tmp_path: Path) -> None:
    artefact = import_corpus([shared_data("jats")], tmp_path / "jats")
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (36, 0)
    corpus = Corpus(artefact)
    for id in corpus.ids():
        assert corpus.get(id).id == id


@pytest.mark.parametrize("workers", [1, 2])
def test_a_limit_gives_the_first_documents(tmp_path: Path, workers: int) -> None:
    first = [{"_id": f"a{n}", "text": f"Invented text {n} of the first file."} for n in range(3)]
    second = [*first[1:], *({"_id": f"b{n}", "text": f"Invented text {n} of the second file."} for n in range(50))]
    for name, rows in (("1.jsonl", first), ("2.jsonl", second)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "3.txt").write_text("A last invented document.", "utf-8")
    files = sorted(tmp_path.glob("?.*"))
    whole = Corpus(import_corpus(files, tmp_path / "whole", workers=workers))
    for limit in (1, 3, 5, 53, 54, 100):
        part = Corpus(import_corpus(files, tmp_path / f"part-{limit}", limit=limit, workers=workers))
        assert list(part) == list(whole)[:limit]
        assert part.artefact.manifest.settings["limit"] == limit
    with pytest.raises(UsageError, match="the number of documents can't be 0"):
        import_corpus(files, tmp_path / "none", limit=0)
