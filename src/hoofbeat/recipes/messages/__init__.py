"""Questions people asked: harvested, stripped of who asked, told apart, sorted into topics."""
