"""Domain packs from files of one's own: read as the shipped ones are, and refused with what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.prompts import load_pack, pack_names
from hoofbeat.prompts.packs import Pack, decode_pack, encode_pack, read_pack
from hoofbeat.registry import PLUGINS_VARIABLE, Registry

OWN = """
name = "bylaws"
title = "Bylaws of towns"
reader = "a dog owner"
source_word = "bylaw"
not_addressed = "NOT SAID: this bylaw is silent."
group_facet = "subject"
source_facet = "town"
significance_levels = ["minor", "major"]
significance_meaning = "minor: nobody would mind; major: a fine is due."
topics = ["leash", "parks"]

[[labels]]
name = "Silent"
definition = "One says nothing."

[[labels]]
name = "Alike"
definition = "They say the same."

[[labels]]
name = "Clashing"
definition = "Both can't be kept."
diverges = true
topic = true
significance = true
"""


def written(folder: Path, text: str = OWN, name: str = "my.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_pack_of_ones_own_is_read_by_its_path(tmp_path: Path) -> None:
    path = written(tmp_path)
    pack = load_pack(str(path))
    assert pack == read_pack(path)
    assert (pack.name, pack.absent, pack.consistent) == ("bylaws", "Silent", "Alike")
    assert [label.name for label in pack.judged] == ["Alike", "Clashing"]
    assert pack.topics == ["leash", "parks"]


def test_a_pack_that_a_plugin_brings_is_read_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS_VARIABLE, "")
    found = Registry()
    monkeypatch.setattr("hoofbeat.prompts.packs.registry", found)
    path = written(tmp_path)
    assert found.load_file(path).extensions == ("pack bylaws",)
    assert load_pack("bylaws") == load_pack(str(path))
    assert pack_names() == ["bylaws", "clinicians", "education", "guidelines", "legal", "transplant"]
    with pytest.raises(InputError, match="already used by a pack of Hoofbeat"):
        found.load_file(written(tmp_path, OWN.replace("bylaws", "legal"), "mine.toml"))


def test_a_changed_file_is_another_pack(tmp_path: Path) -> None:
    before = load_pack(str(written(tmp_path)))
    after = load_pack(str(written(tmp_path, OWN.replace("a dog owner", "a cat owner"))))
    assert after.reader == "a cat owner"
    assert before.fingerprint != after.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('name = "bylaws"', 'name = "By Laws"', "name 'By Laws'"),
        ('name = "bylaws"', 'name = "legal"', "is already used by a pack"),
        ('title = "Bylaws of towns"', "", "missing required field `title`"),
        ('title = "Bylaws of towns"', "title = 5", r"Expected `str`, got `int`.*title"),
        ('title = "Bylaws of towns"', 'title = "Bylaws of towns"\ncolour = "red"', "unknown field `colour`"),
        ('title = "Bylaws of towns"', 'title = "Bylaws', "is not valid TOML"),
        ('title = "Bylaws of towns"', 'title = "x"\nfingerprint = "0"', "must not set its fingerprint"),
        ('reader = "a dog owner"', 'reader = " "', "reader is empty"),
        ('source_word = "bylaw"', 'source_word = "by\\nlaw"', "source_word is empty or has several lines"),
        ('"NOT SAID: this bylaw is silent."', '"No. It is silent."', "not_addressed begins with 'No'"),
        ('title = "Bylaws of towns"', 'title = "x"\nanswer_details = ["colour"]', "Invalid enum value 'colour'"),
        ('["minor", "major"]', '["none", "minor", "major"]', "has 'none'"),
        ('["minor", "major"]', '["minor", "Minor"]', "significance_levels has an empty or repeated level"),
        ('["minor", "major"]', "[]", "there are no significance_levels"),
        ("major: a fine is due.", "else a fine is due.", "does not say what 'major' means"),
        ('"leash", "parks"', '"leash", "leash"', "topics has an empty or repeated topic"),
        ('name = "Clashing"', 'name = "alike"', "two labels have the same name"),
        ('definition = "They say the same."', 'definition = ""', "'Alike' has no name or no definition"),
        ("diverges = true", "", "no label diverges"),
        ("diverges = true", "diverge = true", "unknown field `diverge`"),
        ('definition = "They say the same."', 'definition = "x"\ntopic = true', "'Alike' means agreement"),
        ('definition = "One says nothing."', 'definition = "x"\ndiverges = true', "'Silent' means silence"),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_what_to_do(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert OWN.count(old) == 1
    path = written(tmp_path, OWN.replace(old, new))
    with pytest.raises(InputError, match=what) as caught:
        load_pack(str(path))
    assert caught.value.where == str(path)
    assert caught.value.fix


def test_two_labels_are_too_few(tmp_path: Path) -> None:
    path = written(tmp_path, OWN[: OWN.rindex("[[labels]]")])
    with pytest.raises(InputError, match="2 labels"):
        load_pack(str(path))


def test_a_file_that_is_not_there_not_text_or_huge_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read: No such file"):
        load_pack(str(tmp_path / "no.toml"))
    with pytest.raises(InputError, match="can't be read"):
        read_pack(tmp_path)
    (tmp_path / "latin.toml").write_bytes(OWN.replace("dog", "d\xf6g").encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        load_pack(str(tmp_path / "latin.toml"))
    with pytest.raises(InputError, match="too large"):
        load_pack(str(written(tmp_path, OWN + "#" * 200_001)))


@pytest.mark.parametrize("name", ["law", "my", "", "../legal", "legal.md"])
def test_an_unknown_name_is_answered_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="there is no pack") as caught:
        load_pack(name)
    assert caught.value.fix is not None
    assert all(known in caught.value.fix for known in pack_names())


@pytest.mark.parametrize("name", pack_names())
def test_shipped_packs_have_five_ordered_labels_and_tell_their_domain(name: str) -> None:
    pack = load_pack(name)
    more = ["Insufficient"] if name == "clinicians" else []
    assert [label.name for label in pack.labels] == [
        "Absent",
        "Consistent",
        "Complementary",
        *more,
        "Divergent",
        "Contradictory",
    ]
    assert [label.name for label in pack.labels if label.diverges] == [*more, "Divergent", "Contradictory"]
    assert pack.source_word in pack.not_addressed
    assert pack.topics
    others = [load_pack(other) for other in pack_names() if other != name]
    assert all(pack.reader != other.reader and pack.title != other.title for other in others)
    assert pack.expansions


def test_a_pack_takes_from_its_base_what_it_does_not_give(tmp_path: Path) -> None:
    base = load_pack("clinicians")
    text = 'name = "tb"\nbase = "clinicians"\n[[expansions]]\nterms = ["DOT", "directly observed treatment"]\n'
    pack = load_pack(str(written(tmp_path, text)))
    assert (pack.labels, pack.reader, pack.prompts) == (base.labels, base.reader, base.prompts)
    assert [group.terms[0] for group in pack.expansions] == ["DOT", *(group.terms[0] for group in base.expansions)]
    assert pack.fingerprint not in (base.fingerprint, "")
    with pytest.raises(InputError, match="its base 'nobody' does not exist"):
        load_pack(str(written(tmp_path, 'name = "tb"\nbase = "nobody"\n')))


def test_labels_of_ones_own_do_not_get_the_order_of_decision_of_the_base(tmp_path: Path) -> None:
    labels = OWN[OWN.index("[[labels]]") :]
    mine = 'name = "tb"\nbase = "clinicians"\n'
    assert load_pack(str(written(tmp_path, mine))).decision == load_pack("clinicians").decision != ""
    pack = load_pack(str(written(tmp_path, mine + labels.replace("significance = true", ""))))
    assert (pack.decision, pack.answer_details) == ("", ["strength", "date"])


@pytest.mark.parametrize("name", ["clinicians", "guidelines", "transplant"])
def test_packs_on_care_tell_a_judge_in_which_order_to_decide_with_an_example_each(name: str) -> None:
    pack = load_pack(name)
    order = ["Absent", "Insufficient", "Contradictory", "Divergent", "Complementary", "Consistent"]
    expected = [each for each in order if each in [label.name for label in pack.labels]]
    places = [re.search(rf"(?:\? |is ){each}[.:]", pack.decision) for each in expected]
    assert all(places)
    starts = [found.start() for found in places if found]
    assert starts == sorted(starts)
    assert all('A: "' in label.example and 'B: "' in label.example for label in pack.labels)
    assert len({label.example for label in pack.labels}) == len(pack.labels)


def test_a_difference_of_strength_alone_is_complementary_for_clinicians() -> None:
    pack = load_pack("clinicians")
    text = " ".join(pack.decision.split())
    assert "difference of strength alone is Complementary: a strong recommendation beside a conditional or weak" in text
    assert (
        'So is "recommends against" beside "does not recommend routinely", unless the patient of the question' in text
    )
    assert "with another strength? Complementary." in text
    assert "Not routinely" in pack.label("Complementary").example
    assert "strength" not in pack.label("Divergent").definition + pack.significance_meaning
    assert "one side only advises against some of what is asked and the other recommends some of it" in text
    assert "not given or not recorded on one side is no difference" in text
    assert load_pack("guidelines").answer_details == load_pack("transplant").answer_details == []


def test_a_pack_words_prompts_of_an_audit_itself(tmp_path: Path) -> None:
    mine = OWN.replace("[[labels]]", '[prompts]\nabsence = "Say yes or no. {{ question }}"\n\n[[labels]]', 1)
    pack, plain = load_pack(str(written(tmp_path, mine))), load_pack(str(written(tmp_path)))
    assert pack.prompt("absence").system == "Say yes or no. {{ question }}"
    assert pack.prompt("absence").schema == plain.prompt("absence").schema
    assert pack.prompt("absence").label != plain.prompt("absence").label
    assert pack.prompt("compare").label == plain.prompt("compare").label
    for old, new, what in (
        ("absence =", "hyde =", "prompts has 'hyde'"),
        ("{{ question }}", "{{ weather }}", "has the unknown variable 'weather'"),
        ("{{ question }}", "{{ question", "is not a valid template"),
    ):
        with pytest.raises(InputError, match=what):
            load_pack(str(written(tmp_path, mine.replace(old, new))))


def test_a_pack_travels_in_an_audits_folder(tmp_path: Path) -> None:
    for pack in (load_pack("legal"), load_pack(str(written(tmp_path)))):
        assert decode_pack(encode_pack(pack), "pack.json") == pack
    new = ("subtopics", "group_words", "expansions", "prompts", "base", "decision", "answer_details")
    old = {name: value for name, value in msgspec.to_builtins(load_pack("legal")).items() if name not in new}
    old["labels"] = [{name: value for name, value in each.items() if name != "example"} for each in old["labels"]]
    read = decode_pack(msgspec.json.encode(old), "pack.json")  # an older audit's
    assert (read.labels, read.decision, read.answer_details) == (load_pack("legal").labels, "", [])
    with pytest.raises(InputError, match="the domain pack is wrong"):
        decode_pack(b"{}", "pack.json")
    broken = msgspec.structs.replace(load_pack("legal"), labels=load_pack("legal").labels[:2])
    with pytest.raises(InputError, match="2 labels"):
        decode_pack(encode_pack(broken), "pack.json")


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "packs.md").read_text(encoding="utf-8")


def test_the_pack_of_the_docs_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    pack = load_pack(str(written(tmp_path, text)))
    assert [label.name for label in pack.judged] == ["Alike", "Stricter", "Clashing"]


def test_the_docs_name_every_field_and_every_pack() -> None:
    fields = re.findall(r"^\| `(\w+)` \| ", PAGE.split("\n## Writing one\n")[1], re.MULTILINE)
    assert sorted(fields) == sorted(set(Pack.__struct_fields__) - {"fingerprint"})
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| `(\w+)` \| `(\w+)` \|$", PAGE, re.MULTILINE)
    packs = [load_pack(name) for name, *_ in rows]
    assert sorted(pack.name for pack in packs) == pack_names()
    assert [(pack.name, pack.reader, pack.group_facet, pack.source_facet) for pack in packs] == rows


def test_the_code_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "packs.md", "exec"), {})
    assert (tmp_path / "guides" / "documents.jsonl").is_file()
