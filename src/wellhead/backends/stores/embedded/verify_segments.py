"""The segments against the tables: the list, the files, and every row in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.advice import REMAKE
from wellhead.backends.stores.embedded.build import typed
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.generation import gone_between
from wellhead.backends.stores.embedded.load import load_part
from wellhead.backends.stores.embedded.part import FIELDS, Blobs, Part
from wellhead.backends.stores.embedded.rows import shown
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import SegmentDamaged, file_of, read_segment
from wellhead.errors import CorruptStore
from wellhead.records import Finding

__all__ = ["Opened", "check_list", "check_segments", "finding_of", "open_segments", "place_of"]

# Numbers of passages, and entries of postings, that are looked at in one go.
_PIECE = 10_000
_POSTINGS = 4_000_000

_Array = NDArray[Any]


class Opened(NamedTuple):
    """A row of `segments`, as it is, and the part in its file; None and `why` where either cannot be used."""

    row: StoredSegment
    part: Part | None
    why: str = ""

    @property
    def sound(self) -> bool:
        """Whether the row is as it was written."""
        return checksum("segments", *self.row[:-1]) == self.row.checksum


def finding_of(kind: str, error: CorruptStore) -> Finding:
    """What an error says, as a finding."""
    return Finding(kind=kind, where=error.where, why=f"{error.what}: {error.why}", fix=error.fix)


def place_of(where: str, row: StoredSegment) -> str:
    """The `where` of every finding about one segment."""
    return f"{where}, segment {row.name.decode()}"


def open_segments(connection: sqlite3.Connection, folder: Path, *, patient: bool) -> list[Opened]:
    """Every segment of this snapshot, mapped: from here on it does not matter if its file is deleted.

    Raises:
        SegmentDamaged: where `patient`, for a file that cannot be used: mostly one that was replaced meanwhile.
    """
    rows = [StoredSegment(*row) for row in connection.execute("SELECT * FROM segments ORDER BY first")]
    return [_opened(row, folder, patient=patient) for row in rows]


def _opened(row: StoredSegment, folder: Path, *, patient: bool) -> Opened:
    if not Opened(row, None).sound:
        return Opened(row, None)
    try:
        return Opened(row, read_segment(file_of(folder, row.name.decode()), row.digest))
    except SegmentDamaged as error:
        if patient:
            raise
        return Opened(row, None, error.what)


def check_list(connection: sqlite3.Connection, opened: Sequence[Opened], where: str) -> Iterator[Finding]:
    """The rows of the table: each as it was written, their ranges apart and in order, none above the counters."""
    sound = [one.row for one in opened if one.sound]
    for one in opened:
        if not one.sound:
            yield _listed(where, f"the entry of segment {shown(one.row.name)} is damaged")
    for before, after in pairwise(sound):
        if after.first <= before.last:
            both = f"segments {shown(before.name)} and {shown(after.name)}"
            yield _listed(
                where, f"{both} overlap: one ends at passage {before.last}, the other begins at {after.first}"
            )
    upto, version = read_counter(connection, "passage", where), read_counter(connection, "version", where)
    for row in sound:
        if not 0 < row.first <= row.last <= upto or row.version > version:
            said = f"segment {shown(row.name)} holds passages {row.first} to {row.last} of version {row.version}"
            yield _listed(where, f"{said}, where passages were numbered up to {upto} and the version is {version}")


def _listed(where: str, why: str) -> Finding:
    return Finding(kind="segments", where=f"{where}, table segments", why=why, fix=REMAKE)


def check_segments(connection: sqlite3.Connection, opened: Sequence[Opened], where: str) -> Iterator[Finding]:
    """The files: there and as they were written; and their rows: those of the tables, and nothing else."""
    for one in opened:
        if not one.sound:
            continue  # named by `check_list`
        place = place_of(where, one.row)
        if one.part is None:
            yield Finding(kind="segment", where=place, why=one.why, fix=REMAKE)
            continue
        try:
            wrong = _differences(connection, one.row, one.part, where)
        except CorruptStore as error:  # the tables are damaged: there is nothing to compare with
            yield finding_of("row", error)
            continue
        if wrong:
            why = f"it differs from the tables in its {', '.join(wrong)}"
            yield Finding(kind="segment", where=place, why=why, fix=REMAKE)


def _differences(connection: sqlite3.Connection, row: StoredSegment, part: Part, where: str) -> list[str]:
    live = np.ones(len(part), dtype=np.bool_)
    live[part.rows_of(gone_between(connection, row.version, row, where))] = False
    wrong = dict.fromkeys(_disorder(part, row))
    wrong |= dict.fromkeys(_vocabulary(connection, part))
    for first in range(row.first, row.last + 1, _PIECE):
        last = min(first + _PIECE - 1, row.last)
        truth = load_part(connection, first, last, where)
        wrong |= dict.fromkeys(_unlike(part, _rows(part, first, last, live), truth))
    return list(wrong)


def _disorder(part: Part, row: StoredSegment) -> Iterator[str]:
    """What a search relies on: sizes, sorted columns, and the orders that stand beside unsorted ones."""
    numbers, scopes = part.numbers, np.asarray(part.arrays["scope_starts"])
    inside = len(numbers) == 0 or bool(row.first <= numbers.min() <= numbers.max() <= row.last)
    if len(part) != row.rows or not inside or scopes[-1] != len(part):
        yield "size"
    begins = np.zeros(len(part), dtype=np.bool_)
    begins[scopes[:-1][scopes[:-1] < len(part)]] = True
    if not bool((begins[1:] | (numbers[1:] > numbers[:-1])).all()) or list(part.names.scopes) != sorted(
        part.names.scopes
    ):
        yield "order"
    for name, column in (("number_order", numbers), ("content_order", part.contents[:, 0])):
        ordered = column[part.arrays[name]]
        if len(np.unique(part.arrays[name])) != len(part) or not bool((ordered[1:] >= ordered[:-1]).all()):
            yield "order"


def _vocabulary(connection: sqlite3.Connection, part: Part) -> Iterator[str]:
    """Each term has the word that the tables give it, is found by it, and no posting has a term without a word."""
    terms: list[int] = part.arrays["word.terms"].tolist()
    for place, term in enumerate(terms):
        word = part.words[place]
        found = connection.execute("SELECT word FROM terms WHERE term = ?", (term,)).fetchone()
        if found != (word,) or part.term(word) != term:
            yield "words"
            break
    used = [part.fields[name].terms for name in FIELDS]
    if not np.isin(np.concatenate(used), np.asarray(terms, dtype=np.int64)).all():
        yield "words"


def _rows(part: Part, first: int, last: int, live: NDArray[np.bool_]) -> _Array:
    """The live rows with these numbers, by number."""
    order = part.arrays["number_order"]
    ends = np.searchsorted(part.numbers, (first, last + 1), sorter=order)
    rows = order[ends[0] : ends[1]]
    return np.asarray(rows[live[rows]])


def _unlike(part: Part, rows: _Array, truth: Part) -> Iterator[str]:
    """In what these rows of a part differ from all of `truth`. How values are numbered and laid out does not count."""
    others = truth.arrays["number_order"]
    if not np.array_equal(part.numbers[rows], truth.numbers[others]):
        yield "passages"
        return
    yield from _unlike_columns(part, rows, truth, others)
    for name in FIELDS:
        if not _same_field(part, rows, truth, others, name):
            yield name


def _unlike_columns(part: Part, rows: _Array, truth: Part, others: _Array) -> Iterator[str]:
    for name, mine, other in (
        ("documents", part.docs, truth.docs),
        ("contents", part.contents, truth.contents),
        ("ids", part.id_keys, truth.id_keys),
        ("vectors", part.scales, truth.scales),
    ):
        if not np.array_equal(mine[rows], other[others]):
            yield name
    if _blobs(part.ids, rows) != _blobs(truth.ids, others):
        yield "ids"
    if _blobs(part.bodies, rows) != _blobs(truth.bodies, others):
        yield "texts"
    if _scopes(part, rows) != _scopes(truth, others):
        yield "scopes"
    if _languages(part, rows) != _languages(truth, others):
        yield "languages"
    if not _same_vectors(part, rows, truth, others):
        yield "vectors"
    for key in {*part.names.keys, *truth.names.keys}:
        if _values(part, key, rows) != _values(truth, key, others):
            yield f"metadata {key!r}"


def _blobs(blobs: Blobs, rows: _Array) -> list[bytes]:
    return [blobs[row] for row in rows.tolist()]


def _scopes(part: Part, rows: _Array) -> list[str]:
    places = np.searchsorted(part.arrays["scope_starts"], rows, side="right") - 1
    return [part.names.scopes[place] for place in places.tolist()]


def _languages(part: Part, rows: _Array) -> list[str]:
    return [part.names.languages[code] for code in part.languages[rows].tolist()]


def _same_vectors(part: Part, rows: _Array, truth: Part, others: _Array) -> bool:
    if not truth.names.dims:  # none of these rows has one
        return not part.floats[rows].any()
    same = np.array_equal(part.floats[rows], truth.floats[others])
    return same and np.array_equal(part.codes[rows], truth.codes[others])


def _values(part: Part, key: str, rows: _Array) -> list[object]:
    found = part.column(key)
    if found is None:
        return [None] * len(rows)
    codes, values = found
    return [None if code < 0 else typed(values[code]) for code in codes[rows].tolist()]


def _same_field(part: Part, rows: _Array, truth: Part, others: _Array, name: str) -> bool:
    if not np.array_equal(part.fields[name].lengths[rows], truth.fields[name].lengths[others]):
        return False
    mine, other = _postings(part, rows, name), _postings(truth, others, name)
    return all(map(np.array_equal, mine, other))


def _postings(part: Part, rows: _Array, name: str) -> tuple[_Array, _Array]:
    """What stands in these rows: term << 32 | place among `rows`, ascending, and how often."""
    field = part.fields[name]
    place = np.full(len(part), -1, dtype=np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    keys: list[_Array] = []
    counts: list[_Array] = []
    for start in range(0, len(field.rows), _POSTINGS):
        at = place[field.rows[start : start + _POSTINGS]]
        found = np.flatnonzero(at >= 0)
        terms = field.terms[np.searchsorted(field.starts, found + start, side="right") - 1]
        keys.append(terms.astype(np.int64) << 32 | at[found])
        counts.append(field.counts[found + start].astype(np.int64))
    joined = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    order = np.argsort(joined, kind="stable")
    return joined[order], np.concatenate(counts)[order] if counts else joined
