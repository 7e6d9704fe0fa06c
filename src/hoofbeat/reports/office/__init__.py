"""A report as files for an office: an Excel workbook, a Word document and a one-page summary as PDF.

What writes them comes with the extra `hoofbeat[office]`. The same report gives the same bytes: dates are fixed.
"""
