from __future__ import annotations

from hoofbeat.retrieval.hero.hero_signals import ExpansionMatch, Expansions, SynonymGroup, load_expansions
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


def test_the_shipped_table_is_readable_and_every_entry_can_match() -> None:
    table = load_expansions()
    for group in table.groups:
        for term in [*group.terms, *group.narrower]:
            brought = {other for each in table.added(term) for other in each.terms}
            said = set(ENGLISH.terms(term))
            new = [other for other in group.terms if not said.issuperset(ENGLISH.terms(other))]
            assert not new or brought & set(new), term
            assert term not in brought
    assert table.added("Is ibuprofen ok?")[-1].terms == ("NSAID", "anti-inflammatory")
    assert {"CMV"} <= {term for each in table.added("cytomegalovirus") for term in each.terms}
    assert len(table.fingerprint) == 12
