"""Indexes: lexical (analysis, postings, BM25) and dense (vectors, exact and approximate search), kept in folders."""
