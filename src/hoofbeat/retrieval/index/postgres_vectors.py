"""Vectors in a PostgreSQL database with pgvector, for collections that a team keeps in one place.

    store=postgresql://USER@HOST/DATABASE             32-bit floats
    store=postgresql://USER@HOST/DATABASE#float16     16-bit floats (halfvec)

A collection is loaded once: its table is named by the passages, the encoder and how texts were cut, so whoever comes
later with the same collection encodes and sends nothing. The table appears in one transaction, or not at all.

The server's sums are rounded to 32 bits. So here, too, they only choose candidates, with a margin for the rounding; the
candidates' vectors are fetched and scored in double precision, as `dense_search` scores its own. An exact search gives
the ranking of a local one, bit for bit. `hnsw` takes its candidates from pgvector's graph, and its recall is measured.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import HoofbeatError, InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval.index.dense_kernels import QueryRankings, joined, plain, rankings
from hoofbeat.retrieval.index.dense_search import ApproximateSearcher, DenseSearcher, approximate_settings
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, Rankings
from hoofbeat.retrieval.index.vector_storage import Storage, VectorRows, check_storage
from hoofbeat.store.postgres import PostgresServer, error_code, is_lost, is_postgres

Vectors = NDArray[np.float32]
T = TypeVar("T")
_EXTENSION = "vector"
_NO_EXTENSION = ("0A000", "58P01", "42501", "42704")
_MIN_VERSION = (0, 8)  # 0.6 returned 2 of 10 rows of a search in some documents
_REGISTER = """
CREATE TABLE IF NOT EXISTS hoofbeat_collections (
    name text PRIMARY KEY,
    encoder text NOT NULL,
    storage text NOT NULL,
    dimension integer NOT NULL,
    rows bigint NOT NULL,
    longest double precision NOT NULL,
    facts text NOT NULL
)
"""
_PREPARING = 1215262568  # any number that nobody else takes in this database
_TYPES: dict[Storage, tuple[str, str]] = {"float32": ("vector", ">f4"), "float16": ("halfvec", ">f2")}
_SENT = 4096  # rows at a time
_NEIGHBOURS = 32
_BUILD_EFFORT = 80
_MAX_EFFORT = 1000  # pgvector's own limit
_MIN_SPARE = 16
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"


def check_store(store: str) -> None:
    """Refuse what is neither a way to keep vectors nor a database."""
    if is_postgres(store):
        _storage_of(store)
        PostgresServer(store.partition("#")[0])
    else:
        check_storage(store)


def _storage_of(store: str) -> Storage:
    storage = check_storage(store.partition("#")[2] or "float32")
    if storage not in _TYPES:
        raise UsageError(f"a database can't store vectors as {storage}", fix=f"use one of {', '.join(_TYPES)} after #")
    return storage


class LoadedVectors(NamedTuple):
    """What is loaded into a table: the vectors, the passage that each belongs to, and what is known of them (JSON)."""

    vectors: NDArray[Any]
    owners: Indices
    facts: str


class VectorTable:
    """The table of one collection; `rows` is how many vectors it has, `longest` the length of the longest."""

    def __init__(self, store: str, key: Sequence[object], encoder: str) -> None:
        """`key` is everything that the vectors depend on."""
        self.storage = _storage_of(store)
        self.server = PostgresServer(store.partition("#")[0])
        self.name = "hoofbeat_vectors_" + hashlib.sha256(repr((*key, self.storage)).encode()).hexdigest()[:24]
        self.type, self._wire = _TYPES[self.storage]
        self._encoder = encoder
        self._prepared: dict[str, Any] = {}
        self._settings: dict[str, str] = {}
        self.connection = self.server.connect()
        self.rows = self.dimension = 0
        self.longest = 0.0
        self.facts = ""
        try:
            with self.told():
                self._prepare()
        except BaseException:
            self.connection.close()
            raise

    @contextmanager
    def told(self) -> Iterator[None]:
        """What the server says when it fails, in our words."""
        try:
            yield
        except HoofbeatError:
            raise
        except Exception as err:
            raise self.server.error(err) from None

    def _prepare(self) -> None:
        """Have pgvector and the list of collections there; a user who may only use them is not asked to make them."""
        there = (
            "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = :extension), to_regclass('hoofbeat_collections')"
        )
        if None in (found := self.connection.run(there, extension=_EXTENSION)[0]) or not found[0]:
            with self._transaction(_PREPARING):
                self._make_extension()
                self.connection.run(_REGISTER)
        [[version]] = self.connection.run(f"SELECT extversion FROM pg_extension WHERE extname = '{_EXTENSION}'")  # noqa: S608
        if tuple(int(part) for part in version.split(".")[:2]) < _MIN_VERSION:
            raise UsageError(
                f"the database has pgvector {version}, but 0.8 or newer is needed",
                where=self.server.where,
                fix="upgrade pgvector on the server, then run: ALTER EXTENSION vector UPDATE",
            )

    def _make_extension(self) -> None:
        try:
            self.connection.run(f"CREATE EXTENSION IF NOT EXISTS {_EXTENSION}")
        except Exception as err:
            if error_code(err) not in _NO_EXTENSION:
                raise
            raise UsageError(
                "the database has no pgvector, which dense search in PostgreSQL needs",
                where=self.server.where,
                fix="install pgvector on the server, and have its administrator run: CREATE EXTENSION vector",
            ) from None

    @contextmanager
    def _transaction(self, number: int) -> Iterator[None]:
        """A transaction that waits for others with the same number."""
        self.connection.run("BEGIN")
        try:
            self.connection.run(f"SELECT pg_advisory_xact_lock({number})")
            yield
            self.connection.run("COMMIT")
        except BaseException:
            with suppress(Exception):
                self.connection.run("ROLLBACK")
            raise

    def open(self, make: Callable[[], LoadedVectors], progress: Progress = SILENT) -> Indices:
        """Load the vectors unless they are there; returns the passage that each belongs to.

        Of several who load the same collection at once, one does, and the others wait for it.
        """
        with self.told():
            if not self._registered():
                made = make()
                with self._transaction(int(self.name[-15:], 16)):
                    if not self._registered():
                        self._load(made, progress)
                        self._registered()
            query = f"SELECT string_agg(int4send(owner), ''::bytea ORDER BY place) FROM {self.name}"  # noqa: S608
            return np.frombuffer(self.connection.run(query)[0][0] or b"", ">i4").astype(np.int64)

    def _registered(self) -> bool:
        found = self.connection.run(
            "SELECT dimension, rows, longest, facts FROM hoofbeat_collections WHERE name = :name", name=self.name
        )
        if found:
            self.dimension, self.rows, self.longest, self.facts = found[0]
        return bool(found)

    def _load(self, made: LoadedVectors, progress: Progress) -> None:
        held = VectorRows(made.vectors, self.storage)
        self.connection.run(
            f"CREATE TABLE {self.name} "
            f"(place integer PRIMARY KEY, owner integer NOT NULL, vector {self.type}({held.dimension}) NOT NULL)"
        )
        with progress.task("Load vectors into PostgreSQL", len(held)) as task:
            for start in range(0, len(held), _SENT):
                rows = self._packed(start, made.owners[start : start + _SENT], held.block(slice(start, start + _SENT)))
                stream = io.BytesIO(_COPY_HEADER + rows + _COPY_END)
                self.connection.run(f"COPY {self.name} FROM STDIN WITH (FORMAT BINARY)", stream=stream)
                task.advance(min(_SENT, len(held) - start))
        self.connection.run(
            "INSERT INTO hoofbeat_collections VALUES (:name, :encoder, :storage, :dimension, :rows, :longest, :facts)",
            name=self.name,
            encoder=self._encoder,
            storage=self.storage,
            dimension=held.dimension,
            rows=len(held),
            longest=held.longest,
            facts=made.facts,
        )

    def _packed(self, start: int, owners: Indices, rows: Vectors) -> bytes:
        """Rows as PostgreSQL's binary COPY reads them: three fields, each with its length before it."""
        dimension = rows.shape[1]
        layout = np.dtype(
            [
                ("fields", ">i2"),
                *(("place size", ">i4"), ("place", ">i4"), ("owner size", ">i4"), ("owner", ">i4")),
                *(("size", ">i4"), ("dimension", ">i2"), ("unused", ">i2"), ("vector", self._wire, (dimension,))),
            ]
        )
        packed = np.zeros(len(rows), layout)
        packed["fields"], packed["place size"], packed["owner size"] = 3, 4, 4
        packed["place"], packed["owner"] = np.arange(start, start + len(rows)), owners
        packed["size"], packed["dimension"] = 4 + np.dtype(self._wire).itemsize * dimension, dimension
        packed["vector"] = rows
        return packed.tobytes()

    def index(self) -> None:
        """Build pgvector's graph, unless it is there."""
        operators = f"{self.type}_ip_ops"
        with self.told():
            self.connection.run(
                f"CREATE INDEX IF NOT EXISTS {self.name}_hnsw ON {self.name} USING hnsw (vector {operators}) "
                f"WITH (m = {_NEIGHBOURS}, ef_construction = {_BUILD_EFFORT})"
            )

    def set(self, **settings: str) -> None:
        """Settings of the session, also of one that comes after a restart of the server."""
        if not settings.items() <= self._settings.items():
            self._settings |= settings
            self._on_line(self._apply)

    def _apply(self) -> None:
        for name, value in self._settings.items():
            self.connection.run(f"SET {name.replace('__', '.')} = {value}")

    def run(self, statement: str, **values: object) -> list[Any]:
        """Run a query, which is prepared once."""

        def work() -> list[Any]:
            if statement not in self._prepared:
                self._prepared[statement] = self.connection.prepare(statement)
            return self._prepared[statement].run(**values) or []

        return self._on_line(work)

    def _on_line(self, work: Callable[[], T]) -> T:
        """Do something, again on a new connection where the server was restarted."""
        with self.told():
            try:
                return work()
            except Exception as err:
                if not is_lost(err):
                    raise
            self.connection, self._prepared = self.server.connect(), {}
            self._apply()
            return work()

    def unpacked(self, sent: Sequence[bytes]) -> Vectors:
        """Vectors as the server sends them, in 32-bit floats; four bytes in front say how long each is."""
        if not sent:
            return np.empty((0, self.dimension), np.float32)
        table = np.frombuffer(b"".join(each[4:] for each in sent), self._wire)
        return table.reshape(len(sent), self.dimension).astype(np.float32)


