"""Comparisons of systems: rankings or answers of the same questions, as figures, a page and a folder."""
