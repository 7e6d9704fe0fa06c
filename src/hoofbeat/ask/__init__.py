"""Ask: a case in free text, similar reports, an answer with its citations, and whether sources agree."""