class _ServerRows:
    """What searches ask of rows (`VectorRows`), of rows that are in a table."""

    def __init__(self, table: VectorTable) -> None:
        self.table = table
        self.storage = table.storage
        self.dimension = table.dimension
        self.longest = table.longest

    def __len__(self) -> int:
        return self.table.rows

    def block(self, which: Indices) -> Vectors:
        """Some rows, in the order of their places."""
        table = self.table
        statement = f"SELECT {table.type}_send(vector) FROM {table.name} WHERE {_AMONG} ORDER BY place"  # noqa: S608
        return table.unpacked([row[0] for row in table.run(statement, places=_array(which))])


_AMONG = "place = ANY(CAST(:places AS integer[]))"


class PostgresSearcher(DenseSearcher):
    """Exact search in a table."""

    def __init__(self, table: VectorTable) -> None:
        self.rows = _ServerRows(table)  # type: ignore[assignment]
        self._table = table

    def describe(self) -> dict[str, object]:
        """How vectors are stored and searched, as a manifest records it."""
        return {**super().describe(), **_place(self._table)}

    def _nearest(self, queries: Vectors, k: int, allowed: Indices | None) -> list[Ranking]:
        return nearest(self._table, queries, k, allowed, self._margins(queries))

    def _by_partition(self, queries: Vectors, k: int, spans: list[tuple[int, int]]) -> list[Rankings]:
        return by_partition(self, queries, k, spans)


