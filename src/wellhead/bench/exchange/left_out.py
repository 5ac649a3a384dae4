"""What a form cannot hold, said in notes, so that nothing is lost without a word."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import msgspec

from wellhead.bench.labels import Label, LabelledQuery, Labels

__all__ = ["Imported", "Part", "left_out", "some"]

_NAMED = 5
Part: TypeAlias = str

_OF_LABELS: Mapping[Part, Callable[[Label], bool]] = {
    "quote": lambda label: bool(label.quote),
    "span": lambda label: label.span is not None,
    "rater": lambda label: bool(label.rater),
    "time": lambda label: bool(label.time),
}
_OF_QUERIES: Mapping[Part, Callable[[LabelledQuery], bool]] = {
    "text": lambda query: bool(query.query),
    "need": lambda query: bool(query.need),
    "tags": lambda query: bool(query.tags),
    # Whether such a query has answers of grade 0 beside: the word is what gets lost.
    "unanswerable": lambda query: query.unanswerable,
}


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """Labels as another form had them.

    Args:
        notes: what was made up or left out on the way, one sentence each.
    """

    labels: Labels
    notes: tuple[str, ...] = ()


def left_out(labels: Labels, holds: Collection[Part], form: str) -> list[str]:
    """What of these labels the form does not hold: one note for each part, with how many have it.

    Args:
        holds: the parts that it does hold: fields of labels (quote, span, rater, time) and of queries (text, need,
            tags, unanswerable), and "places", when two labels of one document stay two.
    """
    notes = []
    for part, has in _OF_LABELS.items():
        count = sum(has(label) for _query_id, label in labels)
        if count and part not in holds:
            notes.append(f"{form} holds no {part}: left out of {some(count, 'label', 'labels')}")
    for part, has_too in _OF_QUERIES.items():
        names = [query.query_id for query in labels.queries if has_too(query)]
        if names and part not in holds:
            notes.append(_of_queries(part, names, form))
    return notes if "places" in holds else [*notes, *_joined(labels, form)]


def some(count: int, one: str, many: str) -> str:
    """`1 query`, `2 queries`."""
    return f"{count} {one if count == 1 else many}"


def _of_queries(part: Part, names: Sequence[str], form: str) -> str:
    listed = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    what = {"unanswerable": "cannot say unanswerable", "text": "holds no query text"}.get(part, f"holds no {part}")
    return f"{form} {what}: left out of {some(len(names), 'query', 'queries')} ({listed})"


def _joined(labels: Labels, form: str) -> list[str]:
    fewer = len(labels) - sum(len(query.grades) for query in labels.queries)
    if not fewer:
        return []
    return [f"{form} holds one grade a document: {some(fewer, 'label', 'labels')} joined with a higher or equal one"]
