"""The filters of corpora; `hoofbeat.corpus.filter` says what a filter is and how it is written."""
