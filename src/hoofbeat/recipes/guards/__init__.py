"""What keeps a question honest: quotes located in their source, leaks found, options that differ, sound words."""
