"""The view of one scope over the parts of an index: a range of rows of each, some of them dead."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from wellhead.analyze import fold_accents
from wellhead.backends.stores.embedded.body import unpack_passage
from wellhead.backends.stores.embedded.build import typed
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.rules import is_text, refuse_pickle
from wellhead.lazy import lazy
from wellhead.ports import Column, Posting, VectorPart
from wellhead.records import MetadataValue, Passage
from wellhead.search.within import only

__all__ = ["Lookup", "PartsView", "Slab"]

# What is remembered of the queries before: where words stand, and for each field their postings, up to so many rows.
_TERMS_KEPT = 4096
_ROWS_KEPT = 200_000


class Slab(NamedTuple):
    """The rows `first` to `last` (left out) of a part: in the view, those from `base` on. `live` bool[n], None: all."""

    part: Part
    first: int
    last: int
    base: int
    live: NDArray[np.bool_] | None

    @property
    def size(self) -> int:
        return self.last - self.first


class Lookup(Protocol):
    """What a view asks the store, at the time of asking."""

    def refuse_closed(self) -> None:
        """Raise UsageError where the store is closed."""
        ...

    def refuse_passage(self, number: int, passage_id: bytes) -> NoReturn:
        """Raise CorruptStore for a passage whose bytes are damaged."""
        ...

    def document(self, scope: str, document_id: str, version: int) -> int | None:
        """The number of a document, or None; StaleView where `version` is not the index's any more."""
        ...


