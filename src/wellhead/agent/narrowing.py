"""Filters inside the scope: those of the host program, and what a model may choose from a list that the host allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from typing import TypeAlias, TypeGuard, cast

from wellhead.agent.context import Context
from wellhead.errors import ConfigError, ScopeError, UsageError
from wellhead.records import MetadataValue, of_numpy
from wellhead.search.filters import matches, parse
from wellhead.search.guard import Guarded
from wellhead.search.guard.scope import settle
from wellhead.trust.visible import visible

__all__ = ["Allowed", "Filters", "Narrowing", "allowed_values", "both", "check_filters", "settled"]

Filters: TypeAlias = Mapping[str, object] | Callable[[Context], Mapping[str, object]]
# "area"; ["area", "product"]; or the values themselves: {"area": ["guides", "runbooks"]}.
Narrowing: TypeAlias = str | Sequence[str] | Mapping[str, Sequence[str | int]]
Allowed: TypeAlias = Mapping[str, tuple[str | int, ...]]

_MOST_VALUES = 100
_LONGEST_VALUE = 100


def settled(filters: Filters | None, ctx: Context) -> Mapping[str, object] | None:
    """The host's filters for one call.

    Raises:
        ScopeError: a function of the host gave none, or a blank value: an unset user must not mean all of them.
        ConfigError: it gave something else than a filter.
    """
    if filters is None or not callable(filters):
        return filters
    made = cast("object", filters(ctx))
    if made is not None and not isinstance(made, Mapping):
        raise ConfigError("the filters function must return a mapping", why=f"it returned {type(made).__name__}")
    if not made:
        raise ScopeError("the filters function gave no filter", fix="for a search without filters pass filters=None")
    given = cast("Mapping[str, object]", made)
    check_filters(given)
    return given


def check_filters(filters: Mapping[str, object]) -> None:
    """Raises ScopeError for a blank value or an empty part anywhere, ConfigError for what is no filter.

    No filter at all is for the caller to judge; an empty one inside another was meant to hold something.
    """
    if any(map(_is_unset, _parts(filters))):
        raise ScopeError(
            "a filter of the tool has a blank value, or a part with nothing in it",
            why="an unset user or tenant must not mean all of them",
            fix="set it before the tool is called",
        )
    try:
        parse(filters)
    except UsageError as error:
        raise ConfigError("the filters of the tool are no filter", why=error.what, fix=error.fix) from error


def _is_unset(part: object) -> bool:
    """Whether a value is blank, or a list or mapping has nothing in it."""
    part = of_numpy(part)
    return part is None or (isinstance(part, str) and not part.strip()) or (_is_group(part) and not len(part))


def _is_group(value: object) -> TypeGuard[Collection[object]]:
    return isinstance(value, (Mapping, Sequence, Set)) and not isinstance(value, (str, bytes))


def _parts(group: Collection[object]) -> Iterator[object]:
    """All that stands in a filter, at every depth."""
    values = cast("Mapping[object, object]", group).values() if isinstance(group, Mapping) else group
    for value in values:
        yield value
        if _is_group(value):
            yield from _parts(value)


def both(filters: Mapping[str, object] | None, chosen: Mapping[str, str | int]) -> Mapping[str, object] | None:
    """What passes the host's filters and the model's choice: never more than the host's let pass."""
    if not chosen:
        return filters
    host = dict(filters or {})
    clashing = [{key: value} for key, value in chosen.items() if key in host]
    if clashing:
        # One key cannot be stated twice; the host's stays where it is, for it may be what binds the scope.
        host["$and"] = [*cast("Sequence[object]", host.get("$and", ())), *clashing]
    return {**host, **{key: value for key, value in chosen.items() if key not in host}}


