"""What happened, for whoever listens: a sink is any callable that takes an `Event`.

Events carry counts and ids. Queries and texts are added only with `capture_content=True`.

    retrieval.searched   retriever, backend, k, count, ids, dropped, outcome, degraded, latency_ms;
                         of a guard also dropped_by (how many for each reason); with content: query, texts
    retrieval.failed     retriever, error_kind; of a guard also backend, latency_ms; with content: query
    ingest.batch         done, total, passages, embedded
    ingest.finished      verb, read, removed, refused, failed, passages, embedded, seconds

A search tells a sink of one of the first two, once. An index and a guard around it each tell their own sinks: give a
sink to one of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

__all__ = ["Event", "EventLog", "Sink", "emit"]

log = logging.getLogger("wellhead")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened.

    Args:
        name: dotted, as `retrieval.searched`, `retrieval.failed`, `ingest.batch`, `ingest.finished`.
        data: plain values by name.
        at: seconds since the epoch.
    """

    name: str
    data: Mapping[str, object]
    at: float


Sink: TypeAlias = Callable[[Event], None]


class EventLog:
    """A sink that keeps the events it was given, oldest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of_type(self, name: str) -> list[Event]:
        """The events of one name, oldest first."""
        return [event for event in self.events if event.name == name]


def emit(sinks: Sequence[Sink], name: str, **data: object) -> None:
    """Tell every sink. A sink that raises is logged (its error's type only) and never breaks the caller."""
    if not sinks:
        return
    event = Event(name=name, data=data, at=time.time())
    for sink in sinks:
        try:
            sink(event)
        except Exception as error:  # noqa: BLE001 (a listener's fault must not become a searcher's)
            log.warning("an event sink failed with %s on %s", type(error).__name__, name)
