"""Promotion: reports that advertise a product, told by what they say, with the places that say it.

Some case reports recommend a product on its maker's behalf. The score adds up features of advertising (praise, calls to
order, a sponsor who paid or wrote, market talk, a trademarked name in the title and repeated throughout); the words and
weights are data (`data/promotional.toml`). It is a sieve for a person to look at, not a verdict on authors: the spans
are given with it.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache
from importlib import resources
from typing import Any

from msgspec import Struct

from hoofbeat.corpus.filter import Clause, CorpusFilter, FilterStep, FilterVerdict, per_document
from hoofbeat.records import Document

MAX_DETAILS = 5

_MARKED = re.compile(r"((?:[A-Z0-9][\w+-]*[ -]){0,2}[A-Z0-9][\w+-]*)\s?[®™]")


class PromotionFinding(Struct, frozen=True):
    """A place that reads like advertising; `start` and `end` point into the text (-1 for the title)."""

    feature: str
    start: int
    end: int
    quote: str


class PromotionScore(Struct, frozen=True):
    """How much a document reads like advertising, and what made it so."""

    score: float
    findings: tuple[PromotionFinding, ...]


class _Feature(Struct, frozen=True):
    name: str
    weight: float
    max_count: int
    pattern: re.Pattern[str]


class _Table(Struct, frozen=True):
    threshold: float
    features: tuple[_Feature, ...]
    title_weight: float
    mention_weight: float
    mentions_free: int
    max_mentions: int
    sponsor_weight: float


@cache
def _table() -> _Table:
    raw = resources.files("hoofbeat.corpus").joinpath("data/promotional.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(raw)
    features = tuple(
        _Feature(each["name"], each["weight"], each["max_count"], re.compile(each["pattern"].strip(), re.X))
        for each in data["feature"]
    )
    return _Table(threshold=data["threshold"], features=features, **data["product"])


def promotion_score(document: Document) -> PromotionScore:
    """The score of a document with the places it comes from, in their order."""
    table = _table()
    text = document.text
    lowered = _lowered(text)
    total = 0.0
    findings: list[PromotionFinding] = []
    for feature in table.features:
        found = [(match.start(), match.end()) for match in feature.pattern.finditer(lowered)]
        total += feature.weight * min(feature.max_count, len(found))
        findings += [PromotionFinding(feature.name, start, end, text[start:end]) for start, end in found]
    product = _product(document)
    if product:
        worth, places = _product_findings(product, document, table)
        total += worth
        findings += places
    findings.sort(key=lambda finding: (finding.start, finding.end, finding.feature))
    return PromotionScore(round(total, 3), tuple(findings))


def _product_findings(product: str, document: Document, table: _Table) -> tuple[float, list[PromotionFinding]]:
    """What a product's name adds: repeated throughout, in the title, and as the one who paid."""
    name = re.escape(product)
    mention = re.compile(rf"(?<!\w){name}(?!\w)")
    mentions = [PromotionFinding("product", *each.span(), product) for each in mention.finditer(document.text)]
    counted = min(table.max_mentions, max(0, len(mentions) - table.mentions_free))
    findings = mentions if counted else []
    total = table.mention_weight * counted
    if mention.search(document.title):
        total += table.title_weight
        findings.append(PromotionFinding("product in title", -1, -1, product))
    paid = re.search(rf"\b(?:supported|funded|sponsored|financed|paid for) by (?:the )?{name}(?!\w)", document.text)
    if paid:
        total += table.sponsor_weight
        findings.append(PromotionFinding("product as sponsor", *paid.span(), paid.group()))
    return total, findings


class _Promotional(CorpusFilter):
    name = "promotional"
    summary = "advertising reports (usually written: not promotional)"
    example = "not promotional"

    def build(self, clause: Clause) -> FilterStep:
        """Keeps what reaches the threshold; use it with `not`."""
        if clause.operator or len(clause.arguments) > 1:
            clause.fail(
                clause.arguments[1].at if len(clause.arguments) > 1 else clause.operator_at,
                "promotional takes one number, its threshold",
                f"write {self.example}(3)",
            )
        given = clause.number(clause.arguments[0], low=0.5) if clause.arguments else None
        threshold = _table().threshold if given is None else given

        def judge(document: Document) -> FilterVerdict:
            found = promotion_score(document)
            details = f"score {found.score:g}{_quoted(found)}"
            return (
                FilterVerdict(details=details)
                if found.score >= threshold
                else FilterVerdict("not promotional", details)
            )

        line = "promotional" if given is None else f"promotional({given:g})"
        return per_document("promotional", line, judge, {"threshold": threshold})


FILTER = _Promotional()


def _product(document: Document) -> str:
    """The name with a trademark sign that the document speaks of most."""
    if not any(sign in document.text or sign in document.title for sign in "®™"):
        return ""
    names = Counter(match[1].strip() for match in _MARKED.finditer(f"{document.title}\n{document.text}"))
    return min(names, key=lambda name: (-names[name], name)) if names else ""


def _lowered(text: str) -> str:
    """The text in lower case with every character in its place."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(each.lower() if len(each.lower()) == 1 else each for each in text)


def _quoted(found: PromotionScore) -> str:
    """Some of the places, each feature first once."""
    chosen: list[PromotionFinding] = []
    for finding in (*_first_of_each(found.findings), *found.findings):
        if finding not in chosen and finding.quote not in {each.quote for each in chosen}:
            chosen.append(finding)
    listed = [f"{each.feature} “{each.quote}”" + (f" at {each.start}" if each.start >= 0 else "") for each in chosen]
    return (": " + "; ".join(listed[:MAX_DETAILS])) if listed else ""


def _first_of_each(findings: tuple[PromotionFinding, ...]) -> list[PromotionFinding]:
    return list({finding.feature: finding for finding in reversed(findings)}.values())[::-1]
