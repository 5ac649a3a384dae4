"""`wellhead search` and `wellhead explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wellhead.doors.cli.again import Again
from wellhead.doors.cli.handle import find_passage, open_index
from wellhead.doors.cli.hits import (
    put_explanation,
    put_hit,
    say_empty,
    say_legend,
    say_near_misses,
    say_warnings,
)
from wellhead.doors.cli.options import TEXT, index_option, json_option, scope_option, search_options
from wellhead.doors.cli.output import excerpt, one_line, put, put_json

if TYPE_CHECKING:
    from wellhead.records import Explanation, Hits

__all__ = ["explain", "search"]

NO_MATCH = 3


@click.command()
@click.argument("query", type=TEXT)
@search_options
@click.option("--explain", "explaining", is_flag=True, help="Say for each hit which words and signals brought it here.")
@index_option
@scope_option
@json_option
def search(query: str, index: str, scope: dict[str, str], explaining: bool, as_json: bool, **settings: Any) -> int:
    """Search for cited passages, best first.

    Where there are none it says why, and exits with 3.
    """
    again = Again(query, index, scope, settings)
    with open_index(index, scope) as opened:
        hits = opened.search(query, **settings)
        reasons = [opened.explain(query, hit.id, **settings) for hit in hits] if explaining else []
    if as_json:
        put_json(_plain(query, hits, reasons, explaining))
    else:
        _tell(hits, reasons, again)
    say_warnings(hits)
    if hits.outcome == "hits":
        if explaining:
            say_near_misses(hits)
        return 0
    say_empty(hits, again)
    return NO_MATCH


@click.command()
@click.argument("query", type=TEXT)
@click.argument("passage", metavar="PASSAGE_ID", type=TEXT)
@search_options
@index_option
@scope_option
@json_option
def explain(query: str, passage: str, index: str, scope: dict[str, str], as_json: bool, **settings: Any) -> int:
    """Say why a passage ranks where it does.

    Or why a search for QUERY does not return it.

    PASSAGE_ID is the id that search shows, or its first six or more characters.
    """
    with open_index(index, scope) as opened:
        explanation = opened.explain(query, find_passage(opened, passage).id, **settings)
    if as_json:
        put_json(explanation.to_dict())
    else:
        _tell_why(explanation)
    return 0


def _plain(query: str, hits: Hits, reasons: list[Explanation], explaining: bool) -> dict[str, object]:
    plain = {**hits.to_dict(), "query": query}
    if explaining:
        plain["explanations"] = [reason.to_dict() for reason in reasons]
    return plain


def _tell(hits: Hits, reasons: list[Explanation], again: Again) -> None:
    for place, hit in enumerate(hits):
        put_hit(hit, again)
        if reasons:
            put_explanation(reasons[place])
    say_legend(hits, again)


def _tell_why(explanation: Explanation) -> None:
    passage = explanation.passage
    put((one_line(passage.citation), "cite"), (f"  {passage.id[:12]}", "dim"))
    put(excerpt(passage.text)[0])
    place = f"rank {explanation.rank}" if explanation.rank is not None else "in no pool"
    score = "" if explanation.score is None else f", score {explanation.score:.3f}"
    returned = "returned" if explanation.returned else "not returned"
    put((f"{returned}: {place}{score}, verdict {explanation.verdict}", "strong"))
    put(f"   {explanation.reason}")
    if explanation.filter:
        put(f"   excluded by the filter {explanation.filter}")
    put_explanation(explanation)
