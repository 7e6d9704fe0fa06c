"""Review: studies, items, assignments, labels, rounds and exams, without any web framework; `web` has the pages."""
