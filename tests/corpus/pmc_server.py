"""PMC, Europe PMC and NLM's services on a loopback socket, as small as tests need and as faulty as they ask.

Files are served with ETag, Last-Modified and byte ranges. `faults[path]` is a list of what shall happen to the next
requests for that path, one each: `drop:N` sends N bytes and cuts the connection, `503`, `404`, `429:SECONDS` (with
Retry-After), `no-range` answers 200 to a Range, `new-etag` is another version from now on, `long:N` states N bytes too
many, `short:N` states N too few, `corrupt` spoils the bytes, `slow:SECONDS` waits before each kilobyte or so,
`redirect:URL`. What was asked and sent is in `seen`.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import tarfile
import threading
import time
from typing import Any, NamedTuple, Self
from xml.sax.saxutils import escape

from aiohttp import web

__all__ = ["PmcServer", "Seen", "package"]

MOST_REQUESTS = 20_000
UPDATED = "Wed, 04 Mar 2026 05:06:07 GMT"


class Seen(NamedTuple):
    """One request: its path and query, when it came, the range asked for, who asked, how much of a body was sent."""

    path: str
    query: dict[str, str]
    at: float
    range: str
    agent: str
    sent: list[int]


def package(id: str, files: dict[str, bytes]) -> bytes:
    """A package as PMC made them: a gzipped tar with one folder, the same bytes for the same files."""
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{id}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return raw.getvalue()


class PmcServer:
    """A server on 127.0.0.1 in a thread of its own; open it with `with`."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[str]] = {}
        self.seen: list[Seen] = []
        self.licences: dict[str, str] = {}
        self.citations: dict[str, list[dict[str, Any]]] = {}
        self.types: dict[str, list[str]] = {}
        self.pmids: dict[str, str] = {}
        self.search: list[dict[str, Any]] = []
        self.search_page = 100
        self.most_at_once = 0
        self._at_once = 0
        self.url = ""
        self._versions: dict[str, int] = {}
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(20), "the server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def services(self) -> dict[str, str]:
        """Every service's address, here."""
        return {
            "pmc_cloud": f"{self.url}/cloud",
            "pmc_files": f"{self.url}/files",
            "pmc_ids": f"{self.url}/files/PMC-ids.csv.gz",
            "pmc_oa": f"{self.url}/oa.fcgi",
            "eutils": f"{self.url}/eutils",
            "id_converter": f"{self.url}/idconv/",
            "europe_pmc": f"{self.url}/epmc",
            "icite": f"{self.url}/icite",
        }

    def asked(self, path: str) -> list[Seen]:
        """The requests for a path, in order."""
        return [each for each in self.seen if each.path == path]

    def add_article(self, id: str, files: dict[str, bytes], *, licence: str = "CC BY", version: int = 1) -> None:
        """Serve an article: as a package, in the cloud, and (its first XML) at Europe PMC."""
        self.files[f"/files/oa_package/0a/1b/{id}.tar.gz"] = package(id, files)
        self.licences[id] = licence
        prefix = f"/cloud/{id}.{version}"
        xml = next(data for name, data in files.items() if name.endswith("xml"))
        self.files[f"{prefix}/{id}.{version}.xml"] = xml
        self.files[f"{prefix}/{id}.{version}.txt"] = b"plain text"
        self.files[f"/epmc/{id}/fullTextXML"] = xml
        for name, data in files.items():
            if not name.endswith("xml"):
                self.files[f"{prefix}/{name}"] = data
        md5 = hashlib.md5(xml, usedforsecurity=False).hexdigest()
        metadata = {
            "pmcid": id,
            "version": version,
            "is_pmc_openaccess": True,
            "is_retracted": False,
            "license_code": licence,
            "xml_url": f"s3://pmc-oa-opendata/{id}.{version}/{id}.{version}.xml?md5={md5}",
        }
        self.files[f"{prefix}/{id}.{version}.json"] = json.dumps(metadata).encode()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        app.router.add_get("/oa.fcgi", self._oa)
        app.router.add_get("/cloud/", self._listing)
        app.router.add_get("/eutils/{tool}.fcgi", self._eutils)
        app.router.add_get("/idconv/", self._idconv)
        app.router.add_get("/epmc/search", self._search)
        app.router.add_get("/epmc/{source}/{id}/citations", self._citations)
        app.router.add_get("/icite/pubs", self._icite)
        app.router.add_get("/{path:.*}", self._file)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    def _note(self, request: web.Request) -> Seen:
        assert len(self.seen) < MOST_REQUESTS, "a client ran wild"
        asked = request.headers
        seen = Seen(
            request.path,
            dict(request.query),
            time.monotonic(),
            asked.get("Range", ""),
            asked.get("User-Agent", ""),
            [],
        )
        self.seen.append(seen)
        return seen

    def _fault(self, path: str) -> tuple[str, str]:
        waiting = self.faults.get(path) or [""]
        kind, _, value = (waiting.pop(0) if self.faults.get(path) else "").partition(":")
        return kind, value

    def _early(self, kind: str, value: str) -> web.Response | None:
        if kind == "redirect":
            return web.Response(status=302, headers={"Location": value})
        if kind in {"404", "410", "403", "500", "503"}:
            return web.Response(status=int(kind), text="trouble")
        if kind == "429":
            return web.Response(status=429, headers={"Retry-After": value}, text="too many requests")
        return None

    async def _file(self, request: web.Request) -> web.StreamResponse:
        seen = self._note(request)
        kind, value = self._fault(request.path)
        early = self._early(kind, value)
        if early is not None:
            return early
        data = self.files.get(request.path)
        if data is None:
            return web.Response(status=404, text="no such file")
        if kind == "new-etag":
            self._versions[request.path] = self._versions.get(request.path, 0) + 1
        if kind == "corrupt":
            data = bytes(byte ^ 0x5A for byte in data)
        etag = f'"{hashlib.sha256(self.files[request.path]).hexdigest()[:16]}-{self._versions.get(request.path, 0)}"'
        start = 0
        if seen.range and kind != "no-range" and request.headers.get("If-Range") == etag:
            start = int(seen.range.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                return web.Response(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
        return await self._send(request, seen, data, start, etag, kind, value)

    async def _send(
        self, request: web.Request, seen: Seen, data: bytes, start: int, etag: str, kind: str, value: str
    ) -> web.StreamResponse:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._body(request, seen, data, start, etag, kind, value)
        finally:
            self._at_once -= 1

    async def _body(
        self, request: web.Request, seen: Seen, data: bytes, start: int, etag: str, kind: str, value: str
    ) -> web.StreamResponse:
        body = data[start:]
        response = web.StreamResponse(status=206 if start else 200, headers={"ETag": etag, "Last-Modified": UPDATED})
        if start:
            response.headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        stated = {"long": int(value or 0), "short": -int(value or 0)}.get(kind, 0) if kind in {"long", "short"} else 0
        response.content_length = len(body) + stated
        await response.prepare(request)
        part = body[: int(value)] if kind == "drop" else body[: response.content_length]
        step = 1024 if kind == "slow" else 1 << 16
        for place in range(0, len(part), step):
            if kind == "slow":
                await asyncio.sleep(float(value))
            block = part[place : place + step]
            await response.write(block)
            seen.sent.append(len(block))
        if kind in {"drop", "long"}:
            await asyncio.sleep(0.1)
            assert request.transport is not None
            request.transport.close()
        return response

    async def _oa(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        early = self._early(*self._fault(request.path))
        if early is not None:
            return early
        id = request.query["id"]
        path = f"oa_package/0a/1b/{id}.tar.gz"
        if f"/files/{path}" not in self.files:
            return _xml(f'<OA><error code="idIsNotOpenAccess">{escape(id)} is not open access</error></OA>')
        href = f"ftp://ftp.ncbi.nlm.nih.gov/pub/pmc/{path}"
        link = f'<link format="tgz" updated="2026-03-04 05:06:07" href="{href}"/>'
        record = f'<record id="{id}" citation="J. 2026" license="{self.licences[id]}" retracted="no">{link}</record>'
        return _xml(f'<OA><records returned-count="1" total-count="1">{record}</records></OA>')

    async def _listing(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        prefix = request.query["prefix"]
        keys = sorted(path.removeprefix("/cloud/") for path in self.files if path.startswith(f"/cloud/{prefix}"))
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-03-04T05:06:07.000Z</LastModified>"
            f"<Size>{len(self.files['/cloud/' + key])}</Size></Contents>"
            for key in keys
        )
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        return _xml(f'<ListBucketResult xmlns="{space}"><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>')

    async def _search(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        early = self._early(*self._fault(request.path))
        if early is not None:
            return early
        mark = request.query["cursorMark"]
        start = 0 if mark == "*" else int(mark)
        results = self.search[start : start + self.search_page]
        further = start + len(results)
        answer: dict[str, Any] = {"hitCount": len(self.search), "resultList": {"result": results}}
        answer["nextCursorMark"] = str(further) if further < len(self.search) else mark
        return web.json_response(answer)

    async def _citations(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        early = self._early(*self._fault(request.path))
        if early is not None:
            return early
        id, size, page = request.match_info["id"], int(request.query["pageSize"]), int(request.query["page"])
        if id not in self.citations:
            return web.Response(status=404, text="unknown")
        listed = self.citations[id]
        answer = {
            "version": "6.9",
            "hitCount": len(listed),
            "request": {"id": id, "source": request.match_info["source"], "offSet": (page - 1) * size},
            "citationList": {"citation": listed[(page - 1) * size : page * size]},
        }
        return web.json_response(answer)

    async def _icite(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        wanted = request.query["pmids"].split(",")
        assert len(wanted) <= 200
        rows = [
            {"pmid": int(id), "cited_by": [int(each["id"]) for each in self.citations[id]]}
            for id in wanted
            if id in self.citations
        ]
        return web.json_response({"meta": {}, "data": rows})

    async def _idconv(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        records = []
        for id in request.query["ids"].split(","):
            known = self.pmids.get(id)
            failed = {"requested-id": id, "status": "error", "errmsg": "not in PMC"}
            found = {"requested-id": id, request.query["idtype"]: id, "pmid": int(known or 0)}
            records.append(found if known else failed)
        return web.json_response({"status": "ok", "records": records})

    async def _eutils(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        tool = request.match_info["tool"]
        if tool == "esearch":
            ids = [each["pmcid"].removeprefix("PMC") for each in self.search]
            start, size = int(request.query["retstart"]), min(int(request.query["retmax"]), self.search_page)
            return web.json_response({"esearchresult": {"count": str(len(ids)), "idlist": ids[start : start + size]}})
        if tool == "esummary":
            ids = request.query["id"].split(",")
            return web.json_response(
                {"result": {"uids": ids, **{id: {"pubtype": self.types.get(id, [])} for id in ids}}}
            )
        linksets = []
        for id in request.query.getall("id"):
            links = [each["id"] for each in self.citations.get(id, [])]
            base = {"dbto": "pubmed", "linkname": "pubmed_pubmed_citedin", "links": links}
            linksets.append({"dbfrom": "pubmed", "ids": [id], **({"linksetdbs": [base]} if links else {})})
        return web.json_response({"linksets": linksets})


def _xml(text: str) -> web.Response:
    return web.Response(text=f'<?xml version="1.0" encoding="UTF-8"?>{text}', content_type="application/xml")
