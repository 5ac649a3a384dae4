"""The guard: what it refuses, what it passes on, which outcome it gives, and what it tells."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from wellhead.errors import BackendError, BackendTimeout, ConfigError, ScopeError, UsageError
from wellhead.events import EventLog
from wellhead.index import Index
from wellhead.records import Coverage, Degraded, Document, Hit, Hits, Passage, Signals, Threshold
from wellhead.search.guard import Guarded
from wellhead.testing.fakes import HashEmbedder
from wellhead.testing.liars import honest_hit


class Scripted:
    """Gives what it was told to give, and remembers what it was asked."""

    def __init__(self, told: Any) -> None:
        self.told = told
        self.asked: list[tuple[str, int, Any]] = []

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
        self.asked.append((query, k, filters))
        return self.told() if callable(self.told) else self.told


def filled(**options: Any) -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"], **options)
    index.add(
        [
            Document(id=f"{tenant}{n}", text=f"refund rule {n} of {tenant}", metadata={"tenant": tenant, "n": n})
            for tenant in ("acme", "globex")
            for n in range(3)
        ]
    )
    return index


# --- before the backend --------------------------------------------------------------------------------------------


@pytest.mark.promise("G3", "G31", "G41")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"query": ""}, "blank"),
        ({"query": " \n\t"}, "blank"),
        ({"query": None}, "must be text"),
        ({"query": "x" * 8001}, "8001 characters"),
        ({"k": 0}, "from 1 to 100"),
        ({"k": 101}, "from 1 to 100"),
        ({"k": True}, "from 1 to 100"),
        ({"k": "3"}, "from 1 to 100"),
        ({"filters": "tenant=a"}, "mapping"),
        ({"filters": {"": 1}}, "non-blank"),
        ({"filters": {3: 1}}, "non-blank"),
        ({"filters": {"a": None}}, "nothing can equal"),
        ({"filters": {"a": float("nan")}}, "nothing can equal"),
        ({"filters": {"a": {"$regex": "x"}}}, "unknown filter operator"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": -1.0}, "seconds above 0"),
        ({"timeout": True}, "seconds above 0"),
        ({"timeout": float("nan")}, "seconds above 0"),
        ({"timeout": "3"}, "seconds above 0"),
    ],
)
def test_a_wrong_question_never_reaches_the_backend(asked: dict[str, Any], said: str) -> None:
    backend, log = Scripted([]), EventLog()
    with pytest.raises(UsageError, match=said):
        Guarded(backend, sinks=[log]).search(**{"query": "refund", **asked})
    assert backend.asked == []
    assert [event.data["error_kind"] for event in log.of_type("retrieval.failed")] == ["UsageError"]


def test_the_longest_question_and_every_k_are_passed_on() -> None:
    backend = Scripted([])
    for k in (1, 100):
        Guarded(backend).search("x" * 8000, k=k)
    assert [(len(query), k) for query, k, _ in backend.asked] == [(8000, 1), (8000, 100)]


@pytest.mark.promise("G31")
def test_five_thousand_random_questions_are_answered_or_refused() -> None:
    seed = 20_261
    rng = random.Random(seed)
    alphabets = [
        "abc ",
        "\x00\x1b\n\r ",
        "\ud800\udfff\u202e\u200b",
        "\"'()[]{}:^~*?\\/+-!&|<>=;$%",
        "食べ物🍣é\u0301 ",
        "ANDORNOT ",
    ]
    index = Guarded(filled())
    scripted = Scripted([honest_hit(1)])
    plain = Guarded(scripted)
    for number in range(5000):
        size = rng.choice([0, 1, 3, 20, 200]) if number % 100 else 8001
        query = "".join(rng.choice(rng.choice(alphabets)) for _ in range(size))
        # The index is asked by every tenth, to keep to seconds.
        retriever = plain if number % 10 else index
        try:
            hits = retriever.search(query)
        except UsageError:
            assert not query.strip() or len(query) > 8000, (seed, number, query)
        else:
            assert hits.outcome in ("hits", "no_match"), (seed, number, query)
    assert not any("\x00" in query or "\ud800" in query for query, _, _ in scripted.asked)


@pytest.mark.promise("G10", "G14", "G31")
@pytest.mark.parametrize("filters", [None, {}, {"n": 1}, {"$or": [{"tenant": "acme"}]}, {"tenant": {"$in": ["acme"]}}])
def test_a_scoped_corpus_is_not_searched_without_a_scope(filters: Any) -> None:
    backend = Scripted([honest_hit(1)])
    with pytest.raises(ScopeError, match=r"tenant|scope"):
        Guarded(backend, scope_key="tenant").search("refund", filters=filters)
    assert backend.asked == []


@pytest.mark.promise("G14")
@pytest.mark.parametrize("blank", ["", " ", "\u3000", None, 7, True, ["acme"], {"$eq": ""}, "\ud800"])
def test_a_blank_scope_fails_before_the_backend_runs(blank: Any) -> None:
    backend = Scripted([honest_hit(1)])
    guarded = Guarded(backend, scope_key="tenant")
    with pytest.raises(UsageError):
        guarded.search("refund", filters={"tenant": blank})
    if not isinstance(blank, dict):
        with pytest.raises(ScopeError, match="non-blank tenant"):
            guarded.scoped(tenant=blank)
        if blank is not None:
            with pytest.raises(ScopeError, match="non-blank tenant"):
                Guarded(backend, scope_key="tenant", scope=blank)
    assert backend.asked == []


def test_a_scope_is_bound_once_and_to_one_value() -> None:
    guarded = Guarded(Scripted([]), scope_key="tenant")
    acme = guarded.scoped(tenant="acme")
    assert (guarded.scope, acme.scope, acme.scoped(tenant="acme").scope) == (None, "acme", "acme")
    for wrong in ({"team": "acme"}, {}, {"tenant": "acme", "team": "x"}):
        with pytest.raises(ScopeError):
            guarded.scoped(**wrong)
    with pytest.raises(ScopeError, match="bound to another"):
        acme.scoped(tenant="globex")
    with pytest.raises(ScopeError, match="bound to another"):
        acme.search("refund", filters={"tenant": "globex"})
    with pytest.raises(ConfigError, match="needs its key"):
        Guarded(Scripted([]), scope="acme")


def test_a_backend_without_scopes_is_given_the_scope_as_a_filter() -> None:
    backend = Scripted([])
    guarded = Guarded(backend, scope_key="tenant")
    guarded.scoped(tenant="acme").search("refund", filters={"n": 1})
    guarded.search("refund", filters={"tenant": {"$eq": "acme"}})
    guarded.scoped(tenant="acme").search("refund", filters={"tenant": "acme", "n": 1})
    Guarded(backend).search("refund", filters={})
    assert [filters for _, _, filters in backend.asked] == [
        {"tenant": "acme", "n": 1},
        {"tenant": "acme"},
        {"tenant": "acme", "n": 1},
        None,
    ]


@pytest.mark.promise("G33")
@pytest.mark.parametrize(
    ("retriever", "options", "said"),
    [
        (object(), {}, "no retriever"),
        (Scripted, {}, "is a class"),
        (lambda query: [], {}, "no retriever"),
        (Scripted([]), {"on_degrade": "ignore"}, "known: flag, fail"),
        (Scripted([]), {"timeout": 0}, "seconds above 0"),
        (Scripted([]), {"scope_key": " "}, "name of a metadata key"),
        (Scripted([]), {"sinks": "log"}, "list of functions"),
        (Scripted([]), {"sinks": [3]}, "list of functions"),
    ],
)
def test_wrong_options_are_refused_when_the_guard_is_made(retriever: Any, options: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Guarded(retriever, **options)


def test_a_retriever_that_takes_no_filters_is_refused_when_the_guard_is_made() -> None:
    class Deaf:
        def search(self, query: str) -> list[str]:
            return [query]

    with pytest.raises(ConfigError, match=r"Deaf\.search cannot be called"):
        Guarded(Deaf())  # type: ignore[arg-type]


# --- what comes back -----------------------------------------------------------------------------------------------


@pytest.mark.promise("G1", "G2", "A26")
def test_a_score_may_be_missing_and_the_order_is_the_backends() -> None:
    told = [honest_hit(3, score=None), honest_hit(1, score=None), honest_hit(2, score=None)]
    hits = Guarded(Scripted([msgspec.structs.replace(hit, verdict="pass") for hit in told])).search("refund")
    assert [(hit.rank, hit.id, hit.score, hit.verdict) for hit in hits] == [
        (1, "p3", None, "unjudged"),
        (2, "p1", None, "unjudged"),
        (3, "p2", None, "unjudged"),
    ]
    scored = Guarded(Scripted([honest_hit(1, score=1.0), honest_hit(2, score=1)])).search("refund")
    assert [(hit.score, type(hit.score)) for hit in scored] == [(1.0, float), (1.0, float)]


@pytest.mark.promise("G5", "G28", "G29")
def test_what_fails_the_filters_is_dropped_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    told = [honest_hit(n, metadata={"tenant": "acme", "flag": flag}) for n, flag in enumerate([1, True, 1.0, "1"])]
    log = EventLog()
    with caplog.at_level(logging.WARNING, "wellhead"):
        hits = Guarded(Scripted(told), name="shop", sinks=[log]).search("refund", filters={"flag": True})
    assert [hit.id for hit in hits] == ["p1"]
    assert hits.dropped == 3
    assert len(caplog.records) == 1
    assert "'shop'" in caplog.text
    assert "3 filters" in caplog.text
    (event,) = log.events
    assert (event.data["dropped"], event.data["dropped_by"]) == (3, {"filters": 3})


@pytest.mark.promise("G29")
def test_a_foreign_passage_does_not_hide_one_of_the_same_id() -> None:
    told = [honest_hit(1, tenant="globex"), honest_hit(1), honest_hit(1)]
    hits = Guarded(Scripted(told), scope_key="tenant", scope="acme").search("refund")
    assert [hit.metadata["tenant"] for hit in hits] == ["acme"]
    assert hits.dropped == 2


def test_a_list_that_holds_the_scope_is_not_the_scope() -> None:
    told = [honest_hit(1, metadata={"tenant": ("acme", "globex")})]
    assert not len(Guarded(Scripted(told), scope_key="tenant", scope="acme").search("refund"))


@pytest.mark.promise("G5")
def test_what_was_not_asked_for_is_not_changed() -> None:
    index = filled()
    guarded, bare = Guarded(index).search("refund rule", k=3), index.search("refund rule", k=3)
    plain = [msgspec.structs.replace(hits, timings={}) for hits in (guarded, bare)]
    assert plain[0] == plain[1]
    told = Hits(hits=tuple(msgspec.structs.replace(honest_hit(n), rank=n + 1) for n in range(3)))
    assert Guarded(Scripted(told)).search("refund") == told


def test_what_an_index_says_of_an_empty_answer_is_passed_on() -> None:
    told = Hits(
        outcome="no_match",
        why_empty="best cosine 0.31 < 0.42",
        near_misses=(honest_hit(0), honest_hit(1, tenant="globex")),
        degraded=(Degraded(leg="dense", why="no key", fix="set it"),),
        coverage=Coverage(passages=9, with_vectors=7),
        threshold=Threshold(signal="cosine", value=0.42, origin="profile"),
        evidence={"cosine": 0.31},
        index_version=12,
    )
    assert Guarded(Scripted(told)).search("refund") == told
    scoped = Guarded(Scripted(told), scope_key="tenant", scope="acme").search("refund")
    assert [hit.id for hit in scoped.near_misses] == ["p0"]
    assert (scoped.outcome, scoped.dropped, scoped.threshold) == ("no_match", 1, told.threshold)
    assert [part.leg for part in scoped.degraded] == ["dense"]


def test_a_backend_that_knows_no_scopes_has_no_words_of_its_own_within_one() -> None:
    """It looked at everybody's passages: its counts, its evidence and its sentences may speak of them."""
    told = Hits(
        hits=tuple(OWN),
        degraded=(Degraded(leg="dense", why="no key for globex", fix="ask globex"),),
        coverage=Coverage(passages=9, with_vectors=7),
        evidence={"cosine": 0.9},
    )
    scoped = Guarded(Scripted(told), scope_key="tenant", scope="acme").search("refund")
    assert [hit.id for hit in scoped] == ["p0", "p1", "p2"]
    assert (scoped.coverage, scoped.evidence) == (Coverage(passages=0, with_vectors=0), {})
    assert [part.leg for part in scoped.degraded] == ["dense"]
    assert "globex" not in str(scoped.to_dict())
    assert Guarded(Scripted(told)).search("refund") == told


