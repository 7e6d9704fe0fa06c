"""One polite HTTP client: paced, identified, patient, and able to go on in the middle of a file.

A download goes into a `.part` file with a note beside it of what the server called that version (ETag or
Last-Modified) and how long it is. If it breaks off, the next try asks for the rest with `Range` and `If-Range`
(RFC 9110): a server that has another version by now, or that knows no ranges, sends the whole, and the part begins
anew. Redirects are followed by hand: to the same host or an allowed one, never from https to http.

NCBI asks every client to name its tool and an email address, and to send at most 3 requests a second, 10 with a key;
the same pace is kept with the others. Keys come from the environment only and are written nowhere. Each base address
can be set (option or environment), which is how a mirror is used and how tests run on loopback.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from hoofbeat.errors import UsageError
from hoofbeat.models.pacing import Pacer, backoff_seconds
from hoofbeat.models.wire import retry_after_seconds
from hoofbeat.store.files import output_errors, write_bytes
from hoofbeat.store.tables import UNREADABLE
from hoofbeat.version import __version__

RATE = 3.0
RATE_WITH_KEY = 10.0
MAX_FILE_BYTES = 4 * 1024**3
_EMAIL = re.compile(r"[^@\s<>\"]+@[^@\s<>\"]+\.[^@\s<>\"]+")


class Services(Struct, frozen=True, kw_only=True):
    """Base addresses, without a slash at the end."""

    pmc_cloud: str = "https://pmc-oa-opendata.s3.amazonaws.com"
    pmc_files: str = "https://ftp.ncbi.nlm.nih.gov/pub/pmc/deprecated"
    pmc_ids: str = "https://ftp.ncbi.nlm.nih.gov/pub/pmc/PMC-ids.csv.gz"
    pmc_oa: str = "https://www.ncbi.nlm.nih.gov/pmc/utils/oa/oa.fcgi"
    eutils: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    id_converter: str = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/"
    europe_pmc: str = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    icite: str = "https://icite.od.nih.gov/api"

    @classmethod
    def chosen(cls, given: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None) -> Self:
        """The public hosts, unless `given` or a variable of the environment names another address."""
        variables = os.environ if environment is None else environment
        unknown = sorted({*(given or {})} - {*cls.__struct_fields__})
        if unknown:
            known = ", ".join(cls.__struct_fields__)
            raise UsageError(f"there is no service {', '.join(unknown)}", fix=f"the services are {known}")
        found = {
            name: (given or {}).get(name) or variables.get(base_variable(name)) or default
            for name, default in zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True)
        }
        return cls(**{name: _checked(name, address) for name, address in found.items()})


def base_variable(name: str) -> str:
    """The environment variable that holds a service's base address."""
    return f"HOOFBEAT_{name.upper()}"