class PostgresHnsw(ApproximateSearcher):
    """Candidates from pgvector's graph; a search in some documents is exact."""

    kind = "hnsw"

    def __init__(self, table: VectorTable, effort: int) -> None:
        self.rows = _ServerRows(table)  # type: ignore[assignment]
        self.recalls = {}
        self.measured_on = ""
        self.effort = effort
        self._table = table
        table.index()
        # the planner would search a small table without its graph
        table.set(enable_seqscan="off", hnsw__iterative_scan="relaxed_order")

    def settings(self) -> dict[str, object]:
        """Neighbours of a node, the effort of building and searching, and the table."""
        efforts = {"neighbours": _NEIGHBOURS, "build effort": _BUILD_EFFORT, "effort": self.effort}
        return {**efforts, **_place(self._table)}

    def _search(self, queries: Vectors, k: int) -> list[Ranking]:
        table, seen = self._table, min(max(self.effort, k), len(self))
        if not seen:
            return [Ranking.empty() for _ in queries]
        table.set(hnsw__ef_search=str(min(seen, _MAX_EFFORT)))
        statement = (
            f"SELECT place, {table.type}_send(vector) FROM {table.name} "  # noqa: S608
            f"ORDER BY vector <#> CAST(:query AS {table.type}) LIMIT :count"
        )
        return [_ranked(table, query, table.run(statement, query=_text(query), count=seen), k) for query in queries]

    def _nearest(self, queries: Vectors, k: int, allowed: Indices | None) -> list[Ranking]:
        return nearest(self._table, queries, k, allowed, self._margins(queries))

    def _by_partition(self, queries: Vectors, k: int, spans: list[tuple[int, int]]) -> list[Rankings]:
        return by_partition(self, queries, k, spans)


