"""A comparison for people: a table of measures, what may be said about it, and the queries that differ most."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from wellhead.bench.compare import Comparison, Contrast, Row, Shown, Side
from wellhead.bench.evaluate import NOTHING
from wellhead.bench.report import aligned

__all__ = ["resolution", "to_text", "verdict"]

_HEADS = ["measure", "A", "B", "B - A", "95 %", "p", "wins", "losses", "ties"]
# Columns of one of two rankings beside one another, and how many documents are listed as returned by one alone.
_WIDTH = 54
_LISTED = 5


def to_text(comparison: Comparison, names: tuple[str, str]) -> str:
    """The comparison as text; `names` are those of A and B, as the reader knows them."""
    lines = [*_preamble(comparison, names), "", *aligned([_HEADS, *map(_cells, comparison.rows)]), ""]
    lines += [verdict(comparison), resolution(comparison), *_notes(comparison)]
    if comparison.contrasts:
        lines += ["", "The queries that differ most. In brackets the grade, - where nobody judged; then matched words."]
    for contrast in comparison.contrasts:
        lines += ["", *_beside(contrast, comparison.main.measure)]
    return "\n".join(lines)


def _preamble(comparison: Comparison, names: tuple[str, str]) -> list[str]:
    counts = _queries(comparison.queries, "labelled ")
    if comparison.unanswerable:
        counts += f", {comparison.unanswerable} unanswerable"
    sides = zip("AB", names, (comparison.a, comparison.b), strict=True)
    lines = [f"{comparison.collection}: {counts}", *(_side(letter, name, side) for letter, name, side in sides)]
    return lines + [f"{name}: A {a or 'none'}, B {b or 'none'}" for name, a, b in comparison.changed]


def _side(letter: str, name: str, side: Side) -> str:
    return f"{letter}: {name}, {side.pipeline}; p50 {side.p50_ms:.2f} ms, {side.tokens:.0f} tokens delivered (medians)"


def _cells(row: Row) -> list[str]:
    digits = 0 if row.counted else 4
    ends = 1 if row.counted else 4
    return [
        _named(row),
        f"{row.a:.{digits}f}",
        f"{row.b:.{digits}f}",
        _signed(row.difference, digits),
        f"{_signed(row.low, ends)} to {_signed(row.high, ends)}",
        f"{row.p:.4f}",
        *(str(count) for count in (row.wins, row.losses, row.ties)),
    ]


def _named(row: Row) -> str:
    """As the table of an evaluation has it, where it has it."""
    return "nothing relevant" if row.measure == NOTHING else row.measure


def _signed(number: float, digits: int) -> str:
    """With its sign, but for what rounds to 0."""
    text = f"{number:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def verdict(comparison: Comparison) -> str:
    """One sentence: a difference where the test tells one, and otherwise that there is none to tell."""
    row, digits = comparison.main, 0 if comparison.main.counted else 4
    if row.ties == comparison.queries:
        return f"no difference: {_queries(comparison.queries)}, each with the same {row.measure} in both"
    change = _signed(row.difference, digits)
    if not comparison.told:
        return f"no difference that {_queries(comparison.queries)} can tell: {row.measure} {change}, p = {row.p:.4f}"
    other = "A" if comparison.better == "B" else "B"
    return f"{comparison.better} is better than {other}: {row.measure} {change} (B - A), p = {row.p:.4f}"


def resolution(comparison: Comparison) -> str:
    """One sentence: how large a difference must be for this set to see it."""
    counted = _queries(comparison.queries)
    if comparison.resolves is not None:
        digits = 1 if comparison.main.counted else 3
        unit = f"{comparison.main.measure} above {comparison.resolves:.{digits}f}"
        return f"{counted} with this spread resolve differences of {unit} (four times out of five)"
    if comparison.main.ties == comparison.queries:
        return "what the set could resolve is not known, for nothing differs"
    return f"{counted} are too few to tell any difference from chance; from 6 on one can be told"


def _notes(comparison: Comparison) -> list[str]:
    notes = ["wins, losses, ties: queries on which B is better, worse, equal; p: paired randomisation test, two-sided"]
    for letter, side in zip("AB", (comparison.a, comparison.b), strict=True):
        notes += [f"warning: {letter}: {warning}" for warning in side.warnings]
    return notes


def _beside(contrast: Contrast, measure: str) -> list[str]:
    tags = f" [{', '.join(contrast.tags)}]" if contrast.tags else ""
    head = f"{contrast.query_id}{tags}: {measure} {contrast.a:.4f} -> {contrast.b:.4f}"
    text = textwrap.shorten(contrast.text, 2 * _WIDTH, placeholder=" ...")
    pairs = zip_longest(contrast.first_a, contrast.first_b)
    rows = [("A", "B"), *((_ranked(a), _ranked(b)) for a, b in pairs)]
    lines = [head, f"  {text}", *(f"  {a:<{_WIDTH}}  {b}".rstrip() for a, b in rows)]
    for letter, only in (("A", contrast.only_a), ("B", contrast.only_b)):
        if only:
            lines.append(f"  only {letter}, in the first 10: {_listed(only)}")
    return lines


def _ranked(one: Shown | None) -> str:
    """`1. guides/keys.md (2) key, rotated`, cut to the width of a column."""
    if one is None:
        return "-"
    terms = f" {', '.join(one.terms)}" if one.terms else ""
    line = f"{one.rank}. {one.document_id} ({_grade(one)}){terms}"
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _grade(one: Shown) -> str:
    return "-" if one.grade is None else str(one.grade)


def _listed(only: Sequence[Shown]) -> str:
    """Relevant ones first: they are what the other one missed."""
    first = sorted(only, key=lambda one: (-(one.grade or 0), one.rank))[:_LISTED]
    names = ", ".join(f"{one.document_id} ({_grade(one)})" for one in first)
    return names + (f" and {len(only) - len(first)} more" if len(only) > len(first) else "")


def _queries(count: int, kind: str = "") -> str:
    return f"{count} {kind}{'query' if count == 1 else 'queries'}"
