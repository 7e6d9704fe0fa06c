"""The filters of corpora; `hoofbeat.corpus.filter` says what a filter is, `filter_line` how one is written."""
