"""Exams: people answer a benchmark's questions under the same rules as models."""
