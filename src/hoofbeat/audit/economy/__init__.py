"""Economy: answers sorted into positions, labels carried between them, and a bound on how many of these are wrong."""
