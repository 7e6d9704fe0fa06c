"""Wording: what users read is plain English (docs/english.md). Each rule has an example that it catches.

`python tests/test_wording.py [FOLDER ...]` lists all hits, also in folders that are still open, and counts them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TREE = Path(__file__).resolve().parent.parent
PACKAGE = TREE / "src" / "hoofbeat"
FACE = "hoofbeat"
"""The folder name of the modules beside the packages, `api.py` among them."""

OPEN: set[str] = set()
"""Folders that are not checked yet."""


class Rule(NamedTuple):
    """A pattern to avoid, what to write instead, and one sentence of this project before and after."""

    pattern: str
    instead: str
    before: str
    after: str


RULES = (
    Rule(
        r"\b(?:stands?|stood)\b(?! (?:for|alone|out)\b)", "is, appears",
        "the answer stands twice", "the answer appears twice",
    ),
    Rule(
        r"\bso (?:many|much)\b(?! (?:that|as)\b)", "N, this number",
        "Keep so many passages.", "Keep N passages.",
    ),
    Rule(
        r"(?:\d ?m?s|\b(?:seconds?|minutes?|calls|tokens|passages|words|samples|pairs|once|twice|\d+))"
        r" an? (?:question|pair|answer|source|document|passage|call|item|case|row|label|system|page|line|second)\b",
        "per question, per pair",
        "about 2 s a pair", "about 2 s per pair",
    ),
    Rule(
        r"\bof (?:its|their|your|one's) own\b", "its own X, a different X, separate",
        "give them ids of their own", "give each question its own id",
    ),
    Rule(
        r"(?<!there )(?<!here )\b(?:is|are|was|were) no (?!(?:longer|more|less|fewer|worse|better|doubt)\b)(?=\w)",
        "is not a X, there is no X",
        "the line is no JSON", "the line is not JSON",
    ),
    Rule(
        r"\btoo(?=[,.;:)]|$)", "also",
        "Prints the table, too.", "Also prints the table.",
    ),
    Rule(
        r"\b(?:comes?|came|coming) (?:through|out|about)\b", "is kept, results, is the same",
        "nothing came through", "No questions were kept",
    ),
    Rule(
        r"\bby a call\b", "with a model call, by asking the model",
        "decided by a call", "decided by the model",
    ),
    Rule(
        r"\b(?:one|two|three|four|five|six|ten|X|\d+|bytes|characters|words|questions|rows|pairs|passages)"
        r" at (?:least|most)\b(?! (?:X|\d|one|two|three|four|five|half|as|so)\b)",
        "at least three, at most N",
        "three at least: one for silence", "at least three, in order: silence",
    ),
    Rule(
        r"\b(?:the|each) least(?= (?:first|one)\b|[,.;:)]|$)", "lowest, minimum",
        "list them, the least first", "list them, lowest first",
    ),
    Rule(
        r"\bat hand\b", "available, or the noun itself",
        "the documents at hand", "the corpus",
    ),
    Rule(
        r"\bwhat (?:was|were|is|has been) (?:said|given|shown|met|told|predicted)\b", "a noun: the passages",
        "its quote is not in what was shown", "its quote is not in the passages shown",
    ),
    Rule(
        r"\bsomebody\b", "someone, or the role: the reviewer, the annotator",
        "what somebody else answers is told", "it reports someone else's answer",
    ),
    Rule(
        r"\bturn(?:s|ed)? (?:away|down)\b", "reject",
        "Answer that the check turned down", "Answer that the check rejected",
    ),
    Rule(
        r"\b(?:is|are|was|were|been|be) let go\b|\blets? go of\b", "drop, close, release",
        "the label was let go", "the label was dropped",
    ),
    Rule(
        r"\b(?:is|are|was|were|been|be) looked (?:at|for|up|through|over)\b|\bto look at\b", "check, read, search for",
        "What there is to look at", "Your workspace",
    ),
    Rule(
        r"\bleft alone\b|\bleaves? alone\b", "not changed",
        "and it is left alone", "Not overwritten: not a Hoofbeat folder",
    ),
    Rule(
        r"\bin money\b", "a sum with its currency",
        "at most 0.9985 in money", "at most $1.00",
    ),
    Rule(
        r"\b(?:is|are|was|were|not|be) through\b(?! (?:a|an|the|which|its|--)\b)", "done, finished, complete",
        "You are through with all 1 items", "All done",
    ),
    Rule(
        r"\botherwise than\b", "differs from",
        "it may say otherwise than the source", "it may differ from the source",
    ),
    Rule(
        r"\b(?:same|all|nothing|everything|equal|alike|command|identical),? but for\b", "except, apart from",
        "the same but for case and articles", "the same apart from case and articles",
    ),
    Rule(
        r"(?:^|[;,.:] )(?:shown|given|listed|counted|left out|kept|meant) (?:are|were|is|was)\b", "subject first",
        "the source was searched; shown were 3 passages", "the source was searched; the model saw 3 passages",
    ),
    Rule(
        r"\bmend(?:s|ed)?\b", "correct, fix",
        "mend the line it names", "correct that line",
    ),
    Rule(
        r"\b(?:nought|anew|ere|whence|amidst|thereof|wherein|therein|aught)\b", "0, again, before, where",
        "those figures are nought", "those figures are 0",
    ),
    Rule(
        r"\b(?:tells?|told|telling)\b[^.;:\n]{0,24}\bapart\b", "distinguish, rank",
        "these tell no systems apart", "these do not help to rank systems",
    ),
    Rule(
        r"\bholds? no\b", "has no",
        "the benchmark holds no questions", "the benchmark has no questions",
    ),
    Rule(
        r"\b(?:is|are|was|were) to be\b", "must be, or a verb with its subject",
        "say when each level is to be chosen", "say when to choose each level",
    ),
    Rule(
        r"\b(?:lies|lie|lay) (?:beside|in|there|under|at|where)\b", "is",
        "no design lies beside it", "it has no design file beside it",
    ),
    Rule(
        r"\b(?:go|goes|went|going) on\b(?! to\b)", "continue",
        "go on without them", "continue without them",
    ),
    Rule(
        r"\bin all(?=[.;:,)]|$)", "in total, only N",
        "3 items are labelled, of 2 in all", "3 items are labelled, but there are only 2 items",
    ),
    Rule(
        r"\band the like\b", "and similar words",
        "before guideline, society and the like", "before words like guideline or society",
    ),
    Rule(
        r"\b(?:asked|judged|put) (?:of|to) (?:wrong|answers|both|two)\b", "judged for, applies to",
        "failure modes are asked of answers that had the source",
        "failure modes are judged only for answers with the source",
    ),
    Rule(
        r"\bfrom [01X] up\b", "N or more",
        "a whole number from 1 up", "a whole number, 1 or more",
    ),
    Rule(
        r"\b(?:is|are|was|were) none of (?:its|the|their)\b", "is not one of",
        "the answer is none of its options", "the answer is not one of its options",
    ),
)  # fmt: skip


class Exemption(NamedTuple):
    """Words that a rule catches and that may stay: the file, a part of the sentence, and why."""

    file: str
    words: str
    why: str


_STORED = "stored in folders: a name, not a sentence"
_SENT = "goes into a model's request"
EXEMPT: tuple[Exemption, ...] = (
    Exemption("src/hoofbeat/audit/silence.py", "turned down", _STORED),
    Exemption("src/hoofbeat/recipes/cases/differentials.py", "Rules object to some of the diagnoses", _SENT),
    Exemption("src/hoofbeat/recipes/cases/distraction.py", "A rule doubts the rewritten case", _SENT),
    Exemption("src/hoofbeat/recipes/cases/distraction.py", "A rule objects to the rewritten case", _SENT),
    Exemption("src/hoofbeat/recipes/cases/item_review.py", "You sign and list problems", _SENT),
    Exemption("src/hoofbeat/recipes/cases/option_choice.py", "You may also write options", _SENT),
    Exemption("src/hoofbeat/recipes/cases/shown_sentences.py", "A word list finds residue", _SENT),
    Exemption("src/hoofbeat/recipes/cases/shown_sentences.py", "A word list still finds", _SENT),
    Exemption("src/hoofbeat/recipes/cases/cut_check.py", "what is shown", _SENT),
    Exemption("src/hoofbeat/recipes/context.py", "[The text goes on.", _SENT),
    Exemption("src/hoofbeat/recipes/messages/question_topics.py", "which is none of the groups", _SENT),
    Exemption("src/hoofbeat/recipes/guards/diagnosis_names.py", "the same but for spelling", _SENT),
    Exemption("src/hoofbeat/recipes/messages/question_duplicates.py", "dropped, as a reviewer says, too", _STORED),
    Exemption("src/hoofbeat/recipes/papers/clinbench.py", "what is shown", _STORED),
    Exemption("src/hoofbeat/recipes/pools/exam_questions.py", "is no question", _SENT),
    Exemption("src/hoofbeat/reports/sections/errors_section.py", "physician would err too", _STORED),
    Exemption("src/hoofbeat/review/label_export.py", "physician would err too", _STORED),
    Exemption("src/hoofbeat/recipes/papers/ogcare.py", "Name what somebody did", _SENT),
    Exemption("src/hoofbeat/recipes/papers/sourceqa.py", "Mark only what tells who or where", _SENT),
    Exemption("src/hoofbeat/recipes/papers/sourceqa.py", "Mark them only where they name", _SENT),
)

NOT_SHOWN = {
    "docs/cli.md": "made from the command line, whose texts are checked where they are written",
    "docs/english.md": "it quotes what not to write",
    "docs/python_reference.md": "made from docstrings; those of api.py are checked there",
}
"""Files that are not checked, and why."""


class Text(NamedTuple):
    """A piece of visible text: its file, the line it begins on, and its words; what is filled in is an X."""

    file: str
    line: int
    words: str


class Hit(NamedTuple):
    """A rule that a piece of text breaks."""

    file: str
    line: int
    found: str
    sentence: str
    rule: Rule

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.found!r} in {self.sentence!r}; write: {self.rule.instead}"


# What users see


def folder_names() -> list[str]:
    """The packages, the modules beside them, and the documentation."""
    packages = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()]
    return sorted([*packages, FACE, "docs"])


def files_of(folder: str) -> Iterator[Path]:
    if folder == "docs":
        yield from (TREE / "README.md", TREE / "CONTRIBUTING.md", *sorted((TREE / "docs").glob("*.md")))
    elif folder == FACE:
        yield from sorted(PACKAGE.glob("*.py"))
    else:
        root = PACKAGE / folder
        yield from sorted(path for path in root.rglob("*") if path.suffix in {".py", ".html", ".js"})
        yield from sorted((root / "forms").glob("*.toml"))


def texts_of(folder: str, only: Container[str] | None = None) -> Iterator[Text]:
    """The visible texts of a folder, or of these files of it."""
    for path in files_of(folder):
        name = path.relative_to(TREE).as_posix()
        if name not in NOT_SHOWN and (only is None or name in only):
            for line, words in visible(path):
                yield Text(name, line, words)


def visible(path: Path) -> Iterator[tuple[int, str]]:
    """The visible text of a file in pieces, each with its line."""
    text = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".py":
            shown = path.name == "api.py" and path.parent == PACKAGE
            yield from python_texts(text, docstrings=shown)
        case ".html":
            yield from template_texts(text)
        case ".js":
            yield from ((line, words) for line, words in _literals(_blank(text, _COMMENTS)) if " " in words.strip())
        case ".toml":
            yield 1, _blank(text, r"(?m)^\s*#.*$")
        case _:
            yield 1, markdown_text(text)


def python_texts(source: str, *, docstrings: bool = False) -> Iterator[tuple[int, str]]:
    """String constants and f-strings with more than one word; docstrings where they are help texts, or all."""
    tree = ast.parse(source)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (docstrings or _is_command(node)):
            told = ast.get_docstring(node, clean=False)
            if told and not getattr(node, "name", "").startswith("_"):
                yield node.body[0].lineno, _without_code(told)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            words = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            words = node.value
        else:
            continue
        if " " in words.strip() and not _REGEX.search(words):
            yield node.lineno, words


def template_texts(source: str) -> Iterator[tuple[int, str]]:
    """A template's text without its marks, the texts of its attributes, and the strings in its expressions."""
    text = _blank(source, r"(?s)\{#.*?#\}|<!--.*?-->|<(script|style)\b.*?</\1>")
    for block in re.finditer(r"(?s)\{[{%].*?[%}]\}", text):
        before = text.count("\n", 0, block.start())
        yield from ((before + line, words) for line, words in _literals(block.group()) if " " in words.strip())
    plain = re.sub(r"(?s)\{\{.*?\}\}", lambda block: "X" + "\n" * block.group().count("\n"), text)
    plain = _blank(plain, r"(?s)\{%.*?%\}")
    for attribute in re.finditer(r'(?s)\b(?:title|alt|placeholder|aria-label)="([^"]*)"', plain):
        yield 1 + plain.count("\n", 0, attribute.start()), attribute[1]
    yield 1, re.sub(r"(?s)<[^>]*>", _border, plain)


