"""Formats of published questions that Hoofbeat reads, one file each."""
