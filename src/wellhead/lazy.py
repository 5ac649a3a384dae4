"""An attribute that is made when it is first asked for, and kept.

Not `functools.cached_property`: in Python 3.11 that holds one lock for all instances of a class while it makes a value,
so threads wait for one another, and a fork meanwhile leaves the lock taken in the child for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["lazy"]

_T = TypeVar("_T")


class lazy(Generic[_T]):  # noqa: N801 (a decorator)
    """Decorates a method without arguments. Two threads that ask at once may both make the value; one is kept."""

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[_T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[_T] | _T:
        if instance is None:
            return self
        kept: dict[str, _T] = instance.__dict__
        return kept.setdefault(self._name, self._make(instance))
