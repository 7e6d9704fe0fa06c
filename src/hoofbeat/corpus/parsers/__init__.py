"""What readers share: the text builder, rows of tables, front matter, and the parsers of XML, HTML and PDF.

The parsers with large dependencies are imported when the first file of their kind is read.
"""
