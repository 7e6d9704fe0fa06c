"""Hoofbeat: build, run, judge and audit clinical question answering. Research software, not for clinical use."""

from __future__ import annotations

import os

# The threads behind numpy's matrix products wait for more work by spinning, for some 20 ms; on the cores that a dense
# search then chooses on. Told to sleep at once, they cost the products nothing that can be measured. The library reads
# this when numpy is first imported; whoever has set it knows better.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

__all__ = ["__version__"]

__version__ = "0.1.0"
