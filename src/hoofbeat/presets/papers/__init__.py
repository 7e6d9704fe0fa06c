"""One file per paper: what it did, as steps for the benchmark at hand, and where such a run differs from it."""
