"""Sampled searches against brute force: passages asked for by their own words and vectors, over the rows as they are in
the tables, and over the parts that a search uses.

The rows of the tables are read a few thousand at a time, and of their postings only the terms that are asked for are
kept, so that an index need not fit into memory.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.arrays import ArrayView, ScopeRows, codes, line_up
from wellhead.backends.stores.embedded.advice import REMAKE
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.generation import Generation, Held, advance, gone_between
from wellhead.backends.stores.embedded.rows import check_passage, short
from wellhead.backends.stores.embedded.schema import StoredPassage
from wellhead.backends.stores.embedded.vectors import read_vectors
from wellhead.backends.stores.embedded.verify_segments import Opened
from wellhead.backends.stores.embedded.view import PartsView
from wellhead.backends.stores.postings import ArrayField, Postings
from wellhead.records import Finding, Terms
from wellhead.search import bm25, dense
from wellhead.search.top import best

if TYPE_CHECKING:
    from wellhead.ports import FloatArray, View

__all__ = ["check_searches"]

_A_SCOPE, _IN_ALL = 20, 100
# Words of a passage that are asked for, of each field.
_WORDS = 8
# What a leg hands over, and how many places of it are compared.
_POOL, _PLACES = 300, 100
_PIECE = 5_000
# Equal sums in another order differ by less.
_ROUNDING = 1e-9
# One byte a dimension can be wrong by less: a row no nearer than that to the last of the pool may be missing from it.
_QUANTISED = 0.02

_Ranked = list[tuple[float, str]]


class _Query(NamedTuple):
    """A sampled passage: its id, some of its words (and the numbers of these terms), and its vector."""

    id: str
    terms: Terms
    numbers: Mapping[str, int]
    vector: FloatArray | None


def check_searches(
    connection: sqlite3.Connection, opened: Sequence[Opened], folder: Path, where: str
) -> Iterator[Finding]:
    """Ids, order and scores of both legs. Which passages are asked for depends on the version alone."""
    generation = _generation(connection, opened, folder, where)
    chance = random.Random(generation.version)  # noqa: S311 (a sample, no secret)
    left = _IN_ALL
    scopes = [scope for (scope,) in connection.execute("SELECT scope FROM scopes WHERE passages > 0 ORDER BY scope")]
    for scope in chance.sample(scopes, len(scopes)):
        if left <= 0:
            return
        view = generation.view(name := scope.decode(), _NoLookup())
        rows = chance.sample(_live(view), min(_A_SCOPE, left, len(view)))
        left -= len(rows)
        queries = [_query(connection, _number(view, row), chance, where) for row in rows]
        yield from _compare(view, _Truth(connection, name, queries, where), queries, f"{where}, scope {name!r}")


class _NoLookup:
    """What is compared here asks the tables nothing."""

    def refuse_closed(self) -> None:
        raise NotImplementedError

    def refuse_passage(self, number: int, passage_id: bytes) -> NoReturn:
        raise NotImplementedError

    def document(self, scope: str, document_id: str, version: int) -> int | None:
        raise NotImplementedError


def _generation(connection: sqlite3.Connection, opened: Sequence[Opened], folder: Path, where: str) -> Generation:
    """The parts of this snapshot as a search gets them, out of files that are open already."""
    held = tuple(_held(connection, one, where) for one in opened)
    version, epoch = (read_counter(connection, name, where) for name in ("version", "epoch"))
    covered = opened[-1].row.last if opened else 0
    before = Generation(version=version, layout=-1, epoch=epoch, upto=covered, held=held)
    return advance(connection, before, folder, where, patient=False)


def _held(connection: sqlite3.Connection, one: Opened, where: str) -> Held:
    assert one.part is not None
    live = np.ones(len(one.part), dtype=np.bool_)
    live[one.part.rows_of(gone_between(connection, one.row.version, one.row, where))] = False
    return Held(one.part, live, one.row)


def _live(view: PartsView) -> Sequence[int]:
    if view.live is None:
        return range(view.space)
    rows: list[int] = np.flatnonzero(view.live).tolist()
    return rows


def _number(view: PartsView, row: int) -> int:
    slab = next(slab for slab in view.slabs if row < slab.base + slab.size)
    return int(slab.part.numbers[slab.first + row - slab.base])


def _id(view: PartsView, row: int) -> str:
    slab = next(slab for slab in view.slabs if row < slab.base + slab.size)
    return slab.part.ids[slab.first + row - slab.base].decode()


def _query(connection: sqlite3.Connection, number: int, chance: random.Random, where: str) -> _Query:
    row = StoredPassage(*connection.execute("SELECT * FROM passages WHERE passage = ?", (number,)).fetchone())
    check_passage(row, None, where)
    stems, words = (_some(connection, packed, chance) for packed in (row.stems, row.words))
    vectors = {} if row.vector_key is None else read_vectors(connection, {row.vector_key}, where)
    terms = Terms(stems=dict.fromkeys(stems, 1), words=dict.fromkeys(words, 1))
    return _Query(row.id.decode(), terms, stems | words, next(iter(vectors.values()), None))


def _some(connection: sqlite3.Connection, packed: bytes, chance: random.Random) -> dict[str, int]:
    """Some terms of a passage: words and numbers."""
    numbers: list[int] = np.frombuffer(packed, dtype="<i4")[::2].tolist()
    sql = "SELECT word FROM terms WHERE term = ?"
    some = chance.sample(numbers, min(_WORDS, len(numbers)))
    return {connection.execute(sql, (number,)).fetchone()[0].decode(): number for number in some}


class _Asked(ArrayField):
    """A field of which only the postings that are asked for are there, with the lengths of all."""

    def __init__(self, gathered: _Gathered, vocabulary: Mapping[str, int], documents: NDArray[np.int32]) -> None:
        super().__init__(Postings(gathered.packed), vocabulary, documents)
        self.lengths = gathered.lengths
        self.total = int(gathered.lengths.sum(dtype=np.int64))


class _Truth:
    """The scope as the tables have it: a plain view for words, and for each query the nearest rows.

    Raises:
        CorruptStore: a row is damaged.
    """

    def __init__(self, connection: sqlite3.Connection, scope: bytes, queries: Sequence[_Query], where: str) -> None:
        self._connection = connection
        self._where = where
        self._queries = queries
        self._numbers = {word: number for query in queries for word, number in query.numbers.items()}
        self._wanted = np.unique(np.array(list(self._numbers.values()), dtype=np.int32))
        self._stems, self._words = _Gathered(self._wanted), _Gathered(self._wanted)
        self.ids: list[str] = []
        self._docs: list[int] = []
        self.nearest: list[_Ranked] = [[] for _ in queries]
        sql = "SELECT p.* FROM documents d JOIN passages p ON p.doc = d.doc WHERE d.scope = ?"
        cursor = connection.execute(sql, (scope,))
        while rows := cursor.fetchmany(_PIECE):
            self._take([StoredPassage(*row) for row in rows])
        self.view = self._view()

    def _take(self, rows: list[StoredPassage]) -> None:
        for row in rows:
            check_passage(row, None, self._where)
        rows.sort(key=lambda row: row.id)
        self.ids += [row.id.decode() for row in rows]
        self._docs += [row.doc for row in rows]
        self._stems.add([row.stems for row in rows])
        self._words.add([row.words for row in rows])
        keys = [row.vector_key or b"" for row in rows]
        vectors = read_vectors(self._connection, {key for key in keys if key}, self._where)
        ids = [row.id.decode() for row in rows]
        piece = _plain(ids, (), _Gathered(self._wanted), _Gathered(self._wanted), {}, line_up(keys, vectors))
        for place, query in enumerate(self._queries):
            if query.vector is not None and vectors:
                found = self.nearest[place] + _dense(piece, query.vector, ids)
                self.nearest[place] = sorted(found, key=_by_rank)[:_POOL]

    def _view(self) -> ArrayView:
        order = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        self.ids = [self.ids[place] for place in order]
        docs = [self._docs[place] for place in order]
        stems, words = self._stems.ordered(order), self._words.ordered(order)
        return _plain(self.ids, docs, stems, words, self._numbers, np.zeros((len(order), 0), dtype=np.float32))


class _Gathered:
    """One field as it is read: for each row its length, and its entries for the wanted terms."""

    def __init__(self, wanted: NDArray[np.int32]) -> None:
        self._wanted = wanted
        self.packed: list[bytes] = []
        self.lengths: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def add(self, packed: Sequence[bytes]) -> None:
        pairs = np.frombuffer(b"".join(packed), dtype="<i4").reshape(-1, 2)
        rows = np.repeat(np.arange(len(packed)), [len(row) // 8 for row in packed])
        lengths = np.bincount(rows, weights=pairs[:, 1], minlength=len(packed)).astype(np.int32)
        self.lengths = np.concatenate((self.lengths, lengths))
        kept = np.isin(pairs[:, 0], self._wanted)
        ends = np.cumsum(np.bincount(rows[kept], minlength=len(packed)))
        self.packed += [piece.tobytes() for piece in np.split(pairs[kept], ends[:-1])]

    def ordered(self, order: Sequence[int]) -> _Gathered:
        """The rows in another order."""
        other = _Gathered(self._wanted)
        other.packed = [self.packed[place] for place in order]
        other.lengths = self.lengths[np.asarray(order, dtype=np.intp)]
        return other


def _plain(
    ids: Sequence[str],
    docs: Sequence[int],
    stems: _Gathered,
    words: _Gathered,
    numbers: Mapping[str, int],
    vectors: FloatArray,
) -> ArrayView:
    """A plain view of rows that are sorted by id; it knows nothing that the legs do not ask for."""
    nothing, documents = np.zeros(0, dtype=np.int32), codes(docs)[0]
    rows = ScopeRows(
        ids=ids,
        document_ids=(),
        metadata=(),
        documents=documents,
        ordinals=nothing,
        contents=nothing,
        languages=(),
        stems=_Asked(stems, numbers, documents),
        words=_Asked(words, numbers, documents),
        vectors=vectors,
    )
    return ArrayView(0, rows, lambda _: [])


def _compare(view: PartsView, truth: _Truth, queries: Sequence[_Query], where: str) -> Iterator[Finding]:
    for query, nearest in zip(queries, truth.nearest, strict=True):
        mine, other = _lexical(view, query.terms), _lexical(truth.view, query.terms)
        ranked = [(score, _id(view, row)) for score, row in mine[1]]
        if mine[0] != other[0] or not _same(ranked, [(score, truth.ids[row]) for score, row in other[1]]):
            yield _finding(query, "words", where)
        if query.vector is not None and not _as_near(_dense(view, query.vector), nearest):
            yield _finding(query, "vector", where)


def _finding(query: _Query, asked: str, where: str) -> Finding:
    why = f"passage {short(query.id)} asked for by its own {asked}: another answer than the tables give"
    return Finding(kind="search", where=where, why=why, fix=REMAKE)


def _lexical(view: View, terms: Terms) -> tuple[int, list[tuple[float, int]]]:
    """How many rows score, and the best of them."""
    scores = bm25.score(view, terms).scores
    rows = np.flatnonzero(scores > 0.0)
    ranked = best(view, rows, scores[rows], _PLACES)
    return len(rows), list(zip(scores[ranked].tolist(), ranked.tolist(), strict=True))


def _dense(view: ArrayView | PartsView, vector: FloatArray, ids: Sequence[str] = ()) -> _Ranked:
    """The pool of the dense leg. `ids`: of the rows of a plain view."""
    rows = np.sort(dense.pool(view, vector, view.live, _POOL))
    found = zip(dense.cosines(view, vector, rows).tolist(), rows.tolist(), strict=True)
    named = ((score, _id(view, row) if isinstance(view, PartsView) else ids[row]) for score, row in found)
    return sorted(named, key=_by_rank)


def _by_rank(one: tuple[float, str]) -> tuple[float, str]:
    return -one[0], one[1]


def _same(mine: _Ranked, other: _Ranked) -> bool:
    """The same ids in the same order, with the same scores."""
    return [name for _, name in mine] == [name for _, name in other] and all(
        abs(one[0] - another[0]) <= _ROUNDING for one, another in zip(mine, other, strict=True)
    )


def _as_near(mine: _Ranked, other: _Ranked) -> bool:
    """The same first places but for rows that one byte a dimension may have kept out of the pool."""
    if len(mine) != len(other):
        return False
    kept, there = ({name: score for score, name in ranked} for ranked in (mine, other))
    last_of_mine = mine[-1][0] if mine else 0.0
    last_of_all = other[-1][0] if other else 0.0
    lost = [score for score, name in other[:_PLACES] if name not in kept and score > last_of_mine + _QUANTISED]
    strange = [score for score, name in mine if name not in there and score > last_of_all + _ROUNDING]
    wrong = [name for name in kept.keys() & there.keys() if abs(kept[name] - there[name]) > _ROUNDING]
    return not (lost or strange or wrong)
