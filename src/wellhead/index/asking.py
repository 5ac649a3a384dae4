"""A query becomes a request (checked, analysed, embedded, with the cuts and weights that apply), and is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wellhead import wiring
from wellhead.analyze import analyze, identifiers, query_language, stems_of
from wellhead.errors import BackendError, ConfigError, StaleView, UsageError
from wellhead.index.house import House, Scope
from wellhead.ingest.vectors import unit
from wellhead.ports import Tokenized, View
from wellhead.records import Degraded, Explanation, Hits
from wellhead.search import hybrid
from wellhead.search.explain import explain as explain_rows
from wellhead.search.filters import select
from wellhead.search.rank import Request
from wellhead.search.request import Asked, Options, check
from wellhead.search.respell import respell
from wellhead.search.within import Within

if TYPE_CHECKING:
    from wellhead.ports import FloatArray

__all__ = ["explain", "request", "row_of", "search", "steady", "within"]

# A writer would have to delete what is being read so many times in a row.
_TRIES = 20
_Read = TypeVar("_Read")


def search(house: House, view_now: Callable[[], View], query: str, options: Options) -> Hits:
    """The answer to a query over the view as it is now (see `Index.search`)."""
    asked = check(query, **options)
    view = view_now()
    wanted = request(house, asked, view)
    try:
        return hybrid.search(view, wanted)
    except StaleView:
        # The query is embedded once, however often the index is written to meanwhile.
        return steady(view_now, lambda view: hybrid.search(view, wanted))


def explain(
    house: House, view_now: Callable[[], View], query: str, passage_ids: Sequence[str], options: Options
) -> list[Explanation]:
    """Why passages rank where they do (see `Index.explain`)."""
    asked = check(query, **options)
    wanted = request(house, asked, view_now())
    return steady(
        view_now, lambda view: explain_rows(view, wanted, asked.query, [row_of(view, one) for one in passage_ids])
    )


def steady(view_now: Callable[[], View], read: Callable[[View], _Read]) -> _Read:
    """What `read` gives of one view; on a fresh one, where somebody deleted a passage before it was read.

    Raises:
        StaleView: it came to that each time.
    """
    for _ in range(_TRIES - 1):
        try:
            return read(view_now())
        except StaleView:
            continue
    return read(view_now())


def within(view: View, scope: Scope) -> Within:
    """The rows of a scope in an index that does not keep scopes apart, as a view of its own."""
    column = view.column(scope.key)
    if column is None:
        return Within(view, np.zeros(view.space, dtype=bool))
    # Exactly this text: unlike for a filter, a list that holds it is another value.
    own = [code for code, value in enumerate(column.values) if value == scope.value]
    return Within(view, np.isin(column.codes, own))


def request(house: House, asked: Asked, view: View) -> Request:
    """The request for one view.

    Raises:
        BackendError, StaleIndex: the dense leg is gone, in mode "dense" or with on_degrade="fail".
    """
    house.check_fresh("analyzer")
    language = asked.language or query_language(
        asked.query, view.languages, lambda stem: view.stems.posting(stem) is not None
    )
    admits = select(asked.condition, view)
    terms, stem_of = respell(view, analyze(asked.query, language), stems_of(asked.query, language), language, admits)
    vector, degraded = _vector(house, asked, view)
    profile = wiring.profile(house.recipe.embedder)
    if asked.thresholds is not None and "probability" in asked.thresholds and profile.cuts.fit is None:
        raise UsageError(
            "there is no fitted probability to cut on",
            why=f"nobody measured {house.recipe.model}",
            fix='cut on "cosine" or "coverage"',
        )
    return Request(
        terms=terms,
        stem_of=stem_of,
        identifiers=tuple(identifiers(asked.query)),
        vector=vector,
        legs=asked.mode if vector is not None else "lexical",
        k=asked.k,
        fusion=asked.fusion,
        weight=profile.weight if asked.weight is None else asked.weight,
        condition=asked.condition,
        cuts=profile.cuts,
        cut=asked.cut,
        thresholds=asked.thresholds,
        per_document=asked.per_document,
        max_tokens=asked.max_tokens,
        count_tokens=lambda text: _count_tokens(house, text),
        degraded=() if degraded is None else (degraded,),
    )


def _count_tokens(house: House, text: str) -> int:
    from wellhead.ingest.chunk import word_starts

    embedder = house.recipe.embedder
    return len(embedder.token_starts(text) if isinstance(embedder, Tokenized) else word_starts(text))


def _vector(house: House, asked: Asked, view: View) -> tuple[FloatArray | None, Degraded | None]:
    """The query's vector, or what is said when there is none."""
    if asked.mode == "lexical" or not len(view):
        return None, None
    try:
        return _embedded(house, asked.query, view), None
    except (BackendError, ConfigError) as error:
        if asked.mode == "dense" or house.on_degrade == "fail":
            raise
        return None, Degraded(leg="dense", why=error.why or error.what, fix=error.fix)


def _embedded(house: House, query: str, view: View) -> FloatArray:
    house.check_fresh("model")
    if not view.with_vectors:
        raise BackendError(
            "the dense leg has nothing to search",
            why="no passage of this scope has a vector",
            fix="index the documents again with a working embedder",
        )
    try:
        made: FloatArray = np.asarray(house.recipe.embedder.embed_query(query), dtype=np.float32)
    except ConfigError:
        raise
    except Exception as error:
        raise BackendError(
            "the query could not be embedded",
            where=house.recipe.model,
            why=f"the embedder failed with {type(error).__name__}",
            fix="see the chained error; search again when the embedder works",
        ) from error
    return _checked(made, view.dims, house.recipe.model)


def _checked(vector: FloatArray, dims: int, model: str) -> FloatArray:
    if vector.shape != (dims,):
        raise BackendError(
            "the query's vector does not fit the index",
            where=model,
            why=f"it has shape {vector.shape}, the index holds vectors of {dims}",
            fix="use the embedder that the index was made with",
        )
    scaled = unit(vector)
    if scaled is None:
        raise BackendError(
            "the query has no usable vector",
            where=model,
            why="it is all zeros, or not finite",
            fix="ask in other words, or search with mode='lexical'",
        )
    return scaled


def row_of(view: View, passage_id: str) -> int:
    """The row of a passage, by its id or by what it begins with (6 characters at least).

    Raises:
        UsageError: no such passage in the view, or several.
    """
    if not isinstance(passage_id, str):
        raise UsageError("a passage id must be text", why=f"got {type(passage_id).__name__}")
    row = view.row(passage_id)
    if row is not None:
        return row
    near = view.starting(passage_id) if len(passage_id) >= 6 else ()
    if len(near) == 1:
        return near[0]
    if near:
        raise UsageError(f"{len(near)} passages begin with {passage_id!r}", fix="give more characters of the id")
    raise UsageError(
        f"no passage {passage_id!r} here",
        fix="give a passage id, or its first 6 characters or more, as a search shows it",
    )
