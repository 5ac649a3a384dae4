"""What a model is told: one wording for each way that a call can end. No two look alike, and none quotes a backend.

hits            passages; the search may have been degraded, which the note says
no_match        the search ran, and nothing is close enough
filtered_out    the search ran, and the filters leave no passage to look at
empty_index     there is nothing to search yet
unavailable     an outage: whether something would be found is unknown
timeout         the same, for it took too long
bad_query       a query that cannot be searched for: blank, too long
no_scope        the host program did not say for whom to search
misconfigured   a person has to mend the set-up
bad_arguments, unknown_tool, refused, budget_spent, failed      of any tool
ok              of any tool but a search
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from wellhead.agent.schema import ArgumentsError
from wellhead.errors import BackendError, BackendTimeout, ConfigError, ScopeError, StoreError, UsageError, WellheadError
from wellhead.records import Degraded, Hits
from wellhead.trust.visible import one_line

__all__ = ["Outcome", "QueryError", "RefusedError", "Said", "degraded_note", "note_of", "of_error"]

Outcome: TypeAlias = Literal[
    "hits",
    "no_match",
    "filtered_out",
    "empty_index",
    "unavailable",
    "timeout",
    "bad_query",
    "no_scope",
    "misconfigured",
    "bad_arguments",
    "unknown_tool",
    "refused",
    "budget_spent",
    "failed",
    "ok",
]

_LONGEST = 300


class QueryError(UsageError):
    """A query that no search can take."""


class RefusedError(UsageError):
    """A call that was not made: an unknown tool, a spent budget, a hook's veto. `outcome` says which."""

    def __init__(self, what: str, *, outcome: Outcome, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.outcome: Outcome = outcome


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome, and how it is put to the model."""

    outcome: Outcome
    text: str


_NO_MEMORY = "Do not answer from memory as if the documents said it."
_UNKNOWN = "Whether the documents answer the question is unknown; do not say that they do not."

_EMPTY: Mapping[str, str] = {
    "no_match": (
        "NOTHING FOUND: the search ran, and no passage is close enough to this query. Say that the documents do not "
        f"answer it. {_NO_MEMORY} You may search once more in other words."
    ),
    "filtered_out": (
        "NOTHING TO LOOK AT: the search ran, and the filters in force leave no passage, whatever the query. Other "
        f"words will not help. {_NO_MEMORY}"
    ),
    "empty_index": (
        "NO DOCUMENTS: nothing has been put into this search yet, so no query can find anything. Say that the "
        f"documentation is not there yet. {_NO_MEMORY}"
    ),
}
_EMPTY_DEGRADED = (
    "NOTHING FOUND BY HALF A SEARCH: only a part of the search ran, and it found no passage close enough. Whether the "
    f"documents answer the question is not certain. {_NO_MEMORY}"
)
_SEARCH_FAILED: Mapping[Outcome, str] = {
    "unavailable": (
        f"SEARCH UNAVAILABLE: the search is down, and nothing was looked up. {_UNKNOWN} Say that it cannot be looked "
        "up now, or hand over to a person."
    ),
    "timeout": (
        f"SEARCH TIMED OUT: no answer came in time, and nothing was looked up. {_UNKNOWN} Say that the search took "
        "too long, or hand over to a person."
    ),
    "no_scope": (
        "NOT PERMITTED: the program did not say for whom to search, so nothing was searched. You cannot mend this. "
        f"{_UNKNOWN}"
    ),
    "misconfigured": (
        "SEARCH SET UP WRONGLY: it cannot run until a person mends it, and calling it again will not help. "
        f"{_UNKNOWN} Hand over to a person."
    ),
    "failed": f"SEARCH FAILED: something went wrong inside the tool, and nothing was looked up. {_UNKNOWN}",
}
_TOOL_FAILED: Mapping[Outcome, str] = {
    "unavailable": "TOOL UNAVAILABLE: what this tool depends on is down. Say so; do not make up its answer.",
    "timeout": "TOOL TIMED OUT: no answer came in time. Say so; do not make up its answer.",
    "no_scope": "NOT PERMITTED: the program did not say for whom to run this tool. You cannot mend this.",
    "misconfigured": "TOOL SET UP WRONGLY: it cannot run until a person mends it. Calling it again will not help.",
    "failed": "TOOL FAILED: something went wrong inside it. Say so; do not make up its answer.",
}


_REFUSED: Mapping[str, str] = {
    "unknown_tool": "UNKNOWN TOOL: nothing was called.",
    "refused": "NOT ALLOWED: the program refused this call.",
    "budget_spent": "BUDGET SPENT: nothing more can be called in this run; answer with what you have.",
}


def note_of(hits: Hits, *, narrowed: bool = False) -> str:
    """What is said beside the hits, or instead of them.

    Args:
        narrowed: the model chose a filter itself, and may leave it out.
    """
    degraded = [degraded_note(part) for part in hits.degraded]
    if hits.outcome == "hits":
        found = "1 passage was" if len(hits) == 1 else f"{len(hits)} passages were"
        return " ".join(
            [f"{found} found. Answer only from what is said there, and cite the source of what you use.", *degraded]
        )
    told = _EMPTY_DEGRADED if degraded and hits.outcome == "no_match" else _EMPTY[hits.outcome]
    own = "You narrowed this search yourself: without the narrowing it may find more."
    return " ".join([told, *([own] if narrowed and hits.outcome != "empty_index" else []), *degraded])


def degraded_note(part: Degraded) -> str:
    """One sentence on a leg that did not run. What a backend says of itself is cut and kept on one line."""
    why = one_line(part.why, _LONGEST)
    mend = f" A person can mend it: {one_line(part.fix, _LONGEST)}." if part.fix else ""
    return f"DEGRADED: the {part.leg} half of the search did not run ({why}), so passages may be missing.{mend}"


def of_error(error: Exception, kind: str) -> Said:
    """How a failure of a tool of this kind is told. The text of a foreign exception is never part of it."""
    if isinstance(error, RefusedError):
        return Said(outcome=error.outcome, text=f"{_REFUSED[error.outcome]} {_in_words(error)}")
    if isinstance(error, QueryError):
        return Said(outcome="bad_query", text=f"BAD QUERY: nothing was searched. {_in_words(error)}")
    outcome = _outcome_of(error, kind)
    if outcome == "bad_arguments" and isinstance(error, UsageError):
        return Said(outcome=outcome, text=f"BAD ARGUMENTS: the tool did not run. {_in_words(error)}")
    return Said(outcome=outcome, text=(_SEARCH_FAILED if kind == "retrieval" else _TOOL_FAILED)[outcome])


def _outcome_of(error: Exception, kind: str) -> Outcome:
    match error:
        case ScopeError():
            return "no_scope"
        case ArgumentsError():
            return "bad_arguments"
        case UsageError():
            # A search's query and arguments were checked before: what is wrong now is how the retriever is wired.
            return "misconfigured" if kind == "retrieval" else "bad_arguments"
        case ConfigError():
            return "misconfigured"
        case BackendTimeout():
            return "timeout"
        case BackendError() | StoreError():
            return "unavailable"
        case _:
            return "failed"


def _in_words(error: WellheadError) -> str:
    """What, why and how to mend it: the words of a UsageError are ours, and about what the model itself sent."""
    parts = [error.what, error.why, error.fix]
    lines = [one_line(part, _LONGEST).rstrip(".") for part in parts if part]
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in lines)
