"""Rankings: test collections, rankings folders with their measures, runs of other software, and published figures."""