def allowed_values(narrowing: Narrowing | None, filters: Filters | None, guarded: Guarded) -> Allowed:
    """The keys that a model may narrow by, and the values of each.

    They become part of the tool's schema, which a model reads as the program's own words. So of the values that the
    documents hold, those that are not one short visible line (at most 100 characters) are left out.

    Raises:
        ConfigError: a scope's key; no values, or too many, or of mixed types; values that cannot be read off; a listed
            value that is not one short visible line.
    """
    if not narrowing:
        return {}
    if isinstance(narrowing, Mapping):
        allowed = {key: tuple(dict.fromkeys(values)) for key, values in narrowing.items() if _is_list(key, values)}
    else:
        keys = [narrowing] if isinstance(narrowing, str) else list(narrowing)
        allowed = {key: _held(key, filters, guarded) for key in keys}
    for key, values in allowed.items():
        _check_key(key, guarded.scope_key)
        _check_values(key, values)
    return allowed


def _is_list(key: object, values: object) -> bool:
    if isinstance(values, (list, tuple, set, frozenset)):
        return True
    raise ConfigError(f"narrowing by {key!r:.60} takes a list of values", why=f"got {values!r:.60}")


def _check_key(key: object, scope_key: str | None) -> None:
    if not isinstance(key, str) or not key.isidentifier() or key == "query":
        raise ConfigError(f"a model cannot narrow by {key!r:.60}", fix="name a metadata key that reads as one word")
    if key == scope_key:
        raise ConfigError(
            f"a model must not choose the scope, and {key!r} is its key",
            fix=f"bind it: retriever.scoped({key}=...), or filters=lambda ctx: {{{key!r}: ctx.user_id}}",
        )


def _check_values(key: str, values: tuple[object, ...]) -> None:
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}) or any(isinstance(value, str) and not value.strip() for value in values):
        raise ConfigError(
            f"the values of {key!r} must be texts that are not blank, or whole numbers, and at least one",
            why=f"got {values!r:.60}",
        )
    if any(isinstance(value, str) and not _is_short_line(value) for value in values):
        raise ConfigError(
            f"a value of {key!r} is not one visible line of at most {_LONGEST_VALUE} characters",
            why="a model reads it in the tool's schema, as words of the program",
            fix="list plain short values",
        )
    if len(values) > _MOST_VALUES:
        raise ConfigError(
            f"{key!r} has {len(values)} values, more than a model can choose from", fix=f"list {_MOST_VALUES} at most"
        )


def _held(key: str, filters: Filters | None, guarded: Guarded) -> tuple[str | int, ...]:
    """The values of a key in the documents that the tool can see, ascending."""
    summaries = None if callable(filters) else getattr(_handle(guarded, filters), "summaries", None)
    if summaries is None or callable(filters):
        why = "the filters differ by call" if callable(filters) else f"{guarded.name} does not tell them"
        raise ConfigError(
            f"the values of {key!r} cannot be read off", why=why, fix=f'list them: narrowing={{"{key}": [...]}}'
        )
    condition = parse(filters)
    found: set[str | int] = set()
    for document in summaries():
        if key in document.metadata and matches(condition, document.metadata):
            found.update(_choices(document.metadata[key]))
    return tuple(sorted(found, key=lambda value: (isinstance(value, str), value)))


def _choices(value: MetadataValue) -> Iterator[str | int]:
    """What a model can be given to choose: short lines that are not blank, and whole numbers."""
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, str):
            if item.strip() and _is_short_line(item):
                yield item
        elif isinstance(item, int) and not isinstance(item, bool):
            yield item


def _is_short_line(text: str) -> bool:
    """Whether it hides nothing and cannot pass for more than a value."""
    return len(text) <= _LONGEST_VALUE and not {"\n", "\t"} & set(text) and visible(text) == (text, 0)


def _handle(guarded: Guarded, filters: Mapping[str, object] | None) -> object:
    """What is guarded, in the scope that the tool searches in; None where it cannot be bound itself.

    Raises:
        ScopeError: there are scopes, and the tool names none.
    """
    inner, key, scope = guarded.retriever, guarded.scope_key, guarded.scope
    if key is not None and scope is None:
        # Unbound it would tell the values of everybody.
        bound, _ = settle(key, None, filters)
        scope = None if bound is None else bound.value
    if scope is None or getattr(inner, "scope", None) == scope:
        return inner
    bind = getattr(inner, "scoped", None)
    return bind(**{str(key): scope}) if callable(bind) else None
