"""Reports: what the artefacts of a study found, as one page that can be read, printed, diffed and checked."""
