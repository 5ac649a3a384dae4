"""One analysed field as flat arrays: terms in one ascending array, each with its slice of rows and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wellhead.analyze import fold_accents
from wellhead.lazy import lazy
from wellhead.ports import Posting

__all__ = ["ArrayField", "Postings", "pack_terms"]


def pack_terms(counts: Mapping[str, int], ids: Mapping[str, int]) -> bytes:
    """The terms of one passage as little-endian int32 pairs (term id, count)."""
    pairs = np.empty((len(counts), 2), dtype="<i4")
    pairs[:, 0] = list(map(ids.__getitem__, counts))
    pairs[:, 1] = list(counts.values())
    return pairs.tobytes()


class Postings:
    """Rows and counts by term id.

    Args:
        packed: one `pack_terms` a row, in the order of the rows.
    """

    def __init__(self, packed: Sequence[bytes]) -> None:
        pairs = np.frombuffer(b"".join(packed), dtype="<i4").reshape(-1, 2)
        sizes = np.fromiter((len(row) // 8 for row in packed), dtype=np.int64, count=len(packed))
        rows = np.repeat(np.arange(len(packed), dtype=np.int32), sizes)
        order, terms = _order_by_term(pairs[:, 0])
        starts = np.flatnonzero(np.diff(terms, prepend=-1))
        self.terms: NDArray[np.int32] = terms[starts]
        self._starts = np.append(starts, len(terms))
        self._rows = _frozen(rows[order])
        self._counts = _frozen(pairs[:, 1][order].astype(np.int32))
        lengths = np.bincount(rows, weights=pairs[:, 1], minlength=len(packed))
        self.lengths = _frozen(lengths.astype(np.int32))

    def of(self, term_id: int) -> Posting | None:
        """The posting of a term id, or None when no row holds it."""
        place = int(np.searchsorted(self.terms, term_id))
        if place == len(self.terms) or self.terms[place] != term_id:
            return None
        span = slice(self._starts[place], self._starts[place + 1])
        return Posting(self._rows[span], self._counts[span])


def _order_by_term(terms: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    # Term and place in one int64: a plain sort of those is stable and some fifteen times faster than a stable argsort.
    keys = (terms.astype(np.int64) << 32) | np.arange(len(terms), dtype=np.int64)
    keys.sort()
    return keys & 0xFFFFFFFF, (keys >> 32).astype(np.int32)


def _frozen(array: NDArray[np.int32]) -> NDArray[np.int32]:
    array.flags.writeable = False  # searches of several threads share it
    return array


class ArrayField:
    """One field of a view (`wellhead.ports.Field`).

    Args:
        postings: rows and counts by term id.
        vocabulary: the ids by term; may hold terms of the other field.
        documents: int32[n], equal for rows of one document.
    """

    def __init__(self, postings: Postings, vocabulary: Mapping[str, int], documents: NDArray[np.int32]) -> None:
        self._postings = postings
        self._vocabulary = vocabulary
        self._documents = documents
        self.lengths = postings.lengths
        self.total = int(postings.lengths.sum(dtype=np.int64))

    def posting(self, term: str) -> Posting | None:
        """The rows of a term, or None when no row of the scope holds it."""
        term_id = self._vocabulary.get(term)
        return None if term_id is None else self._postings.of(term_id)

    def frequency(self, term: str) -> int:
        """How many documents hold the term."""
        found = self.posting(term)
        return 0 if found is None else len(np.unique(self._documents[found.rows]))

    def folded(self, term: str) -> Sequence[str]:
        """The terms of the field that equal `term` once accents are folded, ascending."""
        plain = fold_accents(term)
        return sorted(self._present([plain, *self._accented.get(plain, ())]))

    def _present(self, terms: Iterable[str]) -> list[str]:
        return [term for term in terms if self.posting(term) is not None]

    @lazy
    def _accented(self) -> dict[str, list[str]]:
        """The terms that folding changes, by what they become."""
        forms: dict[str, list[str]] = {}
        for term in self._vocabulary:
            if not term.isascii() and (plain := fold_accents(term)) != term:
                forms.setdefault(plain, []).append(term)
        return forms
