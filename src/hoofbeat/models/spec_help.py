"""How models are named, in words: for the help of every verb that takes a model, which loads no model for it."""

from __future__ import annotations

SPEC_HELP = (
    "embedded, embedded:qwen2.5-coder-1.5b, openai:NAME, http://host:port/v1#NAME, batch:FOLDER#NAME, replay:FILE, "
    "or an alias in hoofbeat.toml"
)
"""The forms of a model's name."""
