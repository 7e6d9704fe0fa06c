"""A visitor of the pages without a browser, and hostile folders to show them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from hoofbeat.records import Document, Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.store.tables import write_jsonl
from hoofbeat.web.app import create_app
from hoofbeat.web.site import Site

__all__ = ["HOSTILE", "PIXEL", "Visitor", "a_benchmark", "a_corpus", "a_site"]

HOSTILE = (
    '<script>window.owned=1</script>"><img src=x onerror="window.owned=2"><svg onload=window.owned=3>'
    "'\u202egnp.exe\u202c \u2066hidden\u2069 \x07 {{ 7*7 }} </title></style><style>body{display:none}</style> "
    "javascript:alert(1)"
)
PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00"
    b"\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa7\x9a\xa0\xa0\x00\x00\x00\x00IEND\xaeB`\x82"
)


class Visitor:
    """Somebody who looks at the pages of a site and fills in its forms."""

    def __init__(self, site: Site) -> None:
        here = {"Origin": site.settings.base_url}
        self._client = TestClient(
            create_app(site), base_url=site.settings.base_url, headers=here, follow_redirects=False
        )

    def get(self, path: str) -> Any:
        """A page, once it is prepared: on a busy machine it may say first that it is not."""
        deadline = time.monotonic() + 120
        while _unready(found := self.get_now(path)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def get_now(self, path: str) -> Any:
        """A page, also one that says that it is being prepared."""
        return self._client.get(path)

    def post(self, path: str, **fields: str) -> Any:
        """Send a form, with the token that pages carry; redirects are not followed."""
        found = re.search(r'<meta name="csrf" content="([^"]+)"', self.get("/").text)
        assert found, "pages carry a token against forged requests"
        return self._client.post(path, data={"csrf": found[1], **fields})


def _unready(found: Any) -> bool:
    """Whether a page is not prepared, or is but its figures are not."""
    return found.status_code in (202, 503) or "Hoofbeat is calculating" in found.text


def a_site(*paths: Path, **parts: object) -> Site:
    """A site of these folders."""
    return Site(library=FolderLibrary(paths), **parts)  # type: ignore[arg-type]


def a_corpus(
    target: Path, documents: Sequence[Document], *, files: Mapping[str, bytes] | None = None, title: str = "A corpus"
) -> Artefact:
    """A corpus of these documents and files."""
    with create(target, replace_kind="corpus") as draft:
        write_jsonl(draft.path / "documents.jsonl", documents)
        for name, content in (files or {}).items():
            write_bytes(draft.path / name, content)
        draft.finish(Manifest(kind="corpus", title=title, counts=Counts(kept=len(documents))))
    return open_artefact(target)


def a_benchmark(
    target: Path, questions: Sequence[Question], *, inputs: Sequence[InputRef] = (), title: str = "A benchmark"
) -> Artefact:
    """A benchmark of these questions."""
    with create(target, replace_kind="benchmark") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        draft.finish(Manifest(kind="benchmark", title=title, inputs=list(inputs), counts=Counts(kept=len(questions))))
    return open_artefact(target)
