"""The formats that benchmarks are exported in; `hoofbeat.benchmarks.export` says what a format is."""