def outcome(told: Any, filters: Any = None, scope: str | None = "acme") -> tuple[str, str]:
    guarded = Guarded(Scripted(told), scope_key=None if scope is None else "tenant", scope=scope)
    hits = guarded.search("refund", filters=filters)
    assert bool(hits.why_empty) == (not len(hits))
    assert (hits.outcome == "hits") == bool(len(hits))
    return hits.outcome, hits.why_empty


FOREIGN = [honest_hit(n, tenant="globex") for n in range(3)]
OWN = [honest_hit(n) for n in range(3)]


@pytest.mark.promise("G29", "G30")
@pytest.mark.parametrize(
    ("told", "filters", "expected", "said"),
    [
        (OWN, None, "hits", ""),
        ([], None, "no_match", "nothing was found"),
        ([], {"number": 1}, "no_match", "nothing was found"),
        (Hits(), None, "no_match", "nothing was found"),
        (Hits(outcome="no_match", why_empty="too far: 7 of 9"), None, "no_match", "nothing was found"),
        (Hits(outcome="empty_index", why_empty="empty"), None, "empty_index", "nothing was found"),
        (OWN, {"number": 9}, "filtered_out", "none of them passes the filters"),
        ([*FOREIGN, *OWN], {"number": 9}, "filtered_out", "none of them passes the filters"),
        (FOREIGN, None, "no_match", "nothing was found"),
        (FOREIGN, {"number": 1}, "no_match", "nothing was found"),
        (FOREIGN, {"number": 9}, "no_match", "nothing was found"),
        ([honest_hit(1, score=float("nan")), *FOREIGN], None, "no_match", "nothing was found"),
        (Hits(outcome="filtered_out", why_empty="0 of 6 passages"), None, "no_match", "nothing was found"),
        (Hits(outcome="no_match", hits=tuple(OWN)), None, "hits", ""),
        (
            Hits(outcome="no_match", why_empty="7 near", near_misses=tuple(FOREIGN)),
            None,
            "no_match",
            "nothing was found",
        ),
    ],
)
def test_every_answer_has_its_outcome(told: Any, filters: Any, expected: str, said: str) -> None:
    found, why = outcome(told, filters)
    assert found == expected
    assert said in why
    assert "globex" not in why