def markdown_text(source: str) -> str:
    """A page without its code; lines stay where they are."""
    without = re.sub(r"(?ms)^( *)(```+|~~~+).*?^\1\2[^\S\n]*$", lambda block: "\n" * block.group().count("\n"), source)
    without = re.sub(r"(?m)(?<=\n\n)(?:(?: {4}|\t).*\n?)+", lambda block: "\n" * block.group().count("\n"), without)
    return _without_code(without)


_COMMENTS = r"(?s)/\*.*?\*/|(?m:(?<![:\"'])//.*$)"
_REGEX = re.compile(r"\(\?[:=!<P]|\\[bsdwAZ]|\[\^|\{\d*,\d*\}")
_INLINE = re.compile(r"</?(?:a|b|i|em|strong|span|code|small|abbr|sub|sup)\b", re.IGNORECASE)
_COMMAND = re.compile(r"(?:^|\.)(?:command|group)$")


def _is_command(node: ast.FunctionDef | ast.ClassDef | ast.Module) -> bool:
    """Whether a docstring is a command's help."""
    marks = getattr(node, "decorator_list", [])
    return any(_COMMAND.search(ast.unparse(mark.func if isinstance(mark, ast.Call) else mark)) for mark in marks)


def _border(mark: re.Match[str]) -> str:
    """What separates texts where a mark was: nothing where it is within a sentence."""
    return ("" if _INLINE.match(mark.group()) else "¶") + "\n" * mark.group().count("\n")


