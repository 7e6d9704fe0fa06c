"""The formats that corpora are exported in; `hoofbeat.corpus.export` says what a format is."""