class PartsView:
    """One scope at one moment (`wellhead.ports.View`); immutable, for any number of threads.

    Args:
        version: the index version that it shows. slabs: in the order of their rows, without gaps.
    """

    def __init__(self, version: int, scope: str, slabs: Sequence[Slab], lookup: Lookup) -> None:
        self.version = version
        self._scope = scope
        self._slabs = tuple(slab for slab in slabs if slab.size)
        self._bases = [slab.base for slab in self._slabs]
        self._lookup = lookup
        self.space = sum(slab.size for slab in self._slabs)
        self.live = self._live()
        self._count = self.space if self.live is None else int(np.count_nonzero(self.live))
        self.dims = max((slab.part.names.dims for slab in self._slabs), default=0)
        terms, self._documents = _Terms(self._slabs), _Documents(self._slabs)
        self.stems = _FieldOfView("stems", terms, self._documents, self.live)
        self.words = _FieldOfView("words", terms, self._documents, self.live)
        self._columns: dict[str, Column | None] = {}

    def __reduce__(self) -> NoReturn:
        refuse_pickle(self)

    def __len__(self) -> int:
        return self._count

    def _live(self) -> NDArray[np.bool_] | None:
        if all(slab.live is None for slab in self._slabs):
            return None
        masks = [np.ones(slab.size, dtype=np.bool_) if slab.live is None else slab.live for slab in self._slabs]
        return _frozen(np.concatenate(masks))

    @property
    def slabs(self) -> Sequence[Slab]:
        return self._slabs

    @lazy
    def vectors(self) -> Sequence[VectorPart]:
        return [
            VectorPart(
                slab.base,
                slab.part.floats[slab.first : slab.last],
                slab.part.scales[slab.first : slab.last],
                slab.part.codes[slab.first : slab.last],
            )
            for slab in self._slabs
        ]

    @lazy
    def with_vectors(self) -> int:
        has = self._joined(lambda part: part.scales) > 0.0
        return int(np.count_nonzero(has if self.live is None else has & self.live))

    @lazy
    def languages(self) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        for slab in self._slabs:
            codes = slab.part.languages[slab.first : slab.last]
            live = codes if slab.live is None else codes[slab.live]
            counted = np.bincount(live, minlength=len(slab.part.names.languages)).tolist()
            counts.update(
                {name: count for name, count in zip(slab.part.names.languages, counted, strict=True) if count}
            )
        return dict(sorted(counts.items()))

    def language(self, row: int) -> str:
        """The language of a row, "" for none."""
        slab, local = self._place(row)
        return slab.part.names.languages[int(slab.part.languages[local])]

    def documents(self, rows: NDArray[np.intp]) -> Sequence[int]:
        """Equal numbers for rows of one document."""
        numbers: list[int] = self._documents.numbers[rows].tolist()
        return numbers

    @lazy
    def document_count(self) -> int:
        live = np.arange(self.space) if self.live is None else np.flatnonzero(self.live)
        return self.count_documents(live.astype(np.int32))

    def count_documents(self, rows: NDArray[np.int32]) -> int:
        """How many documents these live rows, ascending, belong to."""
        return self._documents.count(rows)

    def contents(self, rows: NDArray[np.intp]) -> Sequence[bytes]:
        """Equal bytes for rows of equal text."""
        of_rows: list[bytes] = self._contents[rows].view("V16").reshape(-1).tolist()
        return of_rows

    @lazy
    def _contents(self) -> NDArray[np.uint64]:
        return _joined(self._slabs, lambda part: part.contents, width=2)

    def same_texts(self, rows: NDArray[np.intp]) -> Sequence[Sequence[int]]:
        """For each of these rows the live rows of its text, itself included, ascending by passage id."""
        wanted, contents = rows.tolist(), self._contents[rows]
        found = [[row] for row in wanted]
        for slab in self._slabs:
            asked = self._may_repeat(rows, slab)
            for place, local in slab.part.with_contents(contents[asked]) if len(asked) else ():
                other = local - slab.first + slab.base
                if slab.first <= local < slab.last and other != wanted[asked[place]]:
                    found[asked[place]].append(other)
        return [self._sorted_by_id(same) if len(same) > 1 else same for same in found]

    def _may_repeat(self, rows: NDArray[np.intp], slab: Slab) -> NDArray[np.intp]:
        """The places of the rows whose text may be that of another row of the slab."""
        local = rows - slab.base + slab.first
        is_own = (local >= slab.first) & (local < slab.last)
        return np.flatnonzero(~is_own | slab.part.repeats.take(local, mode="clip"))

    def _sorted_by_id(self, rows: list[int]) -> list[int]:
        """Those of these rows that are live."""
        return sorted((row for row in rows if self.live is None or self.live[row]), key=self._id)

    def by_id(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """The place of each of these rows among them, in the order of their passage ids."""
        keys = self._keys[rows]
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        if bool((ordered[1:] == ordered[:-1]).any()):
            ids = [self._id(row) for row in rows.tolist()]
            order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.intp)
        places = np.empty(len(rows), dtype=np.int32)
        places[order] = np.arange(len(rows), dtype=np.int32)
        return places

    @lazy
    def _keys(self) -> NDArray[np.uint64]:
        return self._joined(lambda part: part.id_keys)

    def _id(self, row: int) -> bytes:
        slab, local = self._place(row)
        return slab.part.ids[local]

    def column(self, key: str) -> Column | None:
        """The metadata under `key`, or None when no live row has it."""
        if key not in self._columns:
            self._columns[key] = self._column(key)
        return self._columns[key]

    def _column(self, key: str) -> Column | None:
        """The columns of the parts under one numbering, without values that no live row of the scope has."""
        numbers: dict[object, int] = {}
        values: list[MetadataValue] = []
        joined = np.full(self.space, -1, dtype=np.int32)
        for slab in self._slabs:
            found = slab.part.column(key)
            if found is None:
                continue
            own = only(Column(found[0][slab.first : slab.last], found[1]), slab.live)
            if own is None:
                continue
            renumbered = np.full(len(own.values) + 1, -1, dtype=np.int32)  # the last place is that of code -1
            for code, value in enumerate(own.values):
                renumbered[code] = number = numbers.setdefault(typed(value), len(values))
                if number == len(values):
                    values.append(value)
            joined[slab.base : slab.base + slab.size] = renumbered[own.codes]
        return Column(_frozen(joined), values) if values else None

    def keys(self) -> Sequence[str]:
        """The metadata keys in use, ascending."""
        known = sorted({key for slab in self._slabs for key in slab.part.names.keys})
        return [key for key in known if self.column(key) is not None]

    def row(self, passage_id: str) -> int | None:
        """The row of a passage by its full id."""
        wanted = passage_id.encode("utf-8", "surrogatepass")
        return next((row for row in self._near(wanted) if self._id(row) == wanted), None)

    def starting(self, prefix: str) -> Sequence[int]:
        """The rows whose passage id begins with `prefix`, ascending by id."""
        wanted = prefix.encode("utf-8", "surrogatepass")
        found = ((self._id(row), row) for row in self._near(wanted))
        return [row for name, row in sorted(found) if name.startswith(wanted)]

    def _near(self, prefix: bytes) -> list[int]:
        """The live rows whose id begins with the first 8 bytes of `prefix`."""
        low, high = (int.from_bytes(prefix[:8].ljust(8, filler), "big") for filler in (b"\0", b"\xff"))
        near = (self._keys >= np.uint64(low)) & (self._keys <= np.uint64(high))
        rows: list[int] = np.flatnonzero(near if self.live is None else near & self.live).tolist()
        return rows

    def rows_of(self, document_id: str) -> Sequence[int]:
        """The rows of a document, in the order of their ordinals; empty when it is not in the scope."""
        number = self._lookup.document(self._scope, document_id, self.version) if is_text(document_id) else None
        if number is None:
            return []
        of_document = self._documents.numbers == number
        rows: list[int] = np.flatnonzero(of_document if self.live is None else of_document & self.live).tolist()
        # A document is written whole, its passages numbered in their order.
        return rows

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        """The passages themselves, in the order asked for, each checked against its checksum.

        Raises:
            CorruptStore: the bytes of one are not those that were written.
            UsageError: the store is closed.
        """
        self._lookup.refuse_closed()
        return [self._passage(row) for row in rows]

    def _passage(self, row: int) -> Passage:
        slab, local = self._place(row)
        passage = unpack_passage(slab.part.bodies[local])
        if passage is None:
            self._lookup.refuse_passage(int(slab.part.numbers[local]), slab.part.ids[local])
        return passage

    def _place(self, row: int) -> tuple[Slab, int]:
        """The slab of a row, and its row in the part."""
        slab = self._slabs[bisect_right(self._bases, row) - 1]
        return slab, row - slab.base + slab.first

    def _joined(self, column: Callable[[Part], NDArray[Any]]) -> NDArray[Any]:
        return _joined(self._slabs, column)


