"""Findings over an audit's table of pairs, as pure functions that take millions of rows in seconds.

They say how often sources disagree, which source differs from the others, what sources disagree about, which pairs are
dangerous, and what changed since the last audit.
"""
