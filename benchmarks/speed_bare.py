"""What the parts of an index cost by themselves, made the plainest way: the yardsticks that stand beside the figures.

No filters, no checksums, no hits: a scan, a sum over postings, an insert, a read. Times are medians, in milliseconds
where the name says nothing else.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import simsimd
from numpy.typing import NDArray
from speed_corpus import DIMS, Corpus, Floats, Ints, Queries

from wellhead import Document

__all__ = ["Pace", "inserts", "nearest", "readings", "recall", "scans", "timed"]

# What each leg of Wellhead hands on.
_POOL = 300
_REPEATS = 20
# As many documents as Wellhead writes in one transaction.
_TRANSACTION = 64


def timed(work: Callable[[int], object], count: int = _REPEATS) -> float:
    """The median milliseconds of `work(0)`, `work(1)` and so on, after a call that warms up."""
    work(0)
    taken = []
    for number in range(count):
        began = time.perf_counter()
        work(number)
        taken.append(time.perf_counter() - began)
    return float(np.median(taken)) * 1e3


# -- search -----------------------------------------------------------------------------------------------------------


class _Codes(NamedTuple):
    """Vectors as int8[n, 256], and what each row is to be multiplied with: float32[n]."""

    codes: NDArray[np.int8]
    scales: Floats

    @classmethod
    def of(cls, vectors: Floats) -> _Codes:
        scales = np.abs(vectors).max(axis=1) / np.float32(127)
        return cls(np.rint(vectors / scales[:, None]).astype(np.int8), scales)


def scans(corpus: Corpus, queries: Queries, rows: int, truth: Ints | None = None) -> dict[str, float]:
    """Both legs over the first `rows` rows: an int8 scan, a float32 product with its best 300, BM25 with its best 300.

    With `truth` also how much of it the int8 scan alone finds.
    """
    vectors = np.empty((rows, DIMS), dtype=np.float32)
    for batch in corpus.batches(0, rows):
        vectors[batch.rows.start : batch.rows.stop] = batch.vectors
    held, asked = _Codes.of(vectors), _Codes.of(queries.vectors)
    postings = _Postings(corpus, queries, rows)
    found = {
        "bare_int8_scan_ms": timed(lambda number: _scan(held, asked, number)),
        "bare_numpy_matvec_ms": timed(lambda number: _best(vectors @ queries.vectors[number % len(queries)], _POOL)),
        "bare_numpy_bm25_ms": timed(lambda number: postings.best(queries.words[number]), len(queries)),
        "postings_per_query": postings.per_query(queries),
    }
    if truth is not None:
        tops = [_best(_scan(held, asked, number) * held.scales, truth.shape[1]) for number in range(len(queries))]
        found["bare_int8_recall_at_10"] = recall(tops, truth)
    return found


class Pace:
    """How fast this machine is just now: an int8 scan over 100,000 rows of 256 dimensions. Limits are held beside it.

    Other programs slow a machine down for minutes; so it is measured before and after each group of figures.
    """

    ROWS = 100_000

    def __init__(self) -> None:
        codes = np.random.default_rng(0).integers(-127, 128, (self.ROWS, DIMS), dtype=np.int8)
        self._held = _Codes(codes, np.ones(self.ROWS, dtype=np.float32))
        self._asked = _Codes(codes[:_REPEATS].copy(), np.ones(_REPEATS, dtype=np.float32))

    def ms(self) -> float:
        """The median of a few scans."""
        return timed(lambda number: _scan(self._held, self._asked, number))


def _scan(held: _Codes, asked: _Codes, number: int) -> NDArray[np.float64]:
    place = number % len(asked.codes)
    found = simsimd.cdist(asked.codes[place : place + 1], held.codes, metric="dot")
    products: NDArray[np.float64] = np.asarray(found).reshape(-1)
    return products


def _best(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """The places of the `count` highest scores, in no order."""
    if len(scores) <= count:
        return np.arange(len(scores))
    return np.argpartition(scores, len(scores) - count)[len(scores) - count :]


class _Postings:
    """Rows (int32) and counts (float32) of each word that some query holds."""

    def __init__(self, corpus: Corpus, queries: Queries, rows: int) -> None:
        self._lengths = np.zeros(rows, dtype=np.float32)
        wanted = np.zeros(len(corpus.vocabulary), dtype=bool)
        wanted[np.concatenate(queries.words)] = True
        keys = []
        for batch in corpus.batches(0, rows):
            lengths = np.array([len(places) for places in batch.words])
            self._lengths[batch.rows.start : batch.rows.stop] = lengths
            flat = np.concatenate(batch.words)
            here = np.repeat(np.arange(batch.rows.start, batch.rows.stop), lengths)
            keys.append((flat.astype(np.int64) * rows + here)[wanted[flat]])
        found, counts = np.unique(np.concatenate(keys), return_counts=True)
        self._rows = (found % rows).astype(np.int32)
        self._counts = counts.astype(np.float32)
        self._starts = np.searchsorted(found, np.arange(len(corpus.vocabulary) + 1, dtype=np.int64) * rows)
        self._norm = 1.2 * (0.25 + 0.75 * self._lengths / self._lengths.mean())

    def scores(self, words: Ints) -> Floats:
        """BM25 (k1 = 1.2, b = 0.75) of every row: float32[rows]."""
        scores = np.zeros(len(self._lengths), dtype=np.float32)
        for word in words:
            here = slice(self._starts[word], self._starts[word + 1])
            rows, counts = self._rows[here], self._counts[here]
            idf = np.float32(np.log(1.0 + (len(scores) - len(rows) + 0.5) / (len(rows) + 0.5)))
            scores[rows] += idf * counts * np.float32(2.2) / (counts + self._norm[rows])
        return scores

    def best(self, words: Ints) -> NDArray[np.intp]:
        """The 300 best rows, in no order; of those that hold a word alone, as a sea of zeros is slow to partition."""
        scores = self.scores(words)
        rows = np.flatnonzero(scores)
        return rows[_best(scores[rows], _POOL)]

    def per_query(self, queries: Queries) -> float:
        """How many postings a query has to add up, in the mean."""
        return float(np.mean([sum(self._starts[words + 1] - self._starts[words]) for words in queries.words]))


def nearest(corpus: Corpus, queries: Queries, rows: int, count: int = 10) -> Ints:
    """The truth of the dense leg: the `count` nearest of the first `rows` rows by float64 cosine, best first."""
    asked = queries.vectors.astype(np.float64)
    cosines = np.empty((len(queries), 0))
    places = np.empty((len(queries), 0), dtype=np.int32)
    for batch in corpus.batches(0, rows):
        here = np.broadcast_to(np.array(batch.rows, dtype=np.int32), (len(queries), len(batch.rows)))
        cosines = np.hstack([cosines, asked @ batch.vectors.astype(np.float64).T])
        places = np.hstack([places, here])
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        cosines, places = np.take_along_axis(cosines, order, 1), np.take_along_axis(places, order, 1)
    return places


def recall(found: Sequence[Iterable[int]], truth: Ints) -> float:
    """The share of the true rows that were found, over all queries."""
    same = sum(len({*map(int, rows)} & {*true.tolist()}) for rows, true in zip(found, truth, strict=True))
    return same / truth.size


# -- writing and reading ----------------------------------------------------------------------------------------------


def inserts(path: Path, documents: Sequence[Document], vectors: Floats) -> dict[str, float]:
    """The same bytes into one table of SQLite, as durable as an index: in batches, and one by one; and how many."""
    rows = [
        (document.id, document.text, msgspec.json.encode(document.metadata), vector.tobytes())
        for document, vector in zip(documents, vectors, strict=True)
    ]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE rows (id TEXT PRIMARY KEY, text TEXT, metadata BLOB, vector BLOB)"
    )
    began = time.perf_counter()
    for start in range(0, len(rows), _TRANSACTION):
        _insert(connection, rows[start : start + _TRANSACTION])
    taken = time.perf_counter() - began
    single = timed(lambda number: _insert(connection, [(f"new {number} {time.monotonic_ns()}", *rows[0][1:])]))
    connection.close()
    size = sum(len(text.encode()) + len(metadata) + len(vector) for _, text, metadata, vector in rows)
    return {
        "bare_sqlite_rows_per_s": len(rows) / taken,
        "bare_sqlite_insert_ms": single,
        "bare_bytes_per_row": size / len(rows),
    }


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[str, str, bytes, bytes]]) -> None:
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
    connection.execute("COMMIT")


def readings(folder: Path, *, hashed: bool) -> float:
    """Milliseconds that it takes to read every file of a folder, and to hash it where asked for."""

    def read(_: int) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                if hashed:
                    hashlib.sha256(data).digest()

    return timed(read, 3)
