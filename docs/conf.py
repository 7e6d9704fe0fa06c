"""How the documentation site is built: `make docs`, or `python -m sphinx -E -W docs build/site`.

Everything that a page needs is beside it: no font, script or picture comes from elsewhere. The search works from a file
as well as from a server.
"""

from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from hoofbeat.version import __version__

project = "Hoofbeat"
author = "Hoofbeat"
version = release = __version__
copyright = "Hoofbeat contributors, Apache-2.0. Research software, not for clinical use"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "notebooks/*.py"]
myst_heading_anchors = 4
nitpicky = True
smartquotes = False  # an option in plain text keeps its two hyphens
html_theme = "furo"
html_title = f"Hoofbeat {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}

CONTENTS = {
    "Start": ["tour", "role_researcher", "role_informatics", "role_clinician", "role_contributor"],
    "Build and measure": [
        "corpora", "recipes", "benchmarks", "retrieval", "answering", "judging", "compare", "leakage", "reports",
    ],
    "Audit sources": [
        "audit", "audit_report", "audit_findings", "audit_trust", "audit_decisions", "audit_economy", "packs",
    ],
    "People and pages": ["web", "review", "exam", "ask"],
    "Models and machines": ["models", "scale", "extending", "python"],
    "Notebooks": ["notebooks/first_study", "notebooks/compare_retrievers", "notebooks/audit_handbooks"],
    "Concepts": ["concepts", "statistics", "reading", "hero", "recipe_steps", "papers", "comparison"],
    "Measured": ["recipe_quality", "audit_experts", "scale_measured"],
    "Reference": ["cli", "python_reference", "artefacts", "glossary", "troubleshooting", "threat_model", "english"],
}  # fmt: skip
"""The pages in order, under the headings of the side bar."""


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give the start page the table of contents: the page itself stays plain Markdown."""
    if docname == app.config.root_doc:
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
            for caption, pages in CONTENTS.items()
        )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    assert Path(app.srcdir).name == "docs"
    app.connect("source-read", add_contents)
    for name in ("lines", "csv"):
        app.add_lexer(name, TextLexer)
