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

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from wellhead.ports import Field, Posting, View
from wellhead.records import TermMatch, Terms

if TYPE_CHECKING:
    from wellhead.ports import DoubleArray, IntArray, RowArray
    from wellhead.search.top import Candidates

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
        stem_rows: those of all stems, one stem after the other.
    """

    scores: DoubleArray
    most: float
    terms: tuple[_Weighted, ...]
    stem_rows: IntArray

    def coverage(self, rows: RowArray) -> DoubleArray:
        """How much of what the query could score each row scores: 0 to 1."""
        if self.most <= 0.0:
            return np.zeros(len(rows))
        covered: DoubleArray = self.scores[rows] / self.most
        return covered

    def held(self, candidates: Candidates) -> DoubleArray:
        """How much of the query's words, each by its weight, each candidate holds at all: 0 to 1.

        Unlike the coverage it knows neither how often nor among how many others.
        """
        stems = [term for term in self.terms if term.name == "stem"]
        if not len(self.stem_rows):
            return np.zeros(len(candidates.rows))
        sizes = [0 if term.posting is None else len(term.posting.rows) for term in stems]
        weights = np.repeat([term.weight for term in stems], sizes)
        places = candidates.places.take(self.stem_rows)
        held = np.bincount(places, weights=weights, minlength=len(candidates.rows) + 1)[1:]
        return held / sum(term.weight for term in stems)


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
        return Lexical(np.zeros(view.space, dtype=np.float64), most, weighted, np.zeros(0, dtype=np.int32))
    fields = [list(terms) for _, terms in itertools.groupby(found, key=lambda term: term.name)]
    rows, parts = zip(*map(_contributions, fields), strict=True)
    stem_rows = rows[0] if found[0].name == "stem" else rows[0][:0]
    # Adds in the order given: for each row the terms in the order of the query.
    scores = np.bincount(np.concatenate(rows), weights=np.concatenate(parts), minlength=view.space)
    return Lexical(scores.astype(np.float64, copy=False), most, weighted, stem_rows)


def term_matches(view: View, terms: Terms, row: int) -> list[TermMatch]:
    """What each term gives to one row, the largest first."""
    matches: list[TermMatch] = []
    for term in _weighted(view, terms):
        count, part = 0, 0.0
        if term.posting is not None:
            place = int(np.searchsorted(term.posting.rows, row))
            if place < len(term.posting.rows) and term.posting.rows[place] == row:
                count = int(term.posting.counts[place])
                part = float(_contributions([term])[1][place])
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


def _contributions(terms: Sequence[_Weighted]) -> tuple[IntArray, DoubleArray]:
    """The rows of these terms of one field, one term after the other, and what the term gives to each."""
    field, mean = terms[0].field, terms[0].mean
    postings = [term.posting for term in terms if term.posting is not None]
    rows = np.concatenate([posting.rows for posting in postings])
    parts = np.concatenate([posting.counts for posting in postings]).astype(np.float64)
    norm = field.lengths.take(rows) * (K1 * B / mean)
    norm += K1 * (1.0 - B)
    norm += parts
    weights = [term.weight * (K1 + 1.0) for term in terms]
    parts *= np.repeat(weights, [len(posting.rows) for posting in postings])
    parts /= norm
    return rows, parts


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