@pytest.mark.parametrize(
    ("told", "expected", "said"),
    [
        ([], "no_match", "returned nothing"),
        (Hits(), "no_match", "returned nothing"),
        (Hits(outcome="no_match", why_empty="too far"), "no_match", "too far"),
        (Hits(outcome="empty_index", why_empty="no documents"), "empty_index", "no documents"),
        (Hits(outcome="filtered_out", why_empty="0 of 6"), "filtered_out", "0 of 6"),
    ],
)
def test_without_scopes_a_backend_says_itself_why_it_found_nothing(told: Any, expected: str, said: str) -> None:
    found, why = outcome(told, scope=None)
    assert found == expected
    assert said in why


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([honest_hit(1, score=float("nan"))], "the score must be a finite number"),
        ([{"text": "Refunds in 30 days", "score": "0.83"}], "the score must be a finite number"),
        ([{"text": "Refunds", "score": True}, {"text": " "}], "the text must be a text, not blank"),
        ([{"text": "Refunds", "id": ""}], "the id must be a text that is not blank"),
    ],
)
@pytest.mark.parametrize("scope", [None, "acme"])
def test_an_answer_of_which_nothing_can_be_used_is_no_empty_answer(told: Any, said: str, scope: str | None) -> None:
    with pytest.raises(UsageError, match="nothing that the retriever returned can be used") as caught:
        Guarded(Scripted(told), scope_key="tenant" if scope else None, scope=scope).search("refund")
    assert said in str(caught.value.why)
    one_is_fine = [*told, honest_hit(1)]
    assert len(Guarded(Scripted(one_is_fine)).search("refund")) == 1