def _joined(slabs: Sequence[Slab], column: Callable[[Part], NDArray[Any]], width: int = 0) -> NDArray[Any]:
    """A column of all rows."""
    parts = [column(slab.part)[slab.first : slab.last] for slab in slabs]
    if not parts:
        return np.zeros((0, width) if width else 0, dtype=np.int64)
    return parts[0] if len(parts) == 1 else _frozen(np.concatenate(parts))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False  # searches of several threads share it
    return array


class _Terms:
    """Where words are known: looked up once for both fields, and kept for the next query."""

    def __init__(self, slabs: Sequence[Slab]) -> None:
        self.slabs = slabs
        self._found: dict[str, tuple[tuple[Slab, int], ...]] = {}

    def of(self, word: str) -> tuple[tuple[Slab, int], ...]:
        """The slabs that hold a word, each with the number of its term."""
        found = self._found.get(word)
        if found is None:
            written = word.encode()
            each = ((slab, slab.part.term(written)) for slab in self.slabs)
            found = tuple((slab, number) for slab, number in each if number is not None)
            if len(self._found) >= _TERMS_KEPT:
                self._found.clear()
            self._found[word] = found
        return found


class _Documents:
    """Whose the rows are."""

    def __init__(self, slabs: Sequence[Slab]) -> None:
        self._slabs = slabs

    @lazy
    def numbers(self) -> NDArray[np.int64]:
        """The number of each row's document: int64[space]."""
        return _joined(self._slabs, lambda part: part.docs)

    def count(self, rows: NDArray[np.int32]) -> int:
        """How many documents these live rows, ascending, belong to."""
        # A document is written whole, its passages numbered in a row: its live rows follow one another.
        numbers = self.numbers.take(rows)
        return min(len(rows), 1) + int(np.count_nonzero(numbers[1:] != numbers[:-1]))


