"""Answers from one source at a time: the evidence found in it, its quotes and its citations."""
