"""How a system's answers were asked for and judged, from the manifests: what two systems do not have in common.

Who judged is told by the judges' identities, not by what their verdict is called: a majority of three is as many
different judges as there are threes. Of the settings, those count that could have changed this system's answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from hoofbeat.answering.answer_calls import prompt_for
from hoofbeat.answering.conditions import SCORING, Condition, parse_condition
from hoofbeat.errors import UsageError
from hoofbeat.judging import Aspect
from hoofbeat.registry import registry
from hoofbeat.reports.lookup import System
from hoofbeat.reports.sections.scores.outcome_sets import asked_of
from hoofbeat.reports.words import model_name, short_hash
from hoofbeat.store import Artefact, Manifest
from hoofbeat.text import cut

_SAMPLING = ("temperature", "seed", "max_tokens")
_NOT_KNOWN = "not recorded"
_OPTIONS = "seed of the options' order"
_PROBE = "probe of order"
_LONGEST = 60


class Measurement(Struct, frozen=True):
    """How one system's answers came about: settings by name, and the identity of the model behind them."""

    spec: str
    identity: str
    protocol: str
    settings: dict[str, str]


def measurement_of(artefact: Artefact, system: System, protocol: str) -> Measurement:
    """What a folder's manifest says of one of its systems; judgments keep what their run said."""
    model, condition = system
    asked = asked_of(artefact).of(model)
    parsed = _parsed(condition)
    chosen = {name: value for name, value in asked.items() if _matters(name, parsed, protocol, asked)}
    models = artefact.manifest.models
    return Measurement(
        model.partition("[")[0],
        model_name(models.get(f"answer: {model}", models.get("answer", ""))),
        protocol,
        {**chosen, **_shown(artefact.manifest, parsed)},
    )


def _parsed(condition: str) -> Condition | None:
    """The condition; None where another tool named it."""
    try:
        return parse_condition(condition)
    except UsageError:
        return None


def _matters(name: str, condition: Condition | None, protocol: str, asked: Mapping[str, str]) -> bool:
    """Whether a setting can have changed these answers. How many samples there are is told by the answers."""
    if name in ("limit", "edition", "samples"):
        return False
    if name == _OPTIONS:
        return protocol == "letter"
    if protocol in SCORING and name in ("instruction", *_SAMPLING):
        return False
    if name == "seed":
        return asked.get("temperature", "") != "0"
    if name.startswith("prompt "):
        return _prompts(name.removeprefix("prompt "), condition, protocol, asked.get("instruction", ""))
    return True


def _prompts(name: str, condition: Condition | None, protocol: str, instruction: str) -> bool:
    """Whether a prompt was used for these answers: the one they were asked with, or one of what showed the passages."""
    if name == _PROBE or name.startswith("judge") or name in {each.role for each in registry.all(Aspect)}:
        return False
    if condition is None:
        return True
    if name.startswith("answer-agent"):
        return condition.kind == "agent"
    if name.startswith("answer-"):
        used = protocol not in SCORING and condition.kind != "agent"
        return used and name == prompt_for(protocol, instruction, documents=condition.needs_corpus).name
    return bool(condition.line)


def _shown(manifest: Manifest, condition: Condition | None) -> dict[str, str]:
    """What decided what the model was shown: the documents, the retriever behind its line, how a part is counted."""
    kept = manifest.settings.get("asked")
    settings: Mapping[str, Any] = (
        manifest.settings if manifest.kind == "run" else kept if isinstance(kept, dict) else {}
    )
    corpora = [ref.sha256 for ref in manifest.inputs if ref.kind == "corpus"]
    documents = settings.get("documents", sorted(corpora))
    found = {}
    if condition is None or condition.needs_corpus:
        found["documents"] = ", ".join(short_hash(str(each)) for each in documents)
    if condition is not None and condition.line:
        retrievers = settings.get("retrievers")
        found["retriever"] = str(retrievers.get(condition.line, "")) if isinstance(retrievers, dict) else ""
    if condition is not None and condition.kind == "first":
        found["tokens"] = str(settings.get("tokens", ""))
    return {name: value for name, value in found.items() if value}


def settings_that_differ(first: Measurement, second: Measurement) -> tuple[str, ...]:
    """In what two systems were asked otherwise, each with its value in the first and in the second.

    What only one of the folders tells is passed over, but for how answers are drawn.
    """
    a, b = first.settings, second.settings
    said = []
    for name in dict.fromkeys([*a, *b]):
        told = [each.get(name, _NOT_KNOWN) for each in (a, b)]
        if told[0] != told[1] and (_NOT_KNOWN not in told or name == "temperature"):
            said.append(f"{name} {' / '.join(_short(name, told))}")
    if first.spec == second.spec and first.identity and second.identity and first.identity != second.identity:
        said.append(f"model behind {first.spec} {first.identity} / {second.identity}")
    return tuple(said)


def _short(name: str, values: list[str]) -> list[str]:
    if name == "retriever" and len({cut(value, _LONGEST) for value in values}) == 1:
        return ["one", "another"]
    return [cut(value, _LONGEST) for value in values]


def panel_of(manifest: Manifest, specs: Iterable[str]) -> dict[str, str]:
    """The judges who voted, by name, with the identity of each as the manifest has it (else the name)."""
    voters = list(specs)
    judges = {role: identity for role, identity in manifest.models.items() if role.startswith("judge")}
    alone = [role for role in judges if ": " not in role] if len(voters) == 1 else []
    own = next((role for role in alone if "equivalence" in role), next(iter(alone), ""))
    found = {}
    for spec in voters:
        named = [identity for role, identity in judges.items() if role.endswith(f": {spec}")]
        found[spec] = model_name(named[-1] if named else judges.get(own, spec))
    return found


def judged_otherwise(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """That two panels of judges are not the same, in words; empty where they are."""
    if _set(first.values()) == _set(second.values()):
        return ""
    told = (second, first) if first.keys() != second.keys() else (_set(second.values()), _set(first.values()))
    words = [", ".join(each) or "nobody" for each in told]
    return f"judged by other judges: {words[0]} against {words[1]}"


def _set(names: Collection[str]) -> list[str]:
    return sorted(set(names))
