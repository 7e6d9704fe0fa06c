"""Tests; the tree mirrors src/hoofbeat."""
