"""Which scope a guarded search runs in, settled before the backend is called."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wellhead.errors import ScopeError
from wellhead.search.scope import scope_value

__all__ = ["Bound", "bind", "scope_of", "settle"]


class Bound(msgspec.Struct, frozen=True):
    """What a search is bound to: `metadata[key] == value`, exactly this text."""

    key: str
    value: str

    def holds(self, metadata: Mapping[str, object]) -> bool:
        # Unlike for a filter, a list that holds the value is another value.
        held = metadata.get(self.key)
        return type(held) is str and held == self.value


def scope_of(scope: Mapping[str, object], known: str | None) -> Bound:
    """The scope that keywords name: one key and its value.

    Raises:
        ScopeError: not exactly one key, another key than the corpus is scoped by, a blank value.
    """
    if len(scope) != 1:
        raise ScopeError("a scope is one key and its value", why=f"got {len(scope)}", fix='scoped(tenant="acme")')
    ((key, value),) = scope.items()
    if known not in (None, key):
        raise ScopeError(f"this retriever is scoped by {known!r}, not by {key!r}")
    return Bound(key, scope_value(key, value))


def bind(held: Bound | None, wanted: Bound) -> Bound:
    """The scope of a handle that may be bound already: never another one.

    Raises:
        ScopeError: it is bound to another scope.
    """
    if held not in (None, wanted):
        raise ScopeError("this handle is bound to another scope already", fix="bind a fresh handle of the retriever")
    return wanted


def settle(
    key: str | None, held: Bound | None, filters: Mapping[str, object] | None
) -> tuple[Bound | None, Mapping[str, object]]:
    """The scope of one search, and the filters that narrow within it.

    A filter on the scope key binds the search where nothing bound it before, and must agree with what did.

    Raises:
        ScopeError: the corpus has scopes and the search names none; a blank value; another scope than the bound one.
    """
    narrowing = dict(filters or {})
    if key is None:
        return None, narrowing
    if key in narrowing:
        value = narrowing.pop(key)
        if isinstance(value, Mapping) and set(value) == {"$eq"}:
            value = value["$eq"]
        return bind(held, Bound(key, scope_value(key, value))), narrowing
    if held is None:
        raise ScopeError(
            "this retriever cannot be searched without its scope",
            why=f"it keeps every {key} apart",
            fix=f'bind one first: retriever.scoped({key}="...")',
        )
    return held, narrowing