def _blank(text: str, pattern: str) -> str:
    return re.sub(pattern, lambda part: "\n" * part.group().count("\n"), text)


def _without_code(text: str) -> str:
    return re.sub(r"(`+)(?:(?!\1).)+?\1", lambda code: "X" + "\n" * code.group().count("\n"), text, flags=re.DOTALL)


def _literals(source: str) -> Iterator[tuple[int, str]]:
    """String literals in JavaScript or in a template's expression, each with its line."""
    for found in re.finditer(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`", source):
        words = next(part for part in found.groups() if part is not None)
        yield 1 + source.count("\n", 0, found.start()), re.sub(r"\$\{[^}]*\}", "X", words)


# What is wrong with it


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A rule's pattern; a space in it is any white space, for sentences go over lines."""
    spaced = re.sub(r"(?<!\\) ", r"\\s+", re.sub(r"(\(\?<[!=][^)]*) \)", r"\1\\s)", pattern))
    return re.compile(spaced, re.IGNORECASE | re.MULTILINE)


def broken_rules(texts: Iterable[Text], exempt: Iterable[Exemption] = EXEMPT) -> Iterator[Hit]:
    """Every rule that a text breaks, except for exemptions."""
    for text in texts:
        for rule in RULES:
            for found in _compiled(rule.pattern).finditer(text.words):
                start = text.words.rfind("\n", 0, max(0, found.start() - 50)) + 1
                sentence = " ".join(
                    text.words[max(start, found.start() - 70) : found.end() + 50].replace("¶", " ").split()
                )
                if not any(each.file == text.file and each.words in sentence for each in exempt):
                    line = text.line + text.words.count("\n", 0, found.start())
                    yield Hit(text.file, line, " ".join(found.group().split()), sentence, rule)


# Tests


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.instead)
def test_a_rule_catches_its_example_and_not_the_better_words(rule: Rule) -> None:
    assert [hit for hit in broken_rules([Text("x", 1, rule.before)]) if hit.rule == rule]
    assert [str(hit) for hit in broken_rules([Text("x", 1, rule.after)])] == []


@pytest.mark.parametrize("folder", [name for name in folder_names() if name not in OPEN])
def test_what_users_read_is_plain(folder: str) -> None:
    hits = [str(hit) for hit in broken_rules(texts_of(folder))]
    assert not hits, "\n" + "\n".join(hits)


def test_open_folders_and_exemptions_are_still_needed() -> None:
    assert set(folder_names()) >= OPEN
    files = {each.file for each in EXEMPT}
    everything = [hit for folder in folder_names() for hit in broken_rules(texts_of(folder, files), exempt=())]
    used = {each for each in EXEMPT for hit in everything if each.file == hit.file and each.words in hit.sentence}
    assert [each for each in EXEMPT if each not in used] == []
    assert [name for name in NOT_SHOWN if not (TREE / name).exists()] == []


def test_python_strings_are_read_and_docstrings_are_not() -> None:
    source = '''"""The pair stands twice."""
import click, re

PATTERN = re.compile(r"\\b(?:stands twice)\\b")
NOTE = "it stands twice"
"""A note that stands twice."""


@click.command("go")
def go(name):
    """Say what stands there."""
    raise ValueError(f"{name} stands"
                     " twice")
'''
    assert dict(python_texts(source)) == {5: "it stands twice", 11: "Say what stands there.", 12: "X stands twice"}
    assert (1, "The pair stands twice.") in list(python_texts(source, docstrings=True))


def test_templates_are_read_without_their_marks() -> None:
    source = """{# stands #}<p title="what it is">It <b>stands</b>
{{ name }} here.</p>
<script>let stands = 1</script>{{ "not through yet" if late else x }}"""
    texts = list(template_texts(source))
    assert (1, "what it is") in texts
    assert (3, "not through yet") in texts
    assert [" ".join(words.split()) for _, words in texts if "It " in words] == ["¶It stands X here.¶ X"]
    assert not any("let stands" in words or "{#" in words for _, words in texts)


def test_pages_are_read_without_code_and_lines_are_kept(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n```\nit stands\n```\n\nRun `it stands` and it\nstands there.\n\n    it stands\n\nEnd.\n"
    )
    hits = list(broken_rules(Text("page.md", line, words) for line, words in visible(page)))
    assert [(hit.line, hit.found) for hit in hits] == [(8, "stands")]


def main(names: list[str]) -> None:
    """List the hits of these folders, or of all, and how many each folder has."""
    counts: Counter[str] = Counter()
    for folder in names or folder_names():
        counts[folder] = 0
        for hit in broken_rules(texts_of(folder)):
            counts[folder] += 1
            print(hit)
    for folder, count in counts.most_common():
        print(f"{count:6} {folder}{' (not checked yet)' if folder in OPEN else ''}")


if __name__ == "__main__":
    main(sys.argv[1:])
