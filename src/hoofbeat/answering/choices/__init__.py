"""Which option an output chooses, read from the text that models write."""
