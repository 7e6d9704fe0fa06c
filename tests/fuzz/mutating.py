"""Mutations of an input by a seed: bytes, numbers, lines, JSON values, stretches repeated.

Most readers take text, so most mutations keep an input readable: what breaks at the first byte tests one line of code.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

MAX_BYTES = 400_000
NUMBERS = (b"0", b"-1", b"1e400", b"NaN", b"99999999999999999999", b"-0.0", b"2147483648", b"1.5", b"Infinity", b"007")
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x0b",
    b"\x0c",
    b"\x1b",
    b"\x85",
    b"\xed\xa0\x80",
    "\u2028".encode(),
    b"\r",
    b"\n\n",
    b"\t",
    b'"',
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"<",
    b">",
    b"&#0;",
    b"&#xD800;",
    b"&#x110000;",
    b"&amp;",
    b"]]>",
    b"<!--",
    b"-->",
    b"<![CDATA[",
    b"```",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"[[",
    b"../../x",
    b"/etc/passwd",
    b"=1+1",
    b"|",
    b"#",
    b"---\n",
    b"<p>",
    b"</p>",
    b"<table><tr><td>",
    b"<sec>",
    b"</sec>",
    b"<fig id=''>",
    b"<think>",
    b"</think>",
    b"**",
    b"(A)",
    b"Answer: ",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    1e308,
    10**30,
    "",
    "x",
    "\x00",
    "\ud800",
    "\ufffe",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"a": 1},
    {"": ""},
    "A" * 5000,
    ["a"] * 300,
)
Mutation = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """One to four mutations of an input; `others` are inputs to take stretches from."""
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        data = rng.choice(_MUTATIONS)(data, rng, others)[:MAX_BYTES]
    return data


def _stretch(data: bytes, rng: random.Random, longest: int = 400) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.randrange(longest + 1))


def _times(rng: random.Random) -> int:
    """How often something is repeated; thousands of times only now and then, because such inputs take long to read."""
    return rng.choice((1, 1, 1, 2, 20)) if rng.random() < 0.96 else rng.choice((50, 300, 3000))


def _flip(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 4, 30))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _insert(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(PIECES) * _times(rng) + data[at:]


def _remove(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    begin, end = _stretch(data, rng, rng.choice((4, 400, 20_000)))
    return data[:begin] + data[end:]


def _repeat(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    begin, end = _stretch(data, rng, rng.choice((3, 60, 600)))
    return data[:end] + data[begin:end] * _times(rng) + data[end:]


def _cut(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _splice(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others) if others else data
    begin, end = _stretch(other, rng, 4000)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[begin:end] + data[at + (end - begin if rng.random() < 0.5 else 0) :]


def _number(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data[:50_000]))
    if not found:
        return _insert(data, rng, others)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBERS) + data[match.end() :]


def _lines(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    rows = data.split(b"\n")
    at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(4):
        case 0:
            rows[at], rows[other] = rows[other], rows[at]
        case 1:
            del rows[at]
        case 2:
            rows.insert(other, rows[at])
        case _:
            cells = rows[at].split(b"\t" if b"\t" in rows[at] else b",")
            cells[rng.randrange(len(cells))] = rng.choice((*NUMBERS, *PIECES, b""))
            rows[at] = (b"\t" if b"\t" in rows[at] else b",").join(cells)
    return b"\n".join(rows)


def _json(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Change one value of a JSON text, or of one of its lines."""
    rows = data.split(b"\n") if data.count(b"\n") > 1 and not data.startswith((b"[\n", b"{\n")) else [data]
    at = rng.randrange(len(rows))
    try:
        value: Any = json.loads(rows[at])
    except (ValueError, RecursionError):
        return _flip(data, rng, others)
    inner, path = value, 0
    while isinstance(inner, dict | list) and inner:
        path += 1
        key: Any = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
        if not isinstance(inner[key], dict | list) or not inner[key] or rng.random() < 0.3:
            _change(inner, key, rng)
            break
        inner = inner[key]
    rows[at] = json.dumps(value if path else rng.choice(VALUES), ensure_ascii=rng.random() < 0.8).encode(
        "utf-8", "replace"
    )
    return b"\n".join(rows)


def _change(inner: Any, key: Any, rng: random.Random) -> None:
    match rng.randrange(5):
        case 0:
            del inner[key]
        case 1 if isinstance(inner, dict):
            inner[str(rng.choice(VALUES))[:20]] = inner.pop(key)
        case 2:
            inner[key] = [inner[key]] * rng.choice((1, 2, 200))
        case _:
            inner[key] = rng.choice(VALUES)


_MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _insert,
    _insert,
    _remove,
    _remove,
    _repeat,
    _cut,
    _splice,
    _splice,
    _number,
    _lines,
    _lines,
    _json,
    _json,
    _json,
)
