"""Review: people look at items, say what they find, and what they said goes back to where it is used."""
