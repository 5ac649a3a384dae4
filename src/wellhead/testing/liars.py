"""A retriever that does every wrong thing a backend was ever seen to do, one at a time."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, get_args

from wellhead.records import Hit, Hits, Passage, Source

__all__ = ["LIES", "Lie", "LyingRetriever", "honest_hit"]

Lie: TypeAlias = Literal[
    "control characters in ids",
    "endless",
    "exits",
    "hangs",
    "half a surrogate pair",
    "huge texts",
    "ignores filters",
    "mutates its arguments",
    "nan scores",
    "no document",
    "no list",
    "none",
    "one text",
    "other places of other scopes",
    "raises",
    "re-enters",
    "repeats",
    "says hits and has none",
    "text scores",
    "too many",
    "wrong ranks",
    "wrong scope first",
]
LIES: tuple[Lie, ...] = get_args(Lie)
HUGE = 10_000_000


def honest_hit(number: int, *, score: float | None = 0.5, tenant: str = "acme", **changes: Any) -> Hit:
    """A hit as a good backend gives it, in the scope `tenant="acme"`."""
    text = f"Passage {number}."
    given: dict[str, Any] = {
        "id": f"p{number}",
        "document_id": f"d{number}",
        "ordinal": 0,
        "text": text,
        "start": 0,
        "end": len(text),
        "metadata": {"tenant": tenant, "number": number},
    }
    return Hit(rank=number + 1, score=score, passage=Passage(**given | changes), verdict="unjudged")


class LyingRetriever:
    """Answers every query with three good hits of the scope `tenant="acme"`, and with one lie.

    `calls` holds what it was given: (query, k, filters).

    Args:
        lie: one of `LIES`.
        secret: stands in what other scopes hold and in what it raises: it must be seen nowhere.
        seconds: how long it hangs.
    """

    def __init__(self, lie: Lie, *, secret: str = "SECRET", seconds: float = 1.0) -> None:  # noqa: S107
        self.lie = lie
        self.secret = secret
        self.seconds = seconds
        self.calls: list[tuple[str, int, Any]] = []
        self.again: Callable[[], object] = lambda: None

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
        self.calls.append((query, k, copy.deepcopy(filters)))
        good = [honest_hit(number, score=0.9 - number / 10) for number in range(3)]
        return self._told(good, k, filters)

    def _told(self, good: list[Hit], k: int, filters: Any) -> Any:
        match self.lie:
            case "raises":
                raise RuntimeError(f"password {self.secret}")
            case "exits":
                raise SystemExit(3)
            case "hangs":
                time.sleep(self.seconds)
            case "re-enters":
                self.lie = "repeats"
                self.again()
            case "mutates its arguments":
                if filters is not None:
                    for inner in filters.values():
                        if isinstance(inner, dict):
                            inner["$in"] = []
                    filters.clear()
                    filters["tenant"] = "globex"
        return self._wrong(good, k)

    def _wrong(self, good: list[Hit], k: int) -> Any:
        foreign = [honest_hit(number, tenant="globex", text=self.secret) for number in range(9)]
        spoiled: Mapping[str, Callable[[], Any]] = {
            "control characters in ids": lambda: [honest_hit(7, id="a\x00\x1b[31m\nb"), *good],
            "endless": lambda: self._endless(),
            "half a surrogate pair": lambda: [
                honest_hit(7, id="p\ud800"),
                honest_hit(8, text="half \udfff of it", id="p8"),
                *good,
            ],
            "huge texts": lambda: [*good, honest_hit(7, text="x" * HUGE)],
            "ignores filters": lambda: [honest_hit(number) for number in range(k)],
            "nan scores": lambda: [honest_hit(7, score=float("nan")), honest_hit(8, score=float("-inf")), *good],
            "no document": lambda: [*good, object()],
            "no list": lambda: 7,
            "none": lambda: None,
            "one text": lambda: "a text is a list of letters",
            "other places of other scopes": lambda: self._elsewhere(good),
            "says hits and has none": lambda: Hits(outcome="hits"),
            "text scores": lambda: [honest_hit(7, score="0.99"), honest_hit(8, score=True), *good],  # type: ignore[arg-type]
            "too many": lambda: [honest_hit(number) for number in range(k + 1000)],
            "wrong ranks": lambda: good[::-1],
            "wrong scope first": lambda: [*foreign, *good],
        }
        make = spoiled.get(self.lie, lambda: [*good, *good])
        return make()

    def _elsewhere(self, good: list[Hit]) -> list[Hit]:
        place = Source(passage_id="p9", document_id=self.secret, metadata={"tenant": "globex"})
        own = Source(passage_id="p8", document_id="d8", metadata={"tenant": "acme"})
        first = good[0]
        return [Hit(rank=1, score=first.score, passage=first.passage, also_in=(place, own)), *good[1:]]

    def _endless(self) -> Iterator[Hit]:
        return (honest_hit(number) for number in itertools.count())