@pytest.mark.promise("G30")
def test_a_scope_alone_filters_nothing_out_whatever_the_backend_says() -> None:
    class Scopes(Scripted):
        """Keeps scopes by filters inside, and says so."""

        def scoped(self, **_scope: str) -> Scripted:
            return Scripted(Hits(outcome="filtered_out", why_empty="0 of 6 passages"))

    guarded = Guarded(Scopes(OWN), scope_key="tenant", scope="acme")
    hits = guarded.search("refund")
    assert (hits.outcome, hits.why_empty) == ("no_match", "nothing was found")
    assert guarded.search("refund", filters={"number": 9}).outcome == "filtered_out"


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\ufeff\u200d", "\x00"])
def test_a_retriever_that_is_bound_to_nobody_is_refused_before_it_is_asked(blank: str) -> None:
    backend = Scripted(OWN)
    backend.scope_key, backend.scope = "tenant", blank  # type: ignore[attr-defined]
    with pytest.raises(ScopeError, match="non-blank tenant"):
        Guarded(backend).search("refund")
    with pytest.raises(ScopeError, match="non-blank tenant"):
        Guarded(Scripted(OWN), scope_key="tenant").scoped(tenant=blank)
    assert backend.asked == []


def test_what_is_no_number_is_not_handed_on_beside_the_hits() -> None:
    nan = float("nan")
    odd = msgspec.structs.replace(honest_hit(1), signals=Signals(bm25=nan, coverage=float("inf"), cosine=0.5))
    hits = Guarded(Scripted(Hits(hits=(odd,), evidence={"cosine": nan, "held": 0.5}, timings={"rank": nan}))).search(
        "x"
    )
    assert hits[0].signals == Signals(cosine=0.5)
    assert (dict(hits.evidence), dict(hits.timings)) == ({"held": 0.5}, {})
    json.dumps(hits.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "told",
    [
        {"dropped": -7},
        {"threshold": Threshold(signal="cosine", value=float("nan"), origin="user")},
        {"coverage": Coverage(passages=-1, with_vectors=0)},
    ],
)
def test_counts_and_cuts_that_make_no_sense_are_an_error(told: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Guarded(Scripted(Hits(hits=tuple(OWN), **told))).search("refund")


@pytest.mark.promise("G29")
def test_a_scope_without_hits_looks_like_a_scope_without_documents() -> None:
    empty = Guarded(Scripted([]), scope_key="tenant", scope="acme").search("refund")
    others = Hits(hits=tuple(FOREIGN), coverage=Coverage(passages=6, with_vectors=6), evidence={"cosine": 0.9})
    foreign = Guarded(Scripted(others), scope_key="tenant", scope="acme").search("refund")
    assert (foreign.outcome, foreign.why_empty, len(foreign.near_misses)) == (empty.outcome, empty.why_empty, 0)
    assert (foreign.coverage, foreign.evidence, foreign.threshold) == (empty.coverage, empty.evidence, empty.threshold)


def test_an_index_is_bound_by_its_own_means_so_that_its_statistics_are_the_scopes() -> None:
    guarded = Guarded(filled())
    acme = guarded.scoped(tenant="acme").search("refund rule", k=10)
    assert {hit.metadata["tenant"] for hit in acme} == {"acme"}
    assert acme.coverage.passages == 3
    assert guarded.scoped(tenant="initech").search("refund rule").outcome == "empty_index"
    assert guarded.scoped(tenant="acme").search("refund rule", filters={"n": 9}).outcome == "filtered_out"
    scoped = Guarded(filled(scope_key="tenant"), scope_key="tenant")
    with pytest.raises(ScopeError):
        scoped.search("refund rule")
    assert len(scoped.search("refund rule", filters={"tenant": "globex"})) == 3


def test_a_degraded_answer_is_flagged_or_fails() -> None:
    told = Hits(hits=tuple(OWN), degraded=(Degraded(leg="dense", why="no key", fix="set OPENAI_API_KEY"),))
    assert Guarded(Scripted(told)).search("refund").degraded == told.degraded
    log = EventLog()
    with pytest.raises(BackendError) as caught:
        Guarded(Scripted(told), on_degrade="fail", sinks=[log]).search("refund")
    assert (caught.value.why, caught.value.fix) == ("no key", "set OPENAI_API_KEY")
    assert [event.name for event in log.events] == ["retrieval.failed"]


# --- what it tells -------------------------------------------------------------------------------------------------


@pytest.mark.promise("G6", "G38")
def test_a_search_is_one_event_without_content() -> None:
    log = EventLog()
    Guarded(Scripted(OWN), name="shop", sinks=[log]).search("my secret question", k=2)
    (event,) = log.events
    assert event.name == "retrieval.searched"
    assert set(event.data) == {
        "retriever",
        "backend",
        "k",
        "count",
        "ids",
        "dropped",
        "dropped_by",
        "outcome",
        "degraded",
        "latency_ms",
    }
    assert {key: event.data[key] for key in ("retriever", "backend", "k", "count", "ids", "dropped", "outcome")} == {
        "retriever": "shop",
        "backend": "Scripted",
        "k": 2,
        "count": 2,
        "ids": ["p0", "p1"],
        "dropped": 1,
        "outcome": "hits",
    }
    assert "secret" not in repr(event)
    assert "Passage" not in repr(event)


@pytest.mark.promise("G6")
def test_content_is_told_only_where_it_was_asked_for() -> None:
    log = EventLog()
    Guarded(Scripted(OWN), sinks=[log], capture_content=True).search("my question")
    assert log.events[0].data["query"] == "my question"
    assert log.events[0].data["texts"] == ["Passage 0.", "Passage 1.", "Passage 2."]


@pytest.mark.promise("G32")
def test_a_failure_is_one_event_and_one_line_with_nothing_but_its_type(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("password hunter2")

    log = EventLog()
    with caplog.at_level(logging.DEBUG), pytest.raises(BackendError) as caught:
        Guarded(Scripted(fail), name="shop", sinks=[log]).search("my secret question")
    assert isinstance(caught.value.__cause__, RuntimeError)
    (event,) = log.events
    assert (event.name, event.data["error_kind"]) == ("retrieval.failed", "BackendError")
    assert [record.getMessage() for record in caplog.records] == ["the retriever 'shop' failed with RuntimeError"]
    for told in (str(caught.value), repr(caught.value.to_dict()), repr(event), caplog.text):
        assert "hunter2" not in told
        assert "secret" not in told


def test_a_sink_that_fails_breaks_no_search() -> None:
    def broken(event: object) -> None:
        raise ValueError

    assert len(Guarded(Scripted(OWN), sinks=[broken]).search("refund")) == 3


def test_guarding_a_guard_adds_nothing_twice(caplog: pytest.LogCaptureFixture) -> None:
    log, other = EventLog(), EventLog()
    backend = Scripted([*OWN, *FOREIGN])
    inner = Guarded(backend, name="inner", scope_key="tenant", sinks=[log], timeout=0.5)
    outer = Guarded(inner, scope="acme", sinks=[log, other], on_degrade="fail", timeout=9.0, capture_content=True)
    hits = outer.search("refund")
    assert (hits.dropped, len(backend.asked), len(log.events), len(other.events)) == (3, 1, 1, 1)
    assert len(caplog.records) == 1
    assert outer.retriever is backend
    assert (outer.name, outer.scope_key, outer.scope) == ("inner", "tenant", "acme")
    # No listener is told more than both guards allow.
    assert "query" not in log.events[0].data
    assert inner.scope is None
    backend.told = lambda: time.sleep(1)
    with pytest.raises(BackendTimeout, match=r"0\.5 s"):
        outer.search("refund")
    with pytest.raises(ConfigError, match="scoped by 'tenant'"):
        Guarded(inner, scope_key="team")
    with pytest.raises(ScopeError):
        Guarded(outer, scope="globex")


def test_what_a_retriever_says_of_itself_is_believed() -> None:
    class Bound(Scripted):
        name = "mine"
        scope_key = "tenant"
        scope = "acme"

    backend = Bound([*OWN, *FOREIGN])
    guarded = Guarded(backend)
    assert (guarded.name, guarded.scope_key, guarded.scope) == ("mine", "tenant", "acme")
    assert guarded.search("refund").dropped == 3
    assert backend.asked[0][2] is None
    with pytest.raises(ScopeError):
        guarded.scoped(tenant="globex")
    with pytest.raises(ConfigError, match="scoped by 'tenant'"):
        Guarded(backend, scope_key="team")


def test_hits_are_read_out_of_everything_that_is_a_document() -> None:
    passage = Passage(id="p", document_id="d", ordinal=0, text="one", start=0, end=3)
    told: Sequence[Any] = [passage, Document(id="doc", text="two", uri="https://x"), "three", {"text": "four", "id": 4}]
    hits = Guarded(Scripted(iter(told))).search("refund")
    assert [hit.text for hit in hits] == ["one", "two", "three", "four"]
    assert [hits[place].id for place in (0, 1, 3)] == ["p", "doc", "4"]
    assert hits[1].citation == "https://x"
    assert isinstance(hits[0], Hit)
