"""The lexical leg: BM25 over two fields, with the live statistics of the scope.

    score(passage) = sum over fields f, terms t:  weight_f * count_query(t) * idf(t) * tf * (k1 + 1) / (tf + norm)
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))          never negative; of N documents, df hold the term
    norm   = k1 * (1 - b + b * length / mean length)

after Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the "1 +" form of
the inverse document frequency that Lucene uses. It counts documents and not passages: every passage of a document
repeats its title, and a long document would make its own subject look common. Repeated words of a query count each
time. Terms are added in the order of the query, so that equal rows get equal floats wherever they stand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from wellhead.ports import Field, Posting, View
from wellhead.records import TermMatch, Terms

if TYPE_CHECKING:
    from wellhead.ports import BoolArray, DoubleArray, RowArray

__all__ = ["K1", "WORD_WEIGHT", "B", "Lexical", "idf", "score", "term_matches"]

K1 = 1.2
B = 0.75
# The field of exact words: what lifts the exact form above its stem-mates.
WORD_WEIGHT = 0.1


class Lexical(NamedTuple):
    """The leg's answer.

    Args:
        scores: float64[space]. most: that this query could score (0.0 for no terms).
        terms: of the query, weighed, with their postings.
    """

    scores: DoubleArray
    most: float
    terms: tuple[_Weighted, ...]

    def coverage(self, rows: RowArray) -> DoubleArray:
        """How much of what the query could score each row scores: 0 to 1."""
        if self.most <= 0.0:
            return np.zeros(len(rows))
        covered: DoubleArray = self.scores[rows] / self.most
        return covered

    def held(self, rows: RowArray) -> DoubleArray:
        """How much of the query's words, each by its weight, each row holds at all: 0 to 1.

        Unlike the coverage it knows neither how often nor among how many others.
        """
        stems = [term for term in self.terms if term.name == "stem"]
        held = np.zeros(len(rows))
        for term in stems:
            if term.posting is not None:
                held += term.weight * _are_in(term.posting, rows)
        return held / sum(term.weight for term in stems) if stems else held


class _Weighted(NamedTuple):
    """One term of the query in one field.

    Args:
        repeats: in the query. documents: that hold it. weight: of all repeats. mean: length of a row in this field.
    """

    term: str
    name: Literal["stem", "word"]
    field: Field
    repeats: int
    documents: int
    weight: float
    mean: float
    posting: Posting | None


def idf(documents: int, frequency: int) -> float:
    """The weight of a term that `frequency` of so many `documents` hold: > 0, also when all of them do."""
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def score(view: View, terms: Terms) -> Lexical:
    """BM25 of every row of the scope: 0.0 for rows that hold no term, and for dead ones."""
    weighted = tuple(_weighted(view, terms))
    most = sum((term.weight * (K1 + 1.0) for term in weighted), start=0.0)
    found = [term for term in weighted if term.posting is not None]
    if not found:
        return Lexical(np.zeros(view.space, dtype=np.float64), most, weighted)
    rows = np.concatenate([term.posting.rows for term in found if term.posting is not None])
    parts = np.concatenate([_contributions(term) for term in found])
    # Adds in the order given: for each row the terms in the order of the query.
    scores: DoubleArray = np.bincount(rows, weights=parts, minlength=view.space).astype(np.float64, copy=False)
    return Lexical(scores, most, weighted)


def term_matches(view: View, terms: Terms, row: int) -> list[TermMatch]:
    """What each term gives to one row, the largest first."""
    matches: list[TermMatch] = []
    for term in _weighted(view, terms):
        count, part = 0, 0.0
        if term.posting is not None:
            place = int(np.searchsorted(term.posting.rows, row))
            if place < len(term.posting.rows) and term.posting.rows[place] == row:
                count = int(term.posting.counts[place])
                part = float(_contributions(term)[place])
        matches.append(
            TermMatch(
                term=term.term,
                field=term.name,
                query_count=term.repeats,
                passage_count=count,
                documents=term.documents,
                score=part,
            )
        )
    return sorted(matches, key=lambda match: (-match.score, match.field, match.term))


def _contributions(term: _Weighted) -> DoubleArray:
    assert term.posting is not None
    counts = term.posting.counts.astype(np.float64)
    norm = term.field.lengths[term.posting.rows] * (K1 * B / term.mean)
    norm += K1 * (1.0 - B)
    norm += counts
    counts *= term.weight * (K1 + 1.0)
    counts /= norm
    return counts


def _weighted(view: View, terms: Terms) -> Iterator[_Weighted]:
    fields: tuple[tuple[Literal["stem", "word"], Field, dict[str, int], float], ...] = (
        ("stem", view.stems, dict(terms.stems), 1.0),
        ("word", view.words, dict(terms.words), WORD_WEIGHT),
    )
    passages, documents = len(view), view.document_count
    for name, field, counts, weight in fields:
        mean = field.total / passages if passages else 0.0
        for term, count in counts.items():
            frequency = field.frequency(term)
            worth = weight * count * idf(documents, frequency)
            yield _Weighted(term, name, field, count, frequency, worth, mean, field.posting(term))


def _are_in(posting: Posting, rows: RowArray) -> BoolArray:
    """Which of these rows, few beside those of the posting, it holds: bool[len(rows)]."""
    # Of the same type as its rows, which would be copied otherwise.
    wanted = rows.astype(posting.rows.dtype)
    places = np.searchsorted(posting.rows, wanted)
    found: BoolArray = posting.rows.take(places, mode="clip") == wanted
    return found
