"""The lexical leg: BM25 over two fields, with the live statistics of the scope.

    score(passage) = sum over fields f, terms t:  weight_f * count_query(t) * idf(t) * tf * (k1 + 1) / (tf + norm)
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))          never negative
    norm   = k1 * (1 - b + b * length / mean length)

after Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the "1 +" form of
the inverse document frequency that Lucene uses. Repeated words of a query count each time. Terms are added in the
order of the query, so that equal rows get equal floats wherever they stand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from wellhead.ports import Field, Posting, View
from wellhead.records import TermMatch, Terms

if TYPE_CHECKING:
    from wellhead.ports import DoubleArray, RowArray

__all__ = ["K1", "WORD_WEIGHT", "B", "Lexical", "idf", "score", "term_matches"]

K1 = 1.2
B = 0.75
# The field of exact words: what lifts the exact form above its stem-mates.
WORD_WEIGHT = 0.1


class Lexical(NamedTuple):
    """The leg's answer: `scores` float64[n], and the `most` that this query could score (0.0 for no terms)."""

    scores: DoubleArray
    most: float

    def coverage(self, rows: RowArray) -> DoubleArray:
        """How much of what the query could score each row scores: 0 to 1."""
        if self.most <= 0.0:
            return np.zeros(len(rows))
        covered: DoubleArray = self.scores[rows] / self.most
        return covered


class _Weighted(NamedTuple):
    """One term of the query in one field: what it weighs and where it stands."""

    term: str
    name: Literal["stem", "word"]
    field: Field
    repeats: int
    weight: float
    posting: Posting | None


def idf(rows: int, frequency: int) -> float:
    """The weight of a term that `frequency` of `rows` passages hold: > 0, also when all of them do."""
    return math.log(1.0 + (rows - frequency + 0.5) / (frequency + 0.5))


def score(view: View, terms: Terms) -> Lexical:
    """BM25 of every row of the scope."""
    scores = np.zeros(len(view), dtype=np.float64)
    most = 0.0
    for term in _weighted(view, terms):
        most += term.weight * (K1 + 1.0)
        if term.posting is not None:
            scores[term.posting.rows] += _contributions(term)
    return Lexical(scores, most)


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
                passages=0 if term.posting is None else len(term.posting.rows),
                score=part,
            )
        )
    return sorted(matches, key=lambda match: (-match.score, match.field, match.term))


def _contributions(term: _Weighted) -> DoubleArray:
    assert term.posting is not None
    counts = term.posting.counts.astype(np.float64)
    lengths = term.field.lengths[term.posting.rows]
    mean = term.field.total / len(term.field.lengths)
    norm = K1 * (1.0 - B + B * lengths / mean)
    parts: DoubleArray = term.weight * counts * (K1 + 1.0) / (counts + norm)
    return parts


def _weighted(view: View, terms: Terms) -> Iterator[_Weighted]:
    fields: tuple[tuple[Literal["stem", "word"], Field, dict[str, int], float], ...] = (
        ("stem", view.stems, dict(terms.stems), 1.0),
        ("word", view.words, dict(terms.words), WORD_WEIGHT),
    )
    for name, field, counts, weight in fields:
        for term, count in counts.items():
            posting = field.posting(term)
            frequency = 0 if posting is None else len(posting.rows)
            yield _Weighted(term, name, field, count, weight * count * idf(len(view), frequency), posting)
