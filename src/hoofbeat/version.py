"""The version, apart from the package itself, which loads the Python face and is above all that needs this."""

from __future__ import annotations

__version__ = "0.1.0"
