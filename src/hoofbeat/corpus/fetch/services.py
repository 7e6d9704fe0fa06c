"""Whom a fetch talks to, who it says it is, and how much it may ask: the services' addresses, identity and pace.

NCBI asks every client to name its tool and an email address, and to send at most 3 requests a second, 10 with a key;
the same pace is kept with the others. Keys come from the environment only and are written nowhere. Each base address
can be set (option or environment), which is how a mirror is used and how tests run on loopback.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Self

import msgspec
from msgspec import Struct
from yarl import URL

from hoofbeat.errors import UsageError
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
    """How a fetch behaves on the network. `rate` is requests a second; `key` is NCBI's and never shown."""

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
                f"{said}: NCBI and Europe PMC ask every client to name one, so that they can write before they block",
                fix="give it with --email, or set the environment variable HOOFBEAT_EMAIL",
            )
        key = variables.get("NCBI_API_KEY", "").strip()
        if rate is not None and not 0 < rate <= 100:
            raise UsageError(f"a rate of {rate:g} requests a second makes no sense", fix="name one from 0.01 to 100")
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
            raise UsageError("ids stand alone", fix="give ids, or a query (with venues and years), or venues and years")
        if not any(ways):
            raise UsageError("nothing says which articles to fetch", fix="give --ids, --query, or --venue and --years")
        if self.years and self.years[0] > self.years[1]:
            raise UsageError(f"the years {self.years[0]} to {self.years[1]} run backwards", fix="first year, then last")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"a limit of {self.limit} fetches nothing", fix="give a limit of at least 1")

    def record(self) -> dict[str, object]:
        """As it is kept with the folder."""
        value: dict[str, object] = msgspec.to_builtins(self)
        return value


def _checked(name: str, address: str) -> str:
    url = URL(address.strip())
    if url.scheme not in {"http", "https"} or not url.host or url.user:
        raise UsageError(
            f"the address of {name} is no web address: {address!r}",
            fix=f"write http://host or https://host, as option or in {base_variable(name)}",
        )
    return str(url).rstrip("/") if url.path == "/" or not address.endswith("/") else address.strip()
