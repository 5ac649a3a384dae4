"""One small index with all there is in it: segments, dead rows, a tail; and all that a reader can ask of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from wellhead import Document, Index
from wellhead.backends.stores.embedded import keeper
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.errors import WellheadError
from wellhead.records import Hits
from wellhead.testing.fakes import HashEmbedder

TENANTS = ("acme", "globex")
DOCUMENTS = 41
_WORDS = (
    "reset",
    "password",
    "invoice",
    "refund",
    "latency",
    "cluster",
    "shard",
    "replica",
    "token",
    "quota",
    "backup",
)
_QUERIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "hybrid": ("reset password of the shard FRY-4012", {}),
    "lexical": ("brulee refund rare13x quota edition", {"mode": "lexical", "k": 40}),
    "dense": ("the second part", {"mode": "dense", "k": 40, "cut": "off"}),
    "rrf": ("latency cluster", {"fusion": "rrf"}),
    "filtered": ("shared words token", {"filters": {"area": "area2", "n": {"$gt": 9}}, "cut": "off"}),
    "a list": ("invoice", {"filters": {"tags": "t1"}, "per_document": 1, "fusion": "convex", "cut": "hit"}),
}

Answers = Mapping[tuple[str, str], object]


def document(n: int, edition: int = 0) -> Document:
    """The n-th document: two passages, metadata of every type, letters beyond ASCII; two of three belong to acme."""
    words = [_WORDS[(7 * n + i * i + edition) % len(_WORDS)] for i in range(9)]
    text = (
        f"# Guide {n}\n\n{' '.join(words[:4])} rare{n}x edition{edition}. Crème brûlée {n}.\n\n"
        f"# Part two\n\n{' '.join(words[4:])} shared words, FRY-{4000 + n}.\n"
    )
    return Document(
        id=f"guides/{n:02}.md",
        text=text,
        title=f"Guide {n}",
        uri=f"https://example.org/{n}",
        media_type="text/markdown",
        metadata={
            "tenant": TENANTS[n % 3 == 0],
            "area": f"area{n % 4}",
            "n": n,
            "draft": bool(n % 2),
            "x": n / 2,
            "tags": (f"t{n % 2}", "all"),
        },
        language="de" if n % 5 == 0 else "en",
    )


@contextmanager
def small_segments(rows: int) -> Iterator[None]:
    """Segments from so many rows on, and no merge of neighbours that are merely idle."""
    with patch.object(keeper, "FLUSH_ROWS", rows), patch.object(keeper, "_IDLE_RATIO", 1):
        yield


def build(folder: Path) -> None:
    """Three segments (48, 20 and 10 rows, some of them dead) and a tail of 8 numbers, one document of it deleted."""
    with small_segments(10), open_sample(folder) as index:
        for first, last in ((0, 24), (24, 34), (34, 39)):
            index.add(document(n) for n in range(first, last))
            settle(index)
        index.scoped(tenant="acme").remove(document(1).id)
        index.add([document(20, edition=1), document(39), document(40), document(41)])
        index.scoped(tenant="acme").remove(document(41).id)
        settle(index)


def open_sample(folder: Path | str, *, read_only: bool = False) -> Index:
    """The sample in a folder, or a new index like it."""
    return Index.open(folder, embedder=HashEmbedder(), languages=["en", "de"], scope_key="tenant", read_only=read_only)


def settle(index: Index) -> None:
    """Wait until the segments are in shape; raises what went wrong."""
    index._house.store.settle()  # type: ignore[attr-defined]


def segment_files(folder: Path) -> list[Path]:
    """The files of the segments, by name."""
    return sorted((folder / "segments").glob("*.seg"))


def answers(index: Index) -> Answers:
    """What a reader sees: each answer, or the error in its place."""
    return {
        (tenant, name): _answer(ask)
        for tenant in TENANTS
        for name, ask in _questions(index.scoped(tenant=tenant), tenant)
    }


def _questions(handle: Index, tenant: str) -> Iterator[tuple[str, Callable[[], object]]]:
    ids = [one.id for one in map(document, range(DOCUMENTS + 1)) if one.metadata["tenant"] == tenant]
    for name, (query, options) in _QUERIES.items():
        yield name, partial(_search, handle, query, options)
    for document_id in ids[::2]:
        yield document_id, partial(handle.passages, document_id)
    yield "documents", lambda: list(handle.documents())
    yield "get", lambda: [handle.get(document_id) for document_id in ids]
    yield "explain", lambda: handle.explain("reset password", handle.passages(ids[3])[1].id)


def _search(handle: Index, query: str, options: Mapping[str, Any]) -> Hits:
    """The hits, without how long they took."""
    return msgspec.structs.replace(handle.search(query, **options), timings={})


def _answer(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except WellheadError as error:
        return error


def tables(folder: Path) -> object:
    """Every row of every table, read without SQLite's indexes; a word where that is not possible."""
    try:
        with closing(sqlite3.connect(f"{(folder / FILE_NAME).as_uri()}?mode=ro&immutable=1", uri=True)) as raw:
            raw.text_factory = bytes
            # What SQLite goes by is the statement; the columns beside it are for people.
            statements = [sql.decode() for (sql,) in raw.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
            names = [sql.split()[2] for sql in statements if sql.startswith("CREATE TABLE")]
            return {name: raw.execute(f'SELECT * FROM "{name}" NOT INDEXED').fetchall() for name in names}
    except (sqlite3.Error, UnicodeDecodeError):
        return "unreadable"
