"""Everything that a backend was ever seen to do wrong: none of it crashes a search, leaks a scope or passes unseen."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from wellhead.errors import BackendError, UsageError, WellheadError
from wellhead.events import EventLog
from wellhead.records import Hits
from wellhead.search.guard import Guarded
from wellhead.testing.liars import HUGE, LIES, Lie, LyingRetriever

K = 5
# lie -> the ids that are delivered, and what is dropped by reason; or the error that is raised.
EXPECTED: dict[Lie, tuple[list[str], dict[str, int]] | type[WellheadError]] = {
    "control characters in ids": (["p0", "p1", "p2"], {"id": 1}),
    "endless": (["p0", "p1", "p2", "p3", "p4"], {"beyond_k": 2000 - K + 1}),
    "exits": BackendError,
    "half a surrogate pair": (["p8", "p0", "p1", "p2"], {"id": 1}),
    "hangs": BackendError,
    "huge texts": (["p0", "p1", "p2", "p7"], {}),
    "ignores filters": (["p0", "p1", "p2", "p3", "p4"], {}),
    "mutates its arguments": (["p0", "p1", "p2"], {"repeat": 3}),
    "nan scores": (["p0", "p1", "p2"], {"score": 2}),
    "no document": UsageError,
    "no list": UsageError,
    "none": UsageError,
    "one text": UsageError,
    "other places of other scopes": (["p0", "p1", "p2"], {"also_in": 1}),
    "raises": BackendError,
    "re-enters": (["p0", "p1", "p2"], {"repeat": 3}),
    "repeats": (["p0", "p1", "p2"], {"repeat": 3}),
    "says hits and has none": ([], {}),
    "text scores": (["p0", "p1", "p2"], {"score": 2}),
    "too many": (["p0", "p1", "p2", "p3", "p4"], {"beyond_k": 1000}),
    "wrong ranks": (["p2", "p1", "p0"], {}),
    "wrong scope first": (["p0", "p1", "p2"], {"scope": 9}),
}
WAYS: dict[str, Callable[[Guarded, float], Hits]] = {
    "sync": lambda guarded, timeout: guarded.search("refund", k=K, timeout=timeout),
    "async": lambda guarded, timeout: asyncio.run(guarded.asearch("refund", k=K, timeout=timeout)),
}


@pytest.mark.promise("G5", "G29", "G31", "G32")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lie", LIES)
def test_no_lie_gets_through(lie: Lie, way: str, caplog: pytest.LogCaptureFixture) -> None:
    backend, log = LyingRetriever(lie, seconds=0.5), EventLog()
    guarded = Guarded(backend, scope_key="tenant", scope="acme", sinks=[log])
    backend.again = lambda: guarded.search("again")
    expected, timeout = EXPECTED[lie], 0.2 if lie == "hangs" else 30.0
    caplog.set_level(logging.DEBUG)
    if isinstance(expected, type):
        with pytest.raises(expected) as caught:
            WAYS[way](guarded, timeout)
        assert backend.secret not in str(caught.value)
    else:
        hits = WAYS[way](guarded, timeout)
        ids, dropped = expected
        assert [hit.id for hit in hits] == ids
        assert [hit.rank for hit in hits] == list(range(1, len(ids) + 1))
        assert (hits.outcome == "hits") == bool(ids)
        assert log.events[-1].data["dropped_by"] == dropped
        assert hits.dropped == sum(dropped.values())
        assert any("dropped" in record.message for record in caplog.records) == bool(dropped)
        told = json.dumps(hits.to_dict())
        assert backend.secret not in told
        assert "globex" not in told
    assert len(log.events) == 1 + (lie == "re-enters")
    assert backend.secret not in caplog.text
    assert backend.secret not in repr(log.events)


def test_the_table_holds_every_lie() -> None:
    assert set(EXPECTED) == set(LIES)


def test_a_huge_text_survives_whole() -> None:
    hits = Guarded(LyingRetriever("huge texts")).search("refund")
    assert len(hits[3].text) == HUGE


def test_half_a_surrogate_pair_can_be_written_afterwards() -> None:
    hits = Guarded(LyingRetriever("half a surrogate pair")).search("refund")
    json.dumps(hits.to_dict()).encode()
    assert hits[0].text == "half \ufffd of it"
    hits[0].text.encode()


def test_what_a_backend_does_to_its_arguments_reaches_nobody() -> None:
    backend = LyingRetriever("mutates its arguments")
    guarded = Guarded(backend, scope_key="tenant")
    filters: dict[str, Any] = {"tenant": "acme", "number": {"$in": [0, 1, 2]}}
    for _ in range(2):
        assert len(guarded.search("refund", filters=filters)) == 3
    assert filters == {"tenant": "acme", "number": {"$in": [0, 1, 2]}}
    assert backend.calls[0] == backend.calls[1]
    acme = guarded.scoped(tenant="acme")
    for _ in range(2):
        assert {hit.metadata["tenant"] for hit in acme.search("refund")} == {"acme"}


def test_a_backend_that_ignores_filters_gives_fewer_hits_and_none_of_another_scope() -> None:
    guarded = Guarded(LyingRetriever("ignores filters"), scope_key="tenant", scope="acme")
    assert [hit.id for hit in guarded.search("refund", k=9, filters={"number": {"$gte": 7}})] == ["p7", "p8"]
    globex = Guarded(LyingRetriever("ignores filters"), scope_key="tenant", scope="globex").search("refund")
    assert (len(globex), globex.outcome) == (0, "no_match")
