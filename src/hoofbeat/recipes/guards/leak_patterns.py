"""What would give a diagnosis away: its name taken apart, other names, short forms, codes and telling procedures.

A diagnosis as a model writes it ("1. Small bowel obstruction due to gallstone ileus") is cut into the conditions it
names; each becomes one or more wanted sets of words. A set is found where all its words stand close together, in any
order and inflection. A word that names a disease by itself is wanted alone; one that only says where or how is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache

from msgspec import Struct

from hoofbeat.corpus.terms import is_short_form, phrase_key, tokens, well_known_abbreviations
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.recipes.guards.leak_words import forms_of, lists, stem_of, worth
from hoofbeat.recipes.wordlists import word_data

_NUMBERED = re.compile(r"^\s*(?:\d{1,2}[.)]|[-•*])\s+")
_BRACKET = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_CAUSE = re.compile(
    r"\b(?:due to|secondary to|caused by|because of|as a result of|resulting from|arising from|from)\b", re.I
)
_ASIDE = re.compile(
    r"\b(?:with|without|in|on|complicated by|complicating|presenting|manifesting|mimicking|masquerading|following|"
    r"after|during|leading to|causing|involving|affecting|to the|to|treated|superimposed|induced by|at|by|under)\b",
    re.I,
)
_INDUCED = re.compile(r"\b[\w-]+[- ](?:associated|induced|related|mediated|triggered)\b", re.I)
_ALONE = ("oma", "ose", "iase", "ism", "uria", "cele", "pathia", "megaly", "malacia")
_SIZES = frozenset(["small", "large", "giant", "high", "low"])
_SIZED = frozenset(["cell", "vessel", "grade", "chain"])
_MAX_TERMS = 8
_MAX_NAMES = 60
_SHORTEST_STEM = 4
_SHORTEST_EPONYM = 4
_SHORT_NAME = 3
_MORE = frozenset(["disease", "special", "qualifier"])
_PLAIN = frozenset(["disease", "syndrome", "disorder"])
_ANATOMY = frozenset(["soft", "tissue"])  # "soft tissue edema" is a finding, not a soft tissue infection
_UNLIKE = re.compile(r"^(?:other|unspecified|certain)\b", re.I)


class LeakPattern(Struct, frozen=True, kw_only=True):
    """Words that give a diagnosis away where all of them stand together. Each is given in all its forms, `bases` as is.

    `bare` asks more of a single word that may be an ordinary one or a person's name (Still, Wilson); `plain` says that
    such a word, where it is long, counts in small letters too (moyamoya).
    """

    name: str
    kind: str
    bases: tuple[str, ...]
    words: tuple[frozenset[str], ...]
    bare: bool = False
    plain: bool = False


class LeakPatterns(Struct, frozen=True, kw_only=True):
    """Everything that gives one diagnosis away.

    `whole` are the patterns of complete names, which the long form of an abbreviation must match; `given` are the
    abbreviations among the names themselves.
    """

    wanted: tuple[LeakPattern, ...]
    shorts: dict[str, str]
    initials: dict[tuple[str, ...], bool]
    codes: frozenset[str]
    stems: frozenset[str]
    anti: frozenset[str]
    own_words: frozenset[str]
    whole: tuple[LeakPattern, ...]
    given: frozenset[str]


class _Word(Struct, frozen=True):
    form: str
    worth: str
    named: bool


@cache
def _aliases() -> tuple[tuple[tuple[str, frozenset[str]], ...], ...]:
    """Each condition of `aliases.toml`: its names with their words."""
    lines = str(word_data("aliases")["conditions"]).strip().splitlines()
    return tuple(
        tuple((name.strip(), frozenset(_canon(word.form) for word in _content(name, True))) for name in line.split("|"))
        for line in lines
    )


@cache
def _whole_names() -> frozenset[str]:
    listed = word_data("aliases")["whole_names"]
    assert isinstance(listed, list)
    return frozenset(phrase_key(name) for name in listed) | {
        phrase_key(name) for line in _aliases() for name, _ in line
    }


def _canon(form: str) -> str:
    return min(forms_of(form))


def _words(name: str) -> list[_Word]:
    """The words of a name without little ones, each with its worth and whether it is written as a person's name."""
    forms, starts, ends = tokens(name)
    found: list[_Word] = []
    for place, (form, start, end) in enumerate(zip(forms, starts, ends, strict=True)):
        if not any(map(str.isalnum, form)) or worth(form) == "little" or any(form == word.form for word in found):
            continue
        follows = forms[place + 1] if place + 1 < len(forms) else ""
        what = "qualifier" if form in _SIZES and follows in _SIZED else worth(form)
        raw = name[start:end]
        owned = "'" in raw or "’" in raw
        person = raw[0].isupper() and not raw.isupper() and (owned or start > 0)
        what = "special" if owned and person and what == "qualifier" else what
        found.append(_Word(form, what, person))
    return found


