"""Fetching: open-access articles and their citations from PMC, Europe PMC and NLM's services, into a folder.

Each function takes a selection, a target folder and a `Connection`, and can be interrupted at any moment: the same
call goes on where it was and leaves the same folder. `corpus import FOLDER/articles` reads what was fetched.
"""
