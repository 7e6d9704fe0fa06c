"""The formats that corpora are exported in; `hoofbeat.corpus.corpus` says what a format is."""
