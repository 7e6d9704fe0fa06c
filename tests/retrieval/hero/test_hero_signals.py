from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.prompts import pack_names
from hoofbeat.prompts.packs import SynonymGroup
from hoofbeat.retrieval.hero.hero_signals import ExpansionMatch, Expansions, load_expansions
from hoofbeat.retrieval.index.analysis import ENGLISH


def test_expansion_brings_the_other_words_of_a_group_once() -> None:
    table = Expansions(
        [SynonymGroup(terms=["flu", "influenza"], narrower=["grippe"]), SynonymGroup(terms=["flu jab", "flu vaccine"])]
    )
    assert table.added("Is the FLU bad?") == (ExpansionMatch(matched="flu", terms=("influenza",)),)
    assert table.added("grippe") == (ExpansionMatch(matched="grippe", terms=("flu", "influenza")),)
    assert table.added("flu jabs now") == (ExpansionMatch(matched="flu jab", terms=("flu vaccine",)),)
    assert table.added("influenza or flu, flu") == ()
    assert table.added("") == table.added("of the") == table.added("nothing here") == ()


@pytest.mark.parametrize("pack", pack_names())
def test_the_words_of_a_pack_are_readable_and_every_entry_can_match(pack: str) -> None:
    table = load_expansions(pack)
    assert table.groups
    for group in table.groups:
        for term in [*group.terms, *group.narrower]:
            brought = {other for each in table.added(term) for other in each.terms}
            said = set(ENGLISH.terms(term))
            new = [other for other in group.terms if not said.issuperset(ENGLISH.terms(other))]
            assert not new or brought & set(new), term
            assert term not in brought
    assert len(table.fingerprint) == 12


def brought(pack: str, question: str) -> set[str]:
    return {term for each in load_expansions(pack).added(question) for term in each.terms}


def test_each_domain_has_its_own_words(tmp_path: Path) -> None:
    table = load_expansions()
    assert table.added("Is ibuprofen ok?")[-1].terms == ("NSAID", "anti-inflammatory")
    assert "CMV" in brought("terms", "cytomegalovirus")
    assert "pyrexia" in brought("transplant", "What if I have a fever?")
    assert not brought("legal", "What if I have a fever?")
    assert "security deposit" in brought("legal", "When is the deposit paid back?")
    assert {"LTBI", "TPT"} <= brought("clinicians", "Treat latent tuberculosis?")
    assert load_expansions("none").groups == []
    own = tmp_path / "words.tsv"
    own.write_text("# mine\nsnow blindness; photokeratitis\n\nFUO\tfever of unknown origin\n", encoding="utf-8")
    assert brought(str(own), "snow blindness") == {"photokeratitis"}
    assert {"photokeratitis", "tuberculosis"} <= brought(f"clinicians+{own}", "snow blindness and TB")
    own.write_text("lonely\n", encoding="utf-8")
    with pytest.raises(UsageError, match="only one word"):
        load_expansions(str(own))
    with pytest.raises(UsageError, match="can't be read"):
        load_expansions("nowhere.tsv")
