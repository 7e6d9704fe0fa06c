"""The chapters of a report, one module a kind of artefact: what is on disk in, blocks of the document model out."""
