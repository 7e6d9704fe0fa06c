"""A question put together from the rows that speak of it, and what a predicted value means for it.

Options and gold answer may stand on one model's rows only, and models may have been shown the options in different
orders: a row's letters are those of its own options where it has them, else those of the question.
"""

from __future__ import annotations

import re
from string import ascii_uppercase

import msgspec

from hoofbeat.answering.prediction_rows import Row, bad
from hoofbeat.answering.reading import Reading, read_choice
from hoofbeat.records import Question
from hoofbeat.text import caseless

__all__ = ["Item", "Lettered", "options_of"]

Lettered = dict[str, str]
"""Letter (or whatever the file calls an option) to the option's text, in the order shown."""

_COLUMNS = (tuple(ascii_uppercase), tuple(ascii_uppercase.lower()), ("opa", "opb", "opc", "opd", "ope"))
_DRESSED = re.compile(r"^[\s(\[\"'*]*(\w{1,3})[\s)\].:\"'*]*$")


def options_of(row: Row, field: str) -> Lettered:
    """The options on a row: an object of letters, a list, or a column each; nothing where the row has none."""
    value = row.values.get(field) if field else None
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError) as err:
            raise bad(row, "the options should be an object or a list and are text") from err
    if value is None:
        value = _from_columns(row) if not field else None
    if value is None:
        return {}
    if isinstance(value, list):
        if len(value) > len(ascii_uppercase):
            raise bad(row, f"{len(value)} options are more than there are letters")
        value = dict(zip(ascii_uppercase, value, strict=False))
    if not isinstance(value, dict):
        raise bad(row, "the options should be an object or a list")
    shown = {str(key).strip(): text for key, text in value.items() if text is not None}
    if any(isinstance(text, bool) or not isinstance(text, str | int | float) for text in shown.values()):
        raise bad(row, "an option should be text")
    keys = sorted(shown, key=lambda key: (len(key), key)) if all(len(key) <= 2 for key in shown) else list(shown)
    return _distinct({key: str(shown[key]).strip() for key in keys})


def _from_columns(row: Row) -> dict[str, object] | None:
    for names in _COLUMNS:
        cells = [row.values[name] for name in names if name in row.values]
        if len(cells) > 1:
            return dict(zip(ascii_uppercase, cells, strict=False))
    return None


def _distinct(shown: Lettered) -> Lettered:
    """The options, with the letter before those whose texts are the same: a choice between them must stay one."""
    folded = [caseless(text) for text in shown.values()]
    return {
        key: f"{key}. {text}" if folded.count(plain) > 1 else text
        for (key, text), plain in zip(shown.items(), folded, strict=True)
    }


class Item:
    """A question while its rows are gathered; `question` is there once it is settled."""

    def __init__(self, name: str, dataset: str = "", known: Question | None = None) -> None:
        self.name = name
        self.dataset = dataset
        self.known = known
        self.text = ""
        self.options: Lettered = {}
        self.rows = 0
        self.question = known or Question(id=name, text="")
        self._golds: dict[tuple[object, tuple[tuple[str, str], ...]], Row] = {}
        self._letters: set[str] = set()
        self.lettered = False
        if known is not None:
            self.text = known.text
            self.options = dict(zip(ascii_uppercase, known.options, strict=False))

    def learn(self, row: Row, text: str, shown: Lettered, gold: object, predicted: object) -> None:
        """Take in what a row says of the question; what contradicts an earlier row is refused."""
        self.rows += 1
        if text and self.known is None:
            if self.text and self.text != text:
                raise bad(row, f"the question {self.name!r} has another text on an earlier line", _IDS)
            self.text = text
        if shown and not self.options and self.known is None:
            self.options = shown
        elif shown and sorted(map(caseless, shown.values())) != sorted(map(caseless, self.options.values())):
            raise bad(row, f"the question {self.name!r} has other options elsewhere", _IDS)
        if gold is not None and self.known is None:
            self._golds.setdefault((_hashable(row, gold), tuple(shown.items())), row)
        if isinstance(predicted, str) and predicted.strip():
            self._letters.add(_letter(predicted))

    def settle(self, count_from: int | None) -> None:
        """Make the question. Where no row has its options and its gold answer is a letter, letters are compared.

        Its options stay unknown then: how many there were can't be told from the letters that occur.
        """
        if self.known is not None:
            return
        golds = {_letter(gold) if isinstance(gold, str) else "" for gold, _ in self._golds}
        self.lettered = not self.options and "" not in (golds or self._letters or {""})
        answer = ""
        for (gold, shown), row in self._golds.items():
            found = self._gold(gold, dict(shown), count_from, row)
            if answer and found != answer:
                raise bad(row, f"the question {self.name!r} has another gold answer on an earlier line", _IDS)
            answer = found
        facets: dict[str, str | list[str]] = {"dataset": self.dataset} if self.dataset else {}
        options = tuple(self.options.values())
        self.question = Question(id=self.name, text=self.text, answer=answer, options=options, facets=facets)

    def _gold(self, value: object, shown: Lettered, count_from: int | None, row: Row) -> str:
        if self.lettered:
            return _letter(str(value))
        if not self.options:
            return str(value)
        found = self.chosen(value, shown, count_from)
        if found.choice is None:
            raise bad(row, f"the gold answer of {self.name!r} is none of its options: {found.why}", _GOLD)
        return found.choice

    def shown(self, row_options: Lettered) -> Lettered:
        """The options in the order of the row, in the question's words."""
        own = {caseless(text): text for text in self.options.values()}
        return {key: own[caseless(text)] for key, text in row_options.items()} if row_options else self.options

    def chosen(self, value: object, row_options: Lettered, count_from: int | None) -> Reading:
        """The option that a predicted (or gold) value stands for; its letter where the options are not known."""
        shown = {letter: letter for letter in ascii_uppercase} if self.lettered else self.shown(row_options)
        texts = list(shown.values())
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list):
            return Reading(None, "ambiguous", "several options are predicted")
        if isinstance(value, bool) or not isinstance(value, str | int):
            return Reading(None, "none", "what is predicted is neither letter nor text")
        said = str(value).strip()
        if not said:
            return Reading(None, "none", "nothing is predicted")
        dressed = _DRESSED.match(said)
        for key in (said, said.upper(), dressed[1] if dressed else "", dressed[1].upper() if dressed else ""):
            if key in shown:
                return Reading(shown[key], "only-letter")
        if dressed and dressed[1].isdigit() and dressed[1] not in texts:
            return _numbered(int(dressed[1]), texts, count_from)
        return read_choice(said, texts)


def _letter(value: str) -> str:
    """The letter that a value is, be it in brackets or with a full stop; empty where it is none."""
    dressed = _DRESSED.match(value)
    letter = dressed[1].upper() if dressed else ""
    return letter if len(letter) == 1 and letter in ascii_uppercase else ""


def _numbered(number: int, texts: list[str], count_from: int | None) -> Reading:
    if count_from is None:
        return Reading(None, "ambiguous", "a number may count from 0 or from 1")
    place = number - count_from
    if not 0 <= place < len(texts):
        return Reading(None, "none", "the number is none of the options'")
    return Reading(texts[place], "number")


def _hashable(row: Row, gold: object) -> object:
    if isinstance(gold, str | int) and not isinstance(gold, bool):
        return gold
    raise bad(row, "the gold answer should be a letter, a number or text")


_IDS = "give different questions different ids (--dataset FIELD keeps data sets apart)"
_GOLD = "correct that line; numbers need --count-from 0 or 1"