def _content(name: str, modifiers: bool = False) -> list[_Word]:
    """The words that must be there: no modifiers, unless nothing but a class of diseases is left without them."""
    words = _words(name)
    kept = words if modifiers else [word for word in words if word.worth != "modifier"]
    if not any(word.worth != "class" for word in kept) and len(words) > len(kept):
        kept = words
    rest = [word for word in kept if word.form not in lists().redundant]
    if {word.form for word in rest} <= _ANATOMY:
        return kept
    enough = len(rest) >= 2 or any(word.worth in {"disease", "special", "class"} for word in rest)
    return rest if enough else kept


def _tells(name: str) -> bool:
    """Whether a piece of a diagnosis names a condition by itself."""
    worths = {word.worth for word in _words(name)}
    return bool(worths & {"disease", "special"}) or ("class" in worths and bool(worths & {"site", "qualifier"}))


@lru_cache(maxsize=4096)
def cores(diagnosis: str) -> tuple[str, ...]:
    """The conditions that a diagnosis names, the whole of it first."""
    plain = " ".join(_BRACKET.sub(" ", _NUMBERED.sub("", diagnosis)).split()).strip(" .,;:")
    inside = [part.strip() for part in _BRACKET.findall(diagnosis) if not is_short_form(part.strip()) and _tells(part)]
    found = [plain]
    for part in re.split(r"\s*[;\n]\s*|\s+/\s+", plain):
        found += _pieces(part)
    return tuple(dict.fromkeys(name for name in [*found, *inside] if name))


def _pieces(name: str) -> Iterator[str]:
    if phrase_key(name) in _whole_names():
        yield name
        return
    for side in _CAUSE.split(name):
        main = side.strip(" ,")
        if phrase_key(main) not in _whole_names():
            left = _ASIDE.split(main, maxsplit=1)[0].strip(" ,")
            main = left if left and _tells(left) else main
        yield main
        if (fewer := _INDUCED.sub("", main).strip()) != main and _tells(fewer):
            yield fewer
        for separator in (r",\s*", r"\s+and\s+|\s*&\s*|,\s*|/"):
            parts = [part.strip() for part in re.split(separator, main) if part.strip()]
            if len(parts) > 1 and all(map(_tells, parts)):
                yield from parts
        told = [part for part in main.split(",") if _content(part) and not _only_modifiers(part)]
        if 0 < len(told) < main.count(",") + 1 and _tells(" ".join(told)):
            yield " ".join(told)


def _only_modifiers(name: str) -> bool:
    return all(word.worth == "modifier" for word in _words(name))


def _wanted(name: str, kind: str) -> Iterator[LeakPattern]:
    """The sets of words that name one condition."""
    content = _content(name)
    if not content:
        return
    yield _make(name, kind, content)
    diseases = _distinct([word for word in content if word.worth == "disease"])
    others = [word for word in content if word.worth in {"special", "qualifier"}]
    classes = [word for word in content if word.worth == "class"]
    if len(diseases) == 1:
        form = diseases[0].form
        listed = form in lists().diseases and form not in lists().qualified and not form.endswith("itis")
        if listed or form.endswith(_ALONE) or not (others or classes):
            yield _make(name, kind, diseases[:1])
    sited = [word for word in content if word.worth != "site"]
    if len(sited) < len(content) and {"class", "qualifier"} <= {word.worth for word in sited} and not diseases:
        yield _make(name, kind, sited)
    specials = [word for word in content if word.worth == "special" and len(word.form) >= _SHORTEST_EPONYM]
    specials = [word for word in specials if word.named or word.form not in lists().everyday]
    if kind == "term":
        specials = [word for word in specials if word.named and len(content) <= _SHORT_NAME]
    plain = any(word.form in _PLAIN for word in _words(name)) and len(others) == 1
    for word in specials if len(specials) <= 2 and len(_words(name)) > 1 else ():
        yield _make(name, "eponym", [word], bare=True, plain=plain)


