"""Measured comparisons. Each module is a command of its own: `python -m bench.client`."""