class Connection(Struct, frozen=True, kw_only=True):
    """How a fetch behaves on the network. `rate` is requests per second; `key` is NCBI's and never shown."""

    email: str
    services: Services = Services()
    tool: str = "hoofbeat"
    key: str = ""
    rate: float = RATE
    connections: int = 3
    attempts: int = 6
    timeout: float = 60.0
    allowed_hosts: tuple[str, ...] = ()
    largest_file: int = MAX_FILE_BYTES

    @classmethod
    def chosen(
        cls,
        *,
        email: str | None = None,
        rate: float | None = None,
        connections: int = 3,
        allowed_hosts: tuple[str, ...] = (),
        services: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """From options and the environment (`HOOFBEAT_EMAIL` or `NCBI_EMAIL`, `NCBI_API_KEY`)."""
        variables = os.environ if environment is None else environment
        address = (email or variables.get("HOOFBEAT_EMAIL") or variables.get("NCBI_EMAIL") or "").strip()
        if not _EMAIL.fullmatch(address):
            said = f"{address!r} is not an email address" if address else "no email address was given"
            raise UsageError(
                f"{said}: NCBI and Europe PMC ask for one, so that they can write to you before they block you",
                fix="give it with --email, or set the environment variable HOOFBEAT_EMAIL",
            )
        key = variables.get("NCBI_API_KEY", "").strip()
        if rate is not None and not 0 < rate <= 100:
            raise UsageError(f"the rate can't be {rate:g} requests per second", fix="give a rate from 0.01 to 100")
        return cls(
            email=address,
            services=Services.chosen(services, variables),
            key=key,
            rate=rate or (RATE_WITH_KEY if key else RATE),
            connections=max(1, min(connections, 16)),
            allowed_hosts=tuple(host.lower() for host in allowed_hosts),
        )

    @property
    def user_agent(self) -> str:
        """What is sent as User-Agent."""
        return f"{self.tool}/{__version__} (mailto:{self.email})"

    def ncbi(self) -> dict[str, str]:
        """What every request to NCBI's services carries."""
        named = {"tool": self.tool, "email": self.email}
        return {**named, "api_key": self.key} if self.key else named


class ArticleSelection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which articles: by PMC ids, by a query in the service's own language, or by venues and years.

    `venues` are journal titles or their abbreviations; `years` first and last year; `licences` as the services write
    them (`CC BY`, `CC BY-NC`, `CC0`), with or without hyphens; `limit` cuts the list.
    """

    ids: tuple[str, ...] = ()
    query: str = ""
    venues: tuple[str, ...] = ()
    years: tuple[int, int] | None = None
    licences: tuple[str, ...] = ()
    limit: int | None = None

    def check(self) -> None:
        """Raise `UsageError` unless exactly one way of choosing is used."""
        ways = [bool(self.ids), bool(self.query.strip()), bool(self.venues or self.years)]
        if sum(ways) > 1 and not (self.query and not self.ids):
            raise UsageError(
                "ids can't be combined with a query, venues or years", fix="use only one way to choose articles"
            )
        if not any(ways):
            raise UsageError("nothing says which articles to fetch", fix="give --ids, --query, or --venue and --years")
        if self.years and self.years[0] > self.years[1]:
            raise UsageError(
                f"the first year, {self.years[0]}, is after the last, {self.years[1]}", fix="give the first year first"
            )
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"the limit can't be {self.limit}", fix="give a limit of at least 1")

    def record(self) -> dict[str, object]:
        """As it is kept with the folder."""
        value: dict[str, object] = msgspec.to_builtins(self)
        return value


def _checked(name: str, address: str) -> str:
    url = URL(address.strip())
    if url.scheme not in {"http", "https"} or not url.host or url.user:
        raise UsageError(
            f"the address of {name} is not a web address: {address!r}",
            fix=f"write http://host or https://host, as option or in {base_variable(name)}",
        )
    return str(url).rstrip("/") if url.path == "/" or not address.endswith("/") else address.strip()


MAX_ANSWER = 64 * 1024**2
MAX_REDIRECTS = 5
MAX_TRIES = 30
_BLOCK = 1 << 16
_REDIRECTS = {301, 302, 303, 307, 308}
_RANGE = re.compile(r"bytes\s+(?:(\d+)-(\d+)|\*)/(\d+|\*)", re.IGNORECASE)
T = TypeVar("T")


class NotAvailableError(Exception):
    """The service says that it does not have this (404, 410, or in its own words)."""


class FetchError(Exception):
    """It could not be fetched; `passing` says that it may work another time."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing


class _Passing(Exception):
    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class DownloadedFile(Struct, frozen=True, kw_only=True):
    """A file that is there in full: its size and when the server says it was last changed (HTTP's words)."""

    size: int
    updated: str = ""


class _Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a part: the version's name, its whole length, and when it was last changed."""

    validator: str = ""
    total: int | None = None
    updated: str = ""


class Client:
    """Open it with `async with`; every request waits for its turn."""

    def __init__(self, connection: Connection, *, seed: int = 0) -> None:
        self.connection = connection
        self.requests = 0
        self.bytes = 0
        self.troubles = 0
        self._pacer = Pacer(requests_per_minute=60.0 * connection.rate)
        self._jitter = random.Random(seed)  # noqa: S311 - spreads retries
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=min(30.0, self.connection.timeout), sock_read=self.connection.timeout
        )
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.connection.connections, ttl_dns_cache=300),
            timeout=timeout,
            headers={"User-Agent": self.connection.user_agent, "Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=True,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str, params: Mapping[str, str] | list[tuple[str, str]] | None = None) -> bytes:
        """A service's answer, whole and of bounded size. Raises `NotAvailableError` or `FetchError`."""
        address = URL(url).update_query(params or {})

        async def once() -> bytes:
            async with self._answer(address, {}) as response:
                self._judge(response)
                data = bytearray()
                async for block in response.content.iter_chunked(_BLOCK):
                    data += block
                    if len(data) > MAX_ANSWER:
                        raise FetchError(f"the answer is larger than {MAX_ANSWER} bytes")
                self.bytes += len(data)
                return bytes(data)

        return await self._tried(once, lambda: 0)

    async def download(self, url: str, part: Path) -> DownloadedFile:
        """Bring a file into `part`, going on where an earlier try broke off.

        Raises `NotAvailableError` or `FetchError`.
        """

        async def once() -> DownloadedFile:
            return await self._piece(URL(url), part)

        return await self._tried(once, lambda: _size(part))

    async def _piece(self, url: URL, part: Path) -> DownloadedFile:
        have, note = _size(part), _read_note(part)
        if have and note.total == have:
            return DownloadedFile(size=have, updated=note.updated)
        if not note.validator or (note.total is not None and have > note.total):
            have = 0
        headers = {"Range": f"bytes={have}-", "If-Range": note.validator} if have else {}
        async with self._answer(url, headers) as response:
            start = 0
            if response.status == 206 and have:
                start, note = _continued(response, have, note)
            elif response.status == 416 and have:
                match = _RANGE.search(response.headers.get("Content-Range", ""))
                if match and match.group(3) == str(have):
                    return DownloadedFile(size=have, updated=note.updated)
                discard(part)
                raise _Passing("the file on the server has another length than the part: starting again")
            else:
                self._judge(response)
                note = _first_note(response)
            self._refuse_large(note.total or 0)
            if start == 0:
                _begin(part, note)
            size = await self._write(response, part, start)
        if note.total is not None and size != note.total:
            raise _Passing(f"the download stopped at {size} of {note.total} bytes")
        return DownloadedFile(size=size, updated=note.updated)

    async def _write(self, response: aiohttp.ClientResponse, part: Path, start: int) -> int:
        """Append the body; only the disk's errors become an `OutputError`, since the network's are `OSError`s too."""
        size = start
        with output_errors(part):
            stream = part.open("r+b" if start else "wb", buffering=0)
        with stream:
            stream.seek(start)
            async for block in response.content.iter_chunked(_BLOCK):
                size += len(block)
                self._refuse_large(size)
                with output_errors(part):
                    stream.write(block)
                self.bytes += len(block)
            with output_errors(part):
                stream.truncate(size)
                os.fsync(stream.fileno())
        return size

    def _refuse_large(self, size: int) -> None:
        if size > self.connection.largest_file:
            raise FetchError(f"the file is larger than {self.connection.largest_file} bytes")

    @asynccontextmanager
    async def _answer(self, url: URL, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a GET, after its redirects."""
        assert self._session is not None, "the client is not open"
        for _ in range(MAX_REDIRECTS + 1):
            started = await self._pacer.admit(0)
            self.requests += 1
            async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                if response.status in (429, 503):
                    self._pacer.overloaded(started, retry_after_seconds(response.headers.get("Retry-After")))
                if response.status not in _REDIRECTS:
                    yield response
                    return
                location = response.headers.get("Location", "")
                url = redirect_target(url, location, self.connection.allowed_hosts)
        raise FetchError("redirected too often")

    def _judge(self, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status == 200:
            return
        said = f"HTTP {status} for {response.url.path}"
        if status in (404, 410):
            raise NotAvailableError(said)
        if status in (408, 425, 429) or (status >= 500 and status != 501):
            raise _Passing(said, retry_after_seconds(response.headers.get("Retry-After")))
        raise FetchError(said)

    async def _tried(self, once: Callable[[], Awaitable[T]], progress: Callable[[], int]) -> T:
        """Try, wait, try again; a try that brought the file further does not count."""
        attempt = 0
        for _ in range(MAX_TRIES):
            before = progress()
            try:
                return await once()
            except _Passing as err:
                reason, wait = str(err), err.retry_after
            except (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError) as err:
                raise FetchError(f"the address can't be used: {err}") from err
            except TimeoutError:
                reason, wait = f"no answer within {self.connection.timeout:g} s", None
            except (aiohttp.ClientError, ConnectionError) as err:
                reason, wait = f"the connection broke: {_plain(err)}", None
            self.troubles += 1
            attempt = 1 if progress() > before > 0 else attempt + 1
            if attempt >= self.connection.attempts:
                break
            await asyncio.sleep(backoff_seconds(attempt, wait, self._jitter))
        raise FetchError(f"{reason}, after several tries", passing=True)


def redirect_target(url: URL, location: str, allowed: Collection[str]) -> URL:
    """Where a redirect leads: the same host, or an allowed one (`host` or `host:port`), never from https to http."""
    try:
        there = url.join(URL(location)) if location else None
    except ValueError:
        there = None
    if there is None or there.scheme not in {"http", "https"} or not there.host or there.user:
        raise FetchError("redirected to an address that can't be used")
    if url.scheme == "https" and there.scheme == "http":
        raise FetchError("refused: a redirect from https to http")
    host = there.host.lower()
    same = host == url.host and (there.port == url.port or there.scheme == "https")
    if not same and not {*allowed} & {host, f"{host}:{there.port}"}:
        raise FetchError(f"refused: a redirect to another host ({host})")
    return there


def note_of(part: Path) -> Path:
    """Where the note on a part lies."""
    return part.with_name(part.name + ".json")


def discard(part: Path) -> None:
    """Remove a part and its note."""
    part.unlink(missing_ok=True)
    note_of(part).unlink(missing_ok=True)


def _begin(part: Path, note: _Note) -> None:
    """Throw an older part away and note what the new one will be."""
    with output_errors(part):
        part.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
    write_bytes(note_of(part), msgspec.json.encode(note))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_note(part: Path) -> _Note:
    try:
        return msgspec.json.decode(note_of(part).read_bytes(), type=_Note)
    except (OSError, *UNREADABLE):
        return _Note()


def _first_note(response: aiohttp.ClientResponse) -> _Note:
    """A weak ETag does not promise the same bytes, so Last-Modified stands in for it."""
    etag = response.headers.get("ETag", "")
    updated = response.headers.get("Last-Modified", "")
    return _Note(validator=etag if etag.startswith('"') else updated, total=response.content_length, updated=updated)


def _continued(response: aiohttp.ClientResponse, have: int, note: _Note) -> tuple[int, _Note]:
    match = _RANGE.search(response.headers.get("Content-Range", ""))
    if match is None or match.group(1) != str(have):
        raise _Passing("the server sent another range than it was asked for")
    total = note.total if match.group(3) == "*" else int(match.group(3))
    return have, msgspec.structs.replace(note, total=total)


def _plain(err: BaseException) -> str:
    """An error without its address, which could carry a key."""
    text = re.sub(r"https?://\S+", "", str(err)).strip() or type(err).__name__
    return text[:200]