def _distinct(words: Sequence[_Word]) -> list[_Word]:
    kept: list[_Word] = []
    for word in words:
        if not any(word.form in forms_of(other.form) or other.form in forms_of(word.form) for other in kept):
            kept.append(word)
    return kept


def _make(name: str, kind: str, words: Sequence[_Word], *, bare: bool = False, plain: bool = False) -> LeakPattern:
    alone = len(words) == 1
    forms = []
    for word in words:
        each = forms_of(word.form)
        if alone:
            each = frozenset(form for form in each if form == word.form or form not in lists().classes | {"cancer"})
        forms.append(each)
    if bare:
        forms = [forms[0] | {words[0].form + "ian", words[0].form + "oid"}]
    bare = bare or (alone and words[0].worth == "special" and len(_words(name)) > 1)
    kind = "eponym" if bare and kind != "name" else kind
    return LeakPattern(
        name=name, kind=kind, bases=tuple(word.form for word in words), words=tuple(forms), bare=bare, plain=plain
    )


@lru_cache(maxsize=512)
def signs_of(diagnosis: str, synonyms: tuple[str, ...], vocabularies: tuple[Vocabulary, ...]) -> LeakPatterns:
    """Everything that gives a diagnosis away."""
    names: dict[str, str] = dict.fromkeys(cores(diagnosis), "name")
    for synonym in synonyms:
        for core in cores(synonym):
            names.setdefault(core, "synonym")
    shorts = dict.fromkeys(_short_parts([diagnosis, *synonyms]), diagnosis)
    codes: set[str] = set()
    given = list(names)
    main = {each for name in (diagnosis, *synonyms) for each in (*cores(name)[:1], main_part(name))}
    for name in given:
        for other in _aliases_of(name):
            _add(other, "synonym", name, names, shorts)
        for other in _terms_of(name, vocabularies, codes):
            _add(other, "term", name, names, shorts)
    for short, long in well_known_abbreviations().items():
        if any(phrase_key(long) == phrase_key(name) for name in names):
            shorts.setdefault(short, long)
    wanted = {(each.words, each.bare): each for name, kind in reversed(names.items()) for each in _wanted(name, kind)}
    words = {word.form for name in given for word in _words(name)}
    return LeakPatterns(
        wanted=(*reversed(wanted.values()), *_procedures(given)),
        shorts={short: long for short, long in shorts.items() if len(short) > 1},
        initials=dict(_initials(names)),
        codes=frozenset(codes),
        stems=frozenset(_operated(given)),
        anti=frozenset(
            form for name in given for word in _content(name) if _specific(word) for form in _anti(word.form)
        ),
        own_words=frozenset(words),
        whole=tuple(
            _make(name, kind, content)
            for name, kind in names.items()
            if (name not in given or name in main) and (content := _content(name))
        ),
        given=frozenset(_short_parts([diagnosis, *synonyms])),
    )


def main_part(diagnosis: str) -> str:
    """The disease that a diagnosis names, without its cause, its complications and what it follows."""
    whole = cores(diagnosis)[0] if cores(diagnosis) else diagnosis
    side = _CAUSE.split(whole, maxsplit=1)[0].strip(" ,") or whole
    left = _ASIDE.split(side, maxsplit=1)[0].strip(" ,")
    side = left if left and _tells(left) else side
    before, _, where = side.partition(" of ")
    sited = where and all(word.worth == "site" for word in _words(where))
    return before if sited and len(_content(before)) > 1 else side


def words_of(name: str) -> list[frozenset[str]]:
    """The words that must be there for a name to be complete, each in all its forms."""
    return [forms_of(word.form) | {word.form} for word in _content(name)]


