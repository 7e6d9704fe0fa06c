"""Economy: pairs judged between groups of answers that make the same claims."""
