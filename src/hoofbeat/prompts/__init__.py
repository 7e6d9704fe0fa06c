"""Prompts and domain packs as data: one file per prompt, carrying its variables and its output contract.

A prompt file has a TOML head between `+++` lines and the parts `## system`, `## user` and, where the answer is an
object, `## output` with its JSON schema. Its fingerprint, the hash of the file, is recorded with every call.

Text from documents goes into a prompt through the `material` filter only. It fences the text, and takes out of it
whatever a model could mistake for the fence or for the chat format's own control tokens: what a document says stays
material, never an instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.prompts.library import Prompt, label, load_prompt, material, parse_prompt, prompt_names
    from hoofbeat.prompts.packs import Pack, RelationLabel, load_pack, pack_names

__all__ = [
    "Pack",
    "Prompt",
    "RelationLabel",
    "label",
    "load_pack",
    "load_prompt",
    "material",
    "pack_names",
    "parse_prompt",
    "prompt_names",
]

__getattr__ = lazy_names(
    __name__,
    {
        "library": "Prompt label load_prompt material parse_prompt prompt_names",
        "packs": "Pack RelationLabel load_pack pack_names",
    },
)
