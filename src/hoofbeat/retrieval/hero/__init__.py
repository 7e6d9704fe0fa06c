"""HERO-QA's retrieval: the evidence of one source at a time, found layer by layer, with a trace of every layer."""
