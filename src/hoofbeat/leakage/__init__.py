"""Leakage: signs that a model has seen a benchmark, each with its control."""
