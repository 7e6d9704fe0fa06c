"""Economy: labels of pairs spread over groups of answers that make the same claims, and how far that holds."""
