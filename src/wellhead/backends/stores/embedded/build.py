"""Rows become a part, and parts become one."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wellhead.backends.stores.embedded.part import FIELDS, Blobs, Names, Part, arrays_of_blobs, arrays_of_words
from wellhead.errors import CorruptStore
from wellhead.records import Metadata, MetadataValue
from wellhead.search.dense import quantise

__all__ = ["LoadedRow", "build_part", "merge_parts", "typed"]

_Arrays = dict[str, NDArray[Any]]


class LoadedRow(NamedTuple):
    """A passage as it comes out of the tables.

    Args:
        number: of the passage; doc: of its document. id, text_hash: bytes. language: "" for none.
        stems, words: int32 pairs (term, count). vector: float32[d], or None. body: `body.pack_passage`.
    """

    scope: str
    number: int
    doc: int
    id: bytes
    text_hash: bytes
    language: str
    metadata: Metadata
    stems: bytes
    words: bytes
    vector: NDArray[np.float32] | None
    body: bytes


def build_part(rows: Sequence[LoadedRow], words: Mapping[int, bytes]) -> Part:
    """A part of these rows; `words`: the word of each term that they use (and of no other)."""
    rows = sorted(rows, key=lambda row: (row.scope, row.number))
    scopes, starts = _runs([row.scope for row in rows])
    languages = sorted({row.language for row in rows})
    keys, columns = _columns([row.metadata for row in rows])
    vectors = _vectors([row.vector for row in rows])
    arrays: _Arrays = {
        "scope_starts": starts,
        **_numbers(np.array([row.number for row in rows], dtype=np.int64)),
        "docs": np.array([row.doc for row in rows], dtype=np.int64),
        "languages": np.array([languages.index(row.language) for row in rows], dtype=np.int16),
        **_contents(np.frombuffer(b"".join(row.text_hash[:16] for row in rows), dtype=">u8").reshape(-1, 2)),
        **_ids([row.id for row in rows]),
        **arrays_of_blobs("body", [row.body for row in rows]),
        **vectors,
        **columns,
        **_field("stems", [row.stems for row in rows]),
        **_field("words", [row.words for row in rows]),
        **arrays_of_words(words),
    }
    names = Names(scopes=scopes, languages=tuple(languages), keys=keys, dims=arrays["floats"].shape[1])
    return Part(names, arrays)


def _runs(values: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct ones of sorted values, and where each begins, the end last."""
    distinct = tuple(dict.fromkeys(values))
    counts = dict.fromkeys(distinct, 0)
    for value in values:
        counts[value] += 1
    return distinct, np.cumsum([0, *counts.values()], dtype=np.int64)


def _numbers(numbers: NDArray[np.int64]) -> _Arrays:
    return {"numbers": numbers, "number_order": np.argsort(numbers, kind="stable").astype(np.int32)}


def _contents(contents: NDArray[Any]) -> _Arrays:
    plain = contents.astype(np.uint64)
    return {"contents": plain, "content_order": np.argsort(plain[:, 0], kind="stable").astype(np.int32)}


def _ids(ids: Sequence[bytes]) -> _Arrays:
    keys = b"".join(name[:8].ljust(8, b"\0") for name in ids)
    return {"id_keys": np.frombuffer(keys, dtype=">u8").astype(np.uint64), **arrays_of_blobs("id", ids)}


def _vectors(vectors: Sequence[NDArray[np.float32] | None]) -> _Arrays:
    dims = next((len(vector) for vector in vectors if vector is not None), 0)
    floats = np.zeros((len(vectors), dims), dtype=np.float32)
    for row, vector in enumerate(vectors):
        if vector is not None:
            floats[row] = vector
    codes, scales = quantise(floats)
    return {"floats": floats, "codes": codes, "scales": scales}


def typed(value: MetadataValue) -> Hashable:
    """In Python True == 1 == 1.0; as metadata they are three values."""
    if isinstance(value, tuple):
        return tuple((type(item), item) for item in value)
    return type(value), value


def _columns(metadata: Sequence[Metadata]) -> tuple[tuple[str, ...], _Arrays]:
    keys = tuple(sorted(set(chain.from_iterable(metadata))))
    arrays: _Arrays = {}
    for place, key in enumerate(keys):
        numbers: dict[Hashable, int] = {}
        values: list[MetadataValue] = []
        codes = np.full(len(metadata), -1, dtype=np.int32)
        for row, one in enumerate(metadata):
            if key in one:
                codes[row] = number = numbers.setdefault(typed(one[key]), len(values))
                if number == len(values):
                    values.append(one[key])
        arrays |= _column(place, codes, values)
    return keys, arrays


