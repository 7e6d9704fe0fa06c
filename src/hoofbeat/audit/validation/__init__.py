"""Validation: a sample of an audit's pairs labelled by people, or judged in another way."""
