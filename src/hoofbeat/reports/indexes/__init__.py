"""Indexes over large folders: which answers, pairs or queries match a filter, and where each record's line begins."""
