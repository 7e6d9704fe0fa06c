"""All aspects and scorers by name, built in or from plugins, in the order in which an answer is judged."""

from __future__ import annotations

from collections.abc import Iterable

from hoofbeat.errors import UsageError, did_you_mean
from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.criteria import Criterion
from hoofbeat.judging.scorers import Scorer
from hoofbeat.records import Answer
from hoofbeat.registry import registry


def all_criteria() -> tuple[Criterion, ...]:
    """All scorers and aspects; those that explain wrong answers come after those that find them."""
    found: list[Scorer | Aspect] = [*registry.all(Scorer), *registry.all(Aspect)]
    names = [each.name for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"{twice[0]} is both an aspect and a scorer", fix="rename the one in your plugin")
    return tuple(sorted(found, key=lambda each: (explains(each), each.order, each.name)))


def criteria_named(names: Iterable[str]) -> tuple[Criterion, ...]:
    """The aspects and scorers of these names, in the order in which they are judged."""
    known = {each.name: each for each in all_criteria()}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"there is no aspect {name!r}",
                fix=f"{did_you_mean(name, known)}use one of: {', '.join(known)}; or load a file that defines it with "
                "--plugin",
            )
    return tuple(each for each in known.values() if each.name in wanted)


def explains(each: Criterion) -> bool:
    """Whether it is asked of wrong answers only."""
    return isinstance(each, Aspect) and each.explains


def criterion(name: str) -> Criterion | None:
    """The aspect or scorer of this name; None where there is none, as for one of a plugin that is not loaded."""
    return next((each for each in all_criteria() if each.name == name), None)


def labels_of(name: str) -> tuple[str, ...]:
    """The labels an aspect or scorer may give; none where it gives a score, or is not known."""
    found = criterion(name)
    return found.labels if found else ()


def human_aspects() -> dict[str, Aspect]:
    """The aspects that people can be asked of an answer, by name, in the order in which they are judged."""
    return {each.name: each for each in all_criteria() if isinstance(each, Aspect) and each.for_people}


def takes(name: str, answer: Answer) -> bool:
    """Whether an aspect or scorer is about this kind of answer."""
    found = criterion(name)
    return found is None or found.suits(answer)


def verdict_labels() -> dict[str, str]:
    """The label of a right answer, by the name of what tells right from wrong; free text first."""
    verdicts = [each for each in all_criteria() if each.positive]
    return {each.name: each.positive for each in sorted(verdicts, key=lambda each: each.takes == "choice")}
