"""Word and PowerPoint files put together from parts, for what the libraries that write them can't write."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hoofbeat.corpus.parsers.office_package import NAMES

RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DECLARED = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in NAMES.items() if prefix not in {"rel", "cp"})
PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01"
    b"H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82"
)


def relations(links: dict[str, tuple[str, str]]) -> str:
    """A part with relationships: id, kind and target; a target with `://` lies outside."""
    listed = "".join(
        f'<Relationship Id="{id}" Type="{KIND}/{kind}" Target="{target}"'
        + (' TargetMode="External"' if "://" in target else "")
        + "/>"
        for id, (kind, target) in links.items()
    )
    return f'<Relationships xmlns="{RELS}">{listed}</Relationships>'


def packed(path: Path, parts: dict[str, str | bytes]) -> Path:
    """A zip file of these parts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return path


def word_parts(
    body: str,
    *,
    styles: str = "",
    numbering: str = "",
    links: dict[str, tuple[str, str]] | None = None,
    more: dict[str, str | bytes] | None = None,
) -> dict[str, str | bytes]:
    """The parts of a Word file with this body."""
    all_links = {
        "rIdS": ("styles", "styles.xml"),
        "rIdN": ("numbering", "numbering.xml"),
        "rIdF": ("footnotes", "footnotes.xml"),
        "rIdE": ("endnotes", "endnotes.xml"),
    } | (links or {})
    return {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations({"rId1": ("officeDocument", "word/document.xml")}),
        "word/document.xml": f"<w:document {DECLARED}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(all_links),
        "word/styles.xml": f"<w:styles {DECLARED}>{styles}</w:styles>",
        "word/numbering.xml": f"<w:numbering {DECLARED}>{numbering}</w:numbering>",
    } | (more or {})


def paragraph(text: str, properties: str = "", run: str = "") -> str:
    """A paragraph of one run."""
    return (
        f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:rPr>{run}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'
    )


def styled(text: str, style: str) -> str:
    """A paragraph with a style."""
    return paragraph(text, f'<w:pStyle w:val="{style}"/>')


def style(id: str, name: str, more: str = "") -> str:
    """A paragraph style."""
    return f'<w:style w:type="paragraph" w:styleId="{id}"><w:name w:val="{name}"/>{more}</w:style>'
