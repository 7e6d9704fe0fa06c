"""Licence: many wordings and addresses, few families (`CC0`, `CC BY`, `CC BY-SA`, `CC BY-NC`, … `unknown`)."""

from __future__ import annotations

import re

from hoofbeat.corpus.filter import KEPT, Clause, CorpusFilter, FilterStep, FilterVerdict, per_document
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

FAMILIES = (
    "CC0", "CC BY", "CC BY-SA", "CC BY-ND", "CC BY-NC", "CC BY-NC-SA", "CC BY-NC-ND", "public domain", "Apache-2.0",
    "unknown",
)  # fmt: skip

_ADDRESS = re.compile(r"creativecommons\.org/(?:licen[sc]es/(by(?:-(?:nc|nd|sa))*)|publicdomain/(zero|mark))", re.I)
_CC_CODE = re.compile(r"\bcc[\s_-]*(by(?:[\s_-]*(?:nc|nd|sa)\b)*)(?![a-z])", re.IGNORECASE)
_CC0 = re.compile(r"\bcc[\s_-]*(0|zero)\b|\bcreative commons zero\b|public domain dedication", re.IGNORECASE)
_ATTRIBUTION = re.compile(r"\bcreative commons (attribution|by\b)|\bCCAL\b", re.IGNORECASE)
_PARTS = (
    ("NC", re.compile(r"non[\s-]?commercial|\bnc\b", re.IGNORECASE)),
    ("ND", re.compile(r"no[\s-]?deriv|\bnd\b", re.IGNORECASE)),
    ("SA", re.compile(r"share[\s-]?alike|\bsa\b", re.IGNORECASE)),
)
_PUBLIC = re.compile(r"\bpublic domain\b|\bwork of the (u\.?s\.?|united states) government\b", re.IGNORECASE)
_APACHE = re.compile(r"\bapache\b[\s\w.,/-]*2(\.0)?\b|apache\.org/licenses/LICENSE-2\.0", re.IGNORECASE)


def licence_family(text: str) -> str:
    """The family a licence belongs to, told from its address or its words; `unknown` when it names none."""
    if match := _ADDRESS.search(text):
        if match[2]:
            return "CC0" if match[2].lower() == "zero" else "public domain"
        return _creative_commons(match[1])
    if _CC0.search(text):
        return "CC0"
    if match := _CC_CODE.search(text):
        return _creative_commons(match[1])
    if _ATTRIBUTION.search(text):
        return _creative_commons(text)
    if _APACHE.search(text):
        return "Apache-2.0"
    return "public domain" if _PUBLIC.search(text) else "unknown"


class _Licence(CorpusFilter):
    name = "licence"
    summary = "families of licences"
    example = "licence=CC BY,CC0"

    def build(self, clause: Clause) -> FilterStep:
        """The licence must be of one of the families."""
        clause.no_arguments(self.example)
        wanted = []
        for value in clause.compared(("=",), self.example):
            family = licence_family(value.text)
            if family == "unknown" and value.text.lower() != "unknown":
                clause.unknown(value.at, f"unknown licence {value.text!r}", value.text, FAMILIES)
            wanted.append(family)

        def judge(document: Document) -> FilterVerdict:
            stated = (document.licence, *facet_values(document.facets, "licence-url"))
            family = next((found for found in map(licence_family, stated) if found != "unknown"), "unknown")
            if family in wanted:
                return KEPT
            return FilterVerdict(f"licence {family}", document.licence or "none stated")

        return per_document("licence", f"licence={','.join(wanted)}", judge, {"families": wanted})


FILTER = _Licence()


def _creative_commons(words: str) -> str:
    spaced = words.replace("-", " ").replace("_", " ")
    parts = [name for name, pattern in _PARTS if pattern.search(spaced)]
    if parts == ["NC", "ND", "SA"]:  # the text speaks of both, and only one of the two can be part of a licence
        parts = ["NC", "ND"]
    elif parts == ["ND", "SA"]:
        parts = ["ND"]
    return "-".join(["CC BY", *parts])
