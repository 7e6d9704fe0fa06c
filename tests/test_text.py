"""Foreign text: nothing hidden acts on a reader or a terminal, and each normal form ignores what it should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.text import (
    ascii_letters,
    caseless,
    clean,
    cut,
    encodable,
    for_quote_matching,
    for_terminal,
    for_title_matching,
    for_word_matching,
    printable,
    raised,
    squeeze,
    typed,
    whole_number,
    without_accents,
)

HIDDEN = "a\x1b[31mb\u202ec\u200bd\ud800e"


def test_hidden_characters_are_shown() -> None:
    assert clean("a\u202eb\u2066c\x00d\U000e0041") == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+0000⟩d⟨U+E0041⟩"
    assert clean("one\r\ntwo\u2028three\tfour") == "one\ntwo\nthree\tfour"
    assert clean("naïve مرحبا 漢字 👩‍⚕️") == "naïve مرحبا 漢字 👩‍⚕️"


@given(st.text(st.sampled_from("ab \n\t\r\u00a0\u2003é\u00ad\x07\x1f")))
def test_squeezed_text_is_its_words_with_one_space_between(text: str) -> None:
    without = text.replace("\u00ad", "").replace("\x07", " ")
    assert squeeze(text) == " ".join(without.split())


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(), st.integers(2, 80))
def test_a_cut_fits(text: str, length: int) -> None:
    assert len(cut(text, length)) <= length
    assert "\n" not in cut(text, length)


def test_each_place_has_its_cleaning() -> None:
    assert for_terminal(HIDDEN) == "a\ufffd[31mb\ufffdc\u200bd\ufffde"
    assert printable(f" {HIDDEN}\u2028\u00a0\t.") == "a[31mbcde\n\u00a0\t."
    assert typed(" a\r\nb\rc\x00\ud800 ") == "a\nb\nc"
    assert encodable(HIDDEN) == "a\x1b[31mb\u202ec\u200bd?e"
    assert squeeze(" soft\u00adly \n\x07 squeezed ") == "softly squeezed"


@given(st.text())
def test_cleaned_text_is_safe_and_stays_so(text: str) -> None:
    for made in (printable, typed, encodable, squeeze, for_terminal):
        assert made(made(text)) == made(text)
    assert len(for_terminal(text)) == len(text)
    assert all(c in "\n\t\u00a0" or c.isprintable() for c in printable(text))


@pytest.mark.parametrize(
    ("form", "same", "other"),
    [
        (caseless, ("Wilms  tumor", "wilms TUMOR"), "wilms' tumor"),
        (for_word_matching, ("Wilms’ tumor!", "wilms tumor"), "wílms tumor"),
        (for_title_matching, ("Étude: a (rare) case", "etude a rare case"), "etude of a rare case"),
        (without_accents, ("ﬁèvre", "fievre"), "Fievre"),
        (ascii_letters, ("Größe²", "Groe2"), "groe2"),
        (lambda text: for_quote_matching(text).text, ("“10⁵  cells”", '"10^5 cells"'), '"105 cells"'),
        (lambda text: for_quote_matching(text).text, ("titre ≠ 0", "Titre =\u0338 0"), "titre = 0"),
        (lambda text: for_quote_matching(text).text, ("≯ 4 g of O\u0338l", ">\u0338 4 g of ol"), "> 4 g of ol"),
        (lambda text: for_quote_matching(text).text, ("Give 5 MU", "give 5\u00a0MU"), "give 5 mU"),
        (lambda text: for_quote_matching(text).text, ("Give 5 MG", "give 5 mg"), "give 5 kg"),
    ],
)
def test_a_normal_form_ignores_what_it_says_and_no_more(form: object, same: tuple[str, str], other: str) -> None:
    assert callable(form)
    assert form(same[0]) == form(same[1]) != form(other)


@pytest.mark.parametrize(
    ("before", "text", "read"),
    [
        ("50 × 10", "9", "⁹"),
        ("kg/m", "2", "²"),
        ("10", "-3", "⁻³"),
        ("s", "-1", "⁻¹"),
        ("weeks", "2", "2"),
        ("once per min", "2", "²"),
        ("a long text on a vitamin", "2", "2"),
        ("4", "th", "th"),
    ],
)
def test_raised_digits_are_exponents_behind_numbers_and_units(before: str, text: str, read: str) -> None:
    assert raised(before, text) == read


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("٣", 3), ("", None), ("²", None), ("-1", None), ("1.0", None), ("9" * 5000, None)],
)
def test_a_whole_number_is_read_or_none(text: str, number: int | None) -> None:
    assert whole_number(text) == number
