"""Hoofbeat: build, run, judge and audit clinical question answering. Research software, not for clinical use."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
