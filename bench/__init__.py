"""Measured comparisons. Each module is a command of its own: `python -m bench.client`."""

import hoofbeat  # noqa: F401 - before numpy, as the command does: it says how threads of matrix products wait