def nearest(table: VectorTable, queries: Vectors, k: int, allowed: Indices | None, margins: Floats) -> list[Ranking]:
    """The `k` rows nearest to each query, exactly.

    Some more than k are fetched, until those that follow are further away than the server's rounding can hide.
    """
    among = f"WHERE {_AMONG} " if allowed is not None else ""
    values = {"places": _array(allowed)} if allowed is not None else {}
    # `+ 0` keeps the planner from the graph, which would not find all
    statement = (
        f"SELECT place, {table.type}_send(vector), vector::vector <#> CAST(:query AS vector) AS distance "  # noqa: S608
        f"FROM {table.name} {among}ORDER BY (vector::vector <#> CAST(:query AS vector)) + 0, place LIMIT :count"
    )
    total = table.rows if allowed is None else len(allowed)
    ranked = []
    for query, margin in zip(queries, margins.tolist(), strict=True):
        count = k + max(_MIN_SPARE, k // 4)
        while True:
            found = table.run(statement, query=_text(query), count=count, **values)
            if len(found) < count or count >= total or found[-1][2] - found[k - 1][2] > margin:
                break
            count *= 2
        ranked.append(_ranked(table, query, found, k))
    return ranked


def by_partition(searcher: DenseSearcher, queries: Vectors, k: int, spans: list[tuple[int, int]]) -> list[Rankings]:
    """The nearest rows within each of these stretches of rows."""
    found = [QueryRankings.of(searcher._nearest(queries, k, np.arange(start, end))) for start, end in spans]
    return joined(found, len(queries))


def _ranked(table: VectorTable, query: Vectors, found: Sequence[Sequence[Any]], k: int) -> Ranking:
    """Score what the server found, in double precision, and rank it; equal scores in the order of the collection."""
    if not found:
        return Ranking.empty()
    rows = table.unpacked([row[1] for row in found])
    places = np.array([row[0] for row in found], np.int64)
    owners = np.zeros(len(places), np.int64)
    scores = plain(rows, np.arange(len(rows)), query[None].astype(np.float64), owners)
    return rankings(owners, places, scores, 1, k)[0]


def open_table(
    store: str,
    key: Sequence[object],
    encoder: str,
    make: Callable[[], LoadedVectors],
    *,
    search: str = "exact",
    progress: Progress = SILENT,
) -> tuple[DenseSearcher, Indices, str]:
    """The search over a collection in a database, loaded if need be; with the rows' passages and the loaded facts."""
    kind, effort = approximate_settings(search)
    if kind == "ivf":
        raise UsageError("vectors in PostgreSQL can be searched by exact or hnsw only", fix="leave search=ivf out")
    table = VectorTable(store, key, encoder)
    owners = table.open(make, progress)
    if len(owners) != table.rows:
        raise InputError(
            f"the table has {len(owners)} vectors instead of {table.rows}",
            where=f"{table.server.where}, {table.name}",
            fix=f"remove it (DROP TABLE {table.name}) and its line in hoofbeat_collections, then run the command again",
        )
    if not kind:
        return PostgresSearcher(table), owners, table.facts
    found = PostgresHnsw(table, effort)
    found.measure()
    return found, owners, table.facts


def _place(table: VectorTable) -> dict[str, object]:
    return {"database": table.server.where, "table": table.name}


def _text(query: Vectors) -> str:
    return f"[{','.join(map(repr, query.tolist()))}]"


def _array(places: Indices) -> str:
    return f"{{{','.join(map(str, places.tolist()))}}}"
