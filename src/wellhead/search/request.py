"""What a caller may ask of a search, checked before anything runs. A wrong option is an error that says what is right.

A query is data: whatever characters it holds, it is never parsed as a query language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict, TypeVar, Unpack, get_args

import msgspec

from wellhead.errors import UsageError
from wellhead.hints import choices
from wellhead.records import of_numpy
from wellhead.search.filters import Condition, parse

__all__ = ["LONGEST_QUERY", "MOST_K", "Asked", "Cut", "Fusion", "Mode", "Options", "check"]

Mode: TypeAlias = Literal["hybrid", "lexical", "dense"]
Fusion: TypeAlias = Literal["blend", "rrf", "convex"]
Cut: TypeAlias = Literal["query", "hit", "off"]
_Choice = TypeVar("_Choice", bound=str)

LONGEST_QUERY = 8_000
MOST_K = 100
# The signals that can be cut on, by what is searched.
_SIGNALS: Mapping[str, tuple[str, ...]] = {
    "hybrid": ("coverage", "cosine", "probability"),
    "lexical": ("coverage",),
    "dense": ("cosine",),
}
_RANGES = {"cosine": (-1.0, 1.0), "coverage": (0.0, 1.0), "probability": (0.0, 1.0)}
_CODE = re.compile("[a-z]{2,3}")
_NOT_TEXT = dict.fromkeys((0, *range(0xD800, 0xE000)), "\ufffd")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a search, checked."""

    query: str
    k: int
    mode: Mode
    fusion: Fusion
    weight: float | None
    condition: Condition | None
    cut: Cut
    thresholds: Mapping[str, float] | None
    per_document: int | None
    max_tokens: int | None
    language: str | None


class Options(TypedDict, total=False):
    """The options of a search, as `Index.search` documents them."""

    k: int
    filters: Mapping[str, object] | None
    mode: Mode
    fusion: Fusion
    weight: float | None
    per_document: int | None
    max_tokens: int | None
    cut: Cut
    threshold: float | Mapping[str, float] | None
    language: str | None


def check(query: str, **options: Unpack[Options]) -> Asked:
    """The options, or the first thing wrong with them.

    Raises:
        UsageError: naming the option, what it may be, and what it was.
    """
    mode: Mode = _choice("mode", options.get("mode", "hybrid"), get_args(Mode))
    weight, per_document, max_tokens = (options.get("weight"), options.get("per_document"), options.get("max_tokens"))
    return Asked(
        query=_query(query),
        k=_whole("k", options.get("k", 10), MOST_K),
        mode=mode,
        fusion=_choice("fusion", options.get("fusion", "blend"), get_args(Fusion)),
        weight=None if weight is None else _number("weight", weight, 0.0, 1.0),
        condition=parse(options.get("filters")),
        cut=_choice("cut", options.get("cut", "query"), get_args(Cut)),
        thresholds=_thresholds(options.get("threshold"), mode),
        per_document=None if per_document is None else _whole("per_document", per_document, None),
        max_tokens=None if max_tokens is None else _whole("max_tokens", max_tokens, None),
        language=_language(options.get("language")),
    )


def _language(code: object) -> str | None:
    """Any code passes, for a document may have any; a name would silently turn stemming off."""
    if code is None:
        return None
    if isinstance(code, str) and _CODE.fullmatch(code := code.lower().partition("-")[0]):
        return code
    raise UsageError("language must be an ISO 639-1 code", why=f"got {code!r}", fix='for example "en" or "de"')


def _query(query: object) -> str:
    if not isinstance(query, str):
        raise UsageError("a query must be text", why=f"got {type(query).__name__}")
    if not query.strip():
        raise UsageError("the query is blank", fix="ask with at least one word")
    if len(query) > LONGEST_QUERY:
        raise UsageError(
            f"the query has {len(query)} characters; {LONGEST_QUERY} are the most",
            fix="ask a question, not a document",
        )
    return query.translate(_NOT_TEXT)


def _whole(name: str, value: object, most: int | None) -> int:
    value = of_numpy(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1 or (most is not None and value > most):
        wanted = f"a whole number from 1 to {most}" if most else "a whole number from 1"
        raise UsageError(f"{name} must be {wanted}", why=f"got {value!r}")
    return value


def _number(name: str, value: object, least: float, most: float) -> float:
    value = of_numpy(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise UsageError(f"{name} must be a number from {least:g} to {most:g}", why=f"got {value!r}")
    return float(value)


def _choice(name: str, value: object, known: Sequence[_Choice]) -> _Choice:
    for choice in known:
        if value == choice:
            return choice
    raise UsageError(f"unknown {name} {value!r}", fix=choices(str(value), known))


def _thresholds(threshold: object, mode: Mode) -> Mapping[str, float] | None:
    if threshold is None:
        return None
    if isinstance(threshold, Mapping):
        wrong = [name for name in threshold if name not in _SIGNALS[mode]]
        if wrong or not threshold:
            raise UsageError(
                f"a threshold in mode {mode!r} names one of {', '.join(_SIGNALS[mode])}",
                why=f"got {wrong or 'an empty mapping'}",
            )
        return {name: _cut(name, value) for name, value in threshold.items()}
    if mode == "lexical":
        raise UsageError(
            "a plain threshold is a cosine, and mode 'lexical' has none", fix='name the signal: {"coverage": 0.4}'
        )
    return {"cosine": _cut("cosine", threshold)}


def _cut(name: str, value: object) -> float:
    """Nothing reaches a cut beyond its signal's range: that would be an empty answer to every query."""
    least, most = _RANGES[name]
    value = of_numpy(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise UsageError(f"a threshold on {name} must be a number from {least:g} to {most:g}", why=f"got {value!r:.60}")
    return float(value)