def _initials(names: dict[str, str]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The words whose first letters make short forms, each with whether they are the diagnosis's own."""
    for name, kind in names.items():
        words = _words(name)
        forms = tuple(word.form for word in words)
        if kind != "term":
            yield forms, kind == "name"
        if kind == "name" and len(words) > _SHORT_NAME and words[-1].worth == "class":
            yield forms[:-1], False


def _short_parts(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        for part in (name, *_BRACKET.findall(name)):
            if is_short_form(part.strip()) or (part.strip().isupper() and 2 <= len(part.strip()) <= 6):
                yield part.strip()


def _add(other: str, kind: str, name: str, names: dict[str, str], shorts: dict[str, str]) -> None:
    if is_short_form(other) or (other.isupper() and " " not in other and len(other) <= 6):
        shorts.setdefault(other, name)
    elif len(names) < _MAX_NAMES and (_tells(other) or phrase_key(other) in _whole_names()):
        names.setdefault(other, kind)


def _aliases_of(name: str) -> Iterator[str]:
    """Other names of a condition from the aliases, where it says nothing more than they do but where it is."""
    words = {_canon(word.form): word.worth for word in _words(name)}
    for line in _aliases():
        for _, wanted in line:
            rest = {worth for form, worth in words.items() if form not in wanted}
            wide = all(words.get(form) == "class" for form in wanted)
            if wanted and wanted <= words.keys() and not rest & _MORE and not (wide and "site" in rest):
                yield from (other for other, _ in line)
                break


def _terms_of(name: str, vocabularies: Sequence[Vocabulary], codes: set[str]) -> Iterator[str]:
    """Other names of a condition from the vocabularies, whose codes are noted. A heading above it is no name of it."""
    own = {_canon(word.form) for word in _content(name)}
    for vocabulary in vocabularies:
        for match in vocabulary.lookup(name)[:_MAX_TERMS]:
            term = vocabulary.term(match.code)
            if term is None or match.via not in {"name", "synonym"}:
                continue
            heading = {_canon(word.form) for word in _content(term.name)}
            if match.via == "synonym" and (heading < own or _UNLIKE.match(term.name)):
                continue
            codes.add(term.code)
            yield from (term.name, *term.synonyms, *term.abbreviations)


def _specific(word: _Word) -> bool:
    return word.worth in {"disease", "special"}


def _anti(form: str) -> Iterator[str]:
    """`tuberculous` and its like: what follows the `anti` of a drug against it."""
    yield from forms_of(form)
    stem = stem_of(form)
    if len(stem) >= _SHORTEST_STEM:
        yield from (stem + ending for ending in ("al", "ar", "ous", "ic", "c"))
    yield from (form + ending for ending in ("l", "al", "ian"))


def _operated(names: Iterable[str]) -> Iterator[str]:
    """The stems that, with the ending of an operation, make a telling procedure."""
    wide = word_data("procedures")["too_wide"]
    assert isinstance(wide, list)
    for name in names:
        for word in _content(name):
            if word.worth not in {"site", "class"}:
                for stem in {stem_of(word.form), word.form.removesuffix("ia").removesuffix("a"), word.form}:
                    if len(stem) >= _SHORTEST_STEM and stem not in wide:
                        yield stem


def _procedures(names: Iterable[str]) -> Iterator[LeakPattern]:
    """The procedures that the data say are telling for one of these conditions."""
    rules = word_data("procedures")["rules"]
    assert isinstance(rules, list)
    held = [{form for word in _words(name) for form in forms_of(word.form)} for name in names]
    for rule in rules:
        needed = {form for word in rule["diagnosis"] for form in tokens(word).forms}
        if any(needed <= forms for forms in held):
            for phrase in rule["telling"]:
                forms = [form for form in tokens(phrase).forms if form and worth(form) != "little"]
                yield LeakPattern(
                    name=phrase, kind="procedure", bases=tuple(forms), words=tuple(frozenset([form]) for form in forms)
                )


@cache
def operation_endings() -> tuple[str, ...]:
    """The endings of operations in normal form, the longest first."""
    listed = word_data("procedures")["operations"]
    assert isinstance(listed, list)
    endings = {tokens(f"zzzz{each}").forms[0].removeprefix("zzzz") for each in listed}
    return tuple(sorted(endings, key=lambda ending: (-len(ending), ending)))
