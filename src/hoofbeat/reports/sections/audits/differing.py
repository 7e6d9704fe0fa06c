"""What else is different between two audits, so that a change need not come from retrieval alone."""

from __future__ import annotations

from hoofbeat.audit import Audit
from hoofbeat.reports.words import model_name
from hoofbeat.store import Manifest

__all__ = ["differing"]

_ROLES = (("judge", "judge"), ("answer", "answering model"))
_INPUTS = {"corpus": "texts of the sources", "answers": "answers that were given"}


def differing(first: Audit, second: Audit) -> list[str]:
    """A sentence for each thing: judge, model, mode, pack, prompts, and what the audits were made of."""
    before, after = first.artefact.manifest, second.artefact.manifest
    told = []
    for role, what in _ROLES:
        names = [model_name(each.models.get(role, "")) for each in (before, after)]
        if names[0] != names[1]:
            told.append(f"The {what} differs ({names[0]}, then {names[1]}): labels may have changed because of it.")
    if first.mode != second.mode:
        told.append(f"Pairs were judged in {first.mode} mode before and in {second.mode} mode after.")
    packs = [str(each.settings.get("pack", "")) for each in (before, after)]
    if packs[0] != packs[1]:
        told.append(f"The domain pack was changed in between ({packs[0]}, then {packs[1]}).")
    prompts = sorted(
        name for name in before.prompts.keys() & after.prompts.keys() if before.prompts[name] != after.prompts[name]
    )
    if prompts:
        told.append(f"These prompts were changed in between: {', '.join(prompts)}.")
    for kind, what in _INPUTS.items():
        one, two = _hashes(before, kind), _hashes(after, kind)
        if one and two and one != two:
            told.append(f"The {what} are not the same in both: labels may have changed because of it.")
    return told


def _hashes(manifest: Manifest, kind: str) -> set[str]:
    return {each.sha256 for each in manifest.inputs if each.kind == kind}
