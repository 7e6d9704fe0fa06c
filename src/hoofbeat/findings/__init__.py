"""Findings: every figure a report prints, as pure functions over stored records. No model is called here."""
