"""The formats that documents are read from, one file each; `hoofbeat.corpus.reader` says what a reader is."""
