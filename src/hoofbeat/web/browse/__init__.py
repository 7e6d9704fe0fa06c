"""Browse what was made: corpora, benchmarks, runs, audits, two runs side by side."""
