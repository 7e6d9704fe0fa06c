"""Canaries: found where they stand, made from content, and told apart from guesses."""

from __future__ import annotations

import re
from pathlib import Path

from hoofbeat.leakage import canaries
from hoofbeat.leakage.canaries import (
    canaries_in_file,
    canaries_in_text,
    canary_line,
    known_canaries,
    make_canary,
    matched_digits,
)

GUID = "0f0e0d0c-0b0a-4908-8706-050403020100"


def test_a_planted_canary_is_found_in_a_text_and_in_a_file(tmp_path: Path) -> None:
    assert not canaries_in_text(f"A device with the identifier {GUID} was implanted.", "d1")
    [found] = canaries_in_text(f"Case one.\n\nmine-benchmark-canary GUID {GUID.upper()}\n", "d2")
    assert (found.place, found.guid, found.name) == ("d2", GUID, "")
    file = tmp_path / "questions.jsonl"
    file.write_text(f'{{"canary": "{GUID}"}}\n{{"text": "canary string: {GUID}"}}\n', encoding="utf-8")
    assert [each.guid for each in canaries_in_file(file, "file questions.jsonl")] == [GUID]


def test_known_canaries_are_named() -> None:
    for canary in known_canaries():
        [found] = canaries_in_text(canary_line(canary), "here")
        assert (found.guid, found.name) == (canary.guid, canary.name)


def test_a_made_canary_follows_from_the_content() -> None:
    one = make_canary("content a")
    assert one == make_canary("content a")
    assert one.guid != make_canary("content b").guid
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one.guid)
    assert len(one.rest.replace("-", "")) == 16
    assert canaries_in_text(canary_line(one), "here")[0].guid == one.guid


def test_digits_count_from_the_beginning_of_the_hidden_half() -> None:
    canary = make_canary("x")
    assert matched_digits(canary, canary.rest) == 16
    assert matched_digits(canary, f"The GUID is {canary.guid.upper()}.") == 16
    assert matched_digits(canary, canary.rest.replace("-", "")[:6]) == 6
    assert matched_digits(canary, canary.first) == 0
    assert matched_digits(canary, "I can't know that; a bad decade faded.") == 0


def test_the_data_file_itself_holds_no_canary() -> None:
    file = Path(str(canaries.__file__)).parent / "data" / "canaries.toml"
    assert known_canaries()
    assert canaries_in_file(file, "canaries.toml") == []
    assert all(canary.guid not in file.read_text(encoding="utf-8") for canary in known_canaries())
