"""The recipes of the papers, one file each; a file in this folder that defines `RECIPE` is a recipe."""
