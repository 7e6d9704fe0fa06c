"""Papers' protocols as presets: one command runs what a paper did and puts its tables into one report."""
