"""Aspects: what a model can be asked about an answer. Each is one file with its prompt, labels and reading."""
