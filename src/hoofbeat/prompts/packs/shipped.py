"""The domain packs that ship with the package, for the registry: one TOML file each in this folder."""

from __future__ import annotations

from hoofbeat.prompts.packs import shipped_packs

PACKS = shipped_packs()
