"""Who says what: the synthesis table of an audit, and the tables that others get."""