def _column(place: int, codes: NDArray[np.int32], values: Sequence[MetadataValue]) -> _Arrays:
    listed = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    return {f"codes.{place}": codes, f"values.{place}": np.frombuffer(listed, dtype=np.uint8)}


def _field(name: str, packed: Sequence[bytes]) -> _Arrays:
    pairs = np.frombuffer(b"".join(packed), dtype="<i4").reshape(-1, 2)
    sizes = np.fromiter((len(row) // 8 for row in packed), dtype=np.int64, count=len(packed))
    rows = np.repeat(np.arange(len(packed), dtype=np.int64), sizes)
    return _postings(name, pairs[:, 0].astype(np.int64) << 32 | rows, pairs[:, 1], len(packed))


def _postings(name: str, keys: NDArray[np.int64], counts: NDArray[Any], size: int) -> _Arrays:
    """The arrays of a field of `size` rows. `keys`: term << 32 | row; sorted runs of them are merged in one pass."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    terms = (keys >> 32).astype(np.int32)
    rows = (keys & 0xFFFFFFFF).astype(np.int32)
    starts = np.flatnonzero(np.diff(terms, prepend=-1))
    return {
        f"{name}.terms": terms[starts],
        f"{name}.starts": np.append(starts, len(terms)).astype(np.int64),
        f"{name}.rows": rows,
        f"{name}.counts": counts.astype(np.min_scalar_type(int(counts.max(initial=0)))),
        f"{name}.lengths": np.bincount(rows, weights=counts, minlength=size).astype(np.int32),
    }


def merge_parts(parts: Sequence[Part], lives: Sequence[NDArray[np.bool_] | None]) -> Part:
    """The live rows of several parts as one; `lives` bool[n] for each, None where all are live.

    Nothing of a dead row stays: no term, value or name that only it had.
    """
    kept = [
        np.arange(len(part), dtype=np.int64) if live is None else np.flatnonzero(live)
        for part, live in zip(parts, lives, strict=True)
    ]
    scopes = [_scopes_of(part)[rows] for part, rows in zip(parts, kept, strict=True)]
    distinct = sorted(
        set(
            chain.from_iterable(
                (part.names.scopes[code] for code in np.unique(codes).tolist())
                for part, codes in zip(parts, scopes, strict=True)
            )
        )
    )
    place = {scope: number for number, scope in enumerate(distinct)}
    ranks = np.concatenate(
        [_renamed(part.names.scopes, place)[codes] for part, codes in zip(parts, scopes, strict=True)]
    )
    numbers = np.concatenate([part.numbers[rows] for part, rows in zip(parts, kept, strict=True)])
    order = np.lexsort((numbers, ranks))
    return _Merge(parts, kept, order).part(tuple(distinct), np.bincount(ranks, minlength=len(distinct)))


def _scopes_of(part: Part) -> NDArray[np.int64]:
    """The place of each row's scope in the part's names."""
    return np.repeat(np.arange(len(part.names.scopes)), np.diff(part.arrays["scope_starts"]))


def _renamed(names: Sequence[str], place: Mapping[str, int]) -> NDArray[np.int64]:
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)


class _Merge:
    """One merge: the parts, the rows that are kept of each, and the order of all of these, one after the other."""

    def __init__(self, parts: Sequence[Part], kept: Sequence[NDArray[np.int64]], order: NDArray[np.int64]) -> None:
        self._parts = parts
        self._kept = kept
        self._order = order
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        ends = np.cumsum([len(rows) for rows in kept])
        # Where the kept rows of each part come to stand.
        self._places = np.split(places, ends[:-1])

    def part(self, scopes: tuple[str, ...], sizes: NDArray[np.int64]) -> Part:
        dims = max((part.names.dims for part in self._parts), default=0)
        languages, codes = self._named("languages", [part.names.languages for part in self._parts])
        keys, columns = self._columns()
        fields: _Arrays = {}
        for name in FIELDS:
            fields |= self._field(name)
        arrays: _Arrays = {
            "scope_starts": np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            **_numbers(self._gathered([part.numbers for part in self._parts], np.int64)),
            "docs": self._gathered([part.docs for part in self._parts], np.int64),
            "languages": codes,
            **_contents(self._wide([part.contents for part in self._parts], 2, np.uint64)),
            **_ids(self._blobs([part.ids for part in self._parts])),
            **arrays_of_blobs("body", self._blobs([part.bodies for part in self._parts])),
            "floats": self._wide([part.floats for part in self._parts], dims, np.float32),
            "codes": self._wide([part.codes for part in self._parts], dims, np.int8),
            "scales": self._gathered([part.scales for part in self._parts], np.float32),
            **columns,
            **fields,
            **arrays_of_words(self._words(fields)),
        }
        return Part(Names(scopes=scopes, languages=languages, keys=keys, dims=dims), arrays)

    def _gathered(self, columns: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        gathered = np.empty(len(self._order), dtype=dtype)
        for column, rows, places in zip(columns, self._kept, self._places, strict=True):
            gathered[places] = column[rows]
        return gathered

    def _wide(self, columns: Sequence[NDArray[Any]], width: int, dtype: Any) -> NDArray[Any]:
        gathered = np.zeros((len(self._order), width), dtype=dtype)
        for column, rows, places in zip(columns, self._kept, self._places, strict=True):
            if column.shape[1]:
                gathered[places] = column[rows]
        return gathered

    def _named(self, column: str, names: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], NDArray[np.int16]]:
        """A column of codes for names, over the names that are still in use."""
        used = sorted(
            {
                own[code]
                for part, own, rows in zip(self._parts, names, self._kept, strict=True)
                for code in np.unique(part.arrays[column][rows]).tolist()
            }
        )
        place = {name: number for number, name in enumerate(used)}
        codes = [_renamed(own, place)[part.arrays[column]] for part, own in zip(self._parts, names, strict=True)]
        return tuple(used), self._gathered(codes, np.int16)

    def _blobs(self, columns: Sequence[Blobs]) -> list[bytes]:
        blobs = [column[row] for column, rows in zip(columns, self._kept, strict=True) for row in rows.tolist()]
        return [blobs[place] for place in self._order.tolist()]

    def _columns(self) -> tuple[tuple[str, ...], _Arrays]:
        kept: list[str] = []
        arrays: _Arrays = {}
        for key in sorted({key for part in self._parts for key in part.names.keys}):
            codes, values = self._values(key)
            if values:
                arrays |= _column(len(kept), codes, values)
                kept.append(key)
        return tuple(kept), arrays

    def _values(self, key: str) -> tuple[NDArray[np.int32], list[MetadataValue]]:
        numbers: dict[Hashable, int] = {}
        values: list[MetadataValue] = []
        merged = np.full(len(self._order), -1, dtype=np.int32)
        for part, rows, places in zip(self._parts, self._kept, self._places, strict=True):
            found = part.column(key)
            if found is None:
                continue
            codes = found[0][rows]
            renumbered = np.full(len(found[1]) + 1, -1, dtype=np.int32)  # the last place is that of code -1
            for code in np.unique(codes[codes >= 0]).tolist():
                value = found[1][code]
                renumbered[code] = number = numbers.setdefault(typed(value), len(values))
                if number == len(values):
                    values.append(value)
            merged[places] = renumbered[codes]
        return merged, values

    def _field(self, name: str) -> _Arrays:
        keys: list[NDArray[np.int64]] = []
        counts: list[NDArray[Any]] = []
        for part, rows, places in zip(self._parts, self._kept, self._places, strict=True):
            field = part.fields[name]
            moved = np.full(len(part), -1, dtype=np.int64)
            moved[rows] = places
            to = moved[field.rows]
            terms = np.repeat(field.terms.astype(np.int64), np.diff(field.starts))
            live = to >= 0
            keys.append(terms[live] << 32 | to[live])
            counts.append(field.counts[live].astype(np.int32))
        return _postings(name, np.concatenate(keys), np.concatenate(counts), len(self._order))

    def _words(self, fields: _Arrays) -> dict[int, bytes]:
        """The words of the terms that are still in use."""
        used = np.union1d(fields["stems.terms"], fields["words.terms"])
        words: dict[int, bytes] = {}
        for part in self._parts:
            terms = part.arrays["word.terms"]
            places = np.flatnonzero(np.isin(terms, used))
            for place, term in zip(places.tolist(), terms[places].tolist(), strict=True):
                if term not in words:
                    words[term] = part.words[place]
        if len(set(words.values())) < len(words):
            raise CorruptStore(
                "the vocabulary is damaged",
                why="a word has two numbers",
                fix="`wellhead repair` makes the index anew from the texts that it holds",
            )
        return words