class _FieldOfView:
    """One analysed field over the slabs of a view (`wellhead.ports.Field`)."""

    def __init__(self, name: str, terms: _Terms, documents: _Documents, live: NDArray[np.bool_] | None) -> None:
        self._name = name
        self._terms = terms
        self._documents = documents
        self._live = live
        # One search asks for a posting several times, and the next one for some of the same.
        self._kept: dict[str, tuple[Posting | None]] = {}
        self._kept_rows = 0
        self._frequencies: dict[str, int] = {}

    @lazy
    def lengths(self) -> NDArray[np.int32]:
        """Terms in each row: int32[space]."""
        return _joined(self._terms.slabs, lambda part: part.fields[self._name].lengths)

    @lazy
    def total(self) -> int:
        """The sum of the lengths of all live rows."""
        return int((self.lengths if self._live is None else self.lengths[self._live]).sum(dtype=np.int64))

    def posting(self, term: str) -> Posting | None:
        """The live rows of a term, or None when no row of the scope holds it."""
        kept = self._kept.get(term)
        if kept is not None:
            return kept[0]
        found = self._posting(term)
        size = 0 if found is None else len(found.rows)
        if size <= _ROWS_KEPT:
            # Threads that ask at once may count a posting twice, or not at all: then a little more or less is kept.
            if self._kept_rows + size > _ROWS_KEPT or len(self._kept) >= _TERMS_KEPT:
                self._kept, self._kept_rows = {}, 0
            self._kept[term] = (found,)
            self._kept_rows += size
        return found

    def _posting(self, term: str) -> Posting | None:
        found = [self._of_slab(slab, number) for slab, number in self._terms.of(term)]
        postings = [posting for posting in found if posting is not None]
        if len(postings) < 2:
            return postings[0] if postings else None
        rows, counts = zip(*postings, strict=True)
        return Posting(np.concatenate(rows), np.concatenate(counts))

    def _of_slab(self, slab: Slab, number: int) -> Posting | None:
        field = slab.part.fields[self._name]
        low, high = field.span(number, slab.first, slab.last)
        if low == high:
            return None
        rows, counts = field.rows[low:high], field.counts[low:high]
        if slab.first:
            rows = rows - np.int32(slab.first)
        if slab.live is not None:
            live = slab.live[rows]
            rows, counts = rows[live], counts[live]
            if not len(rows):
                return None
        return Posting(rows + np.int32(slab.base) if slab.base else rows, counts)

    def frequency(self, term: str) -> int:
        """How many documents hold the term in a live row."""
        kept = self._frequencies.get(term)
        if kept is None:
            found = self.posting(term)
            kept = 0 if found is None else self._documents.count(found.rows)
            if len(self._frequencies) >= _TERMS_KEPT:
                self._frequencies.clear()
            self._frequencies[term] = kept
        return kept

    def folded(self, term: str) -> Sequence[str]:
        """The terms of the field that equal `term` once accents are folded, ascending."""
        plain = fold_accents(term)
        words = {word.decode() for slab in self._terms.slabs for word in slab.part.accented(plain.encode())}
        return sorted(word for word in {plain, *words} if self.posting(word) is not None)
