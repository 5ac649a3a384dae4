"""What a scope may be called, wherever one is bound: by an index, a guard, a document or a filter."""

from __future__ import annotations

from wellhead.errors import ScopeError

__all__ = ["scope_value"]


def scope_value(key: str, value: object, where: str = "") -> str:
    """A scope's value, which is never blank.

    Raises:
        ScopeError: it is blank, or no text (an unset tenant must not mean "all of them").
    """
    if not isinstance(value, str) or not _is_seen(value) or not _is_text(value):
        raise ScopeError(
            f"a scope needs a non-blank {key}",
            where=where,
            why=f"got {value!r:.80}",
            fix=f"pass the {key} of the one who asks or writes",
        )
    # A subclass of it could equal whatever it likes.
    return str.__str__(value)


def _is_seen(value: str) -> bool:
    """Whether any character of it is: a zero-width space, or a NUL, names nobody."""
    return any(character.isprintable() and not character.isspace() for character in value)


def _is_text(value: str) -> bool:
    """Whether it is valid Unicode: half a surrogate pair can be neither stored nor compared."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
