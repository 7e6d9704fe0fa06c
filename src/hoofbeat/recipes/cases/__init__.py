"""Case reports into questions: their case, its diagnosis, options, distraction, figures, and the two-level check."""
