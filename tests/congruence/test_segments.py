"""Segments change no result: however rows lie in files and in memory, a store shows and answers what brute force does.

Brute force is the store in memory, which keeps no segments, quantises nothing and masks nothing. Up to 450 rows both
measure every row exactly, so nothing at all may differ; `test_segments_large.py` goes beyond.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import (
    EMBEDDER,
    IDS,
    LAYOUTS,
    LINES,
    METADATA,
    SCOPES,
    TERMS,
    WORDS,
    History,
    assert_only_listed_files,
    assert_same_hits,
    assert_same_lookups,
    by_hand,
    cuts,
    few_rows,
    filters,
    folder,
    fusions,
    histories,
    lay_out,
    modes,
    next_job,
    queries,
    request_of,
    requests,
    sizes,
    state_of,
    weights,
)
from wellhead import Document, Index
from wellhead.backends.stores.embedded import keeper, part
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import WellheadError
from wellhead.records import Hits
from wellhead.search import hybrid
from wellhead.search.rank import Request
from wellhead.testing.contracts import assert_same_view
from wellhead.testing.fakes import vectors_of

Steps = list[tuple[Any, ...]]
asked = st.lists(requests, min_size=3, max_size=3)
at_length = pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)], ids=["short", "long"])


def check_many(examples: int, body: Callable[..., None], *drawn: st.SearchStrategy[Any]) -> None:
    """`body` holds for so many draws."""
    settings(max_examples=examples)(given(*drawn)(body))()


def live_and_compare(steps: Steps, asked: list[Request]) -> None:
    """Compare after each step: the handle that wrote, another one, and one that only reads, in turn."""
    with folder() as place:
        history = History(place)
        for number, step in enumerate(steps):
            history.live_through(step)
            scope = step[1] if step[0] in ("put", "delete", "hold") else SCOPES[number % 2]
            request = asked[number % 3]
            history.check(history.handles[number % 3], scope, [request], TERMS[number % 9 :: 9])
            history.check_held(request)
        for number, scope in enumerate(SCOPES):
            handle = history.handles[(len(steps) + number) % 3]
            if scope == "":
                history.check(handle, scope, asked)
            else:
                history.check(handle, scope, asked[:1], TERMS[::5])
        assert_same_lookups(history.store.view(""), history.memory.view(""))
        history.close()


EVERYTHING = histories(
    "put put put delete delete flush flush flush merge keep write_during overtake compact reopen hold empty"
)
DEATHS = histories("put delete delete empty flush merge keep compact", first="put put flush put delete")
RACES = histories(
    "write_during write_during compact_during compact_beside overtake put flush", first="put flush put flush"
)
KEPT = histories("hold put delete flush merge keep compact write_during", first="put put hold flush hold put")


@at_length
def test_every_layout_answers_as_brute_force_does(times: int) -> None:
    check_many(500 * times, live_and_compare, EVERYTHING, asked)


@at_length
def test_no_dead_row_shows_in_any_result(times: int) -> None:
    check_many(300 * times, live_and_compare, DEATHS, asked)


@at_length
def test_writes_while_a_segment_is_made_are_seen(times: int) -> None:
    check_many(250 * times, live_and_compare, RACES, asked)


@at_length
def test_a_view_that_is_kept_shows_what_it_did(times: int) -> None:
    check_many(150 * times, live_and_compare, KEPT, asked)


@pytest.mark.promise("D30")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_and_verdicts_are_those_of_brute_force(layout: str) -> None:
    """The same, for a fixed index and many questions, so that none is left to chance."""
    dice = random.Random(30)
    batch = [(f"d{n}", dice.choices(LINES, k=3), METADATA[n % len(METADATA)], "en", "") for n in range(30)]
    with folder() as place:
        history = History(place)
        for rows in (batch[:20], batch[20:]):
            history.put("", rows)
            history.delete("", [rows[1][0], rows[4][0]])
            lay_out(history.store, layout)
        history.delete("", ["d2", "d22"])
        asked = [
            request_of(query, legs, fusion, 0.5, 10, wanted, cut, None, (None, None))
            for query in (*LINES[:4], *WORDS[::3])
            for legs, fusion in (("hybrid", "blend"), ("hybrid", "rrf"), ("lexical", "blend"), ("dense", "convex"))
            for wanted in (None, {"tenant": "acme"})
            for cut in ("query", "hit")
        ]
        answered = [hybrid.search(history.memory.view(""), request) for request in asked]
        assert {"hits", "no_match"} <= {hits.outcome for hits in answered}
        assert {"pass", "below"} <= {hit.verdict for hits in answered for hit in (*hits, *hits.near_misses)}
        for handle in history.handles:
            history.check(handle, "", asked)
        history.close()


def live_among_words_of_equal_hash(steps: Steps, asked: list[Request]) -> None:
    real = part.word_hash
    part.word_hash = lambda word: len(word) % 2
    try:
        live_and_compare(steps, asked)
    finally:
        part.word_hash = real


@at_length
def test_words_of_equal_hash_are_told_apart(times: int) -> None:
    check_many(100 * times, live_among_words_of_equal_hash, EVERYTHING, asked)


# --- what was before leaves no trace ---------------------------------------------------------------------------------


def live_and_begin_anew(steps: Steps, asked: list[Request], flushed: bool) -> None:
    """What is left, put into a new store at once, in files or in memory, is the same index."""
    with folder() as place, folder() as other:
        history, fresh = History(place), by_hand(EmbeddedStore(other))
        for step in steps:
            history.live_through(step)
        rows = list(history.live.values())
        fresh.put(rows, vectors_of(rows, EMBEDDER))
        upto = state_of(fresh)[1]
        if flushed and upto:
            carry_out(fresh._database, Job((), 1, upto))
        for scope in SCOPES:
            lived, new = history.store.view(scope), fresh.view(scope)
            assert_same_view(lived, new, TERMS)
            for request in asked:
                hits = hybrid.search(lived, request)
                assert_same_hits(hits, hybrid.search(new, request), same_index=False)
        assert history.store.counts()[0] == fresh.counts()[0]
        assert history.store.verify() == fresh.verify() == history.memory.verify()
        history.close()
        fresh.close()


@at_length
def test_a_fresh_index_of_what_is_left_is_the_same(times: int) -> None:
    check_many(150 * times, live_and_begin_anew, EVERYTHING, asked, st.booleans())


# --- with the thread -------------------------------------------------------------------------------------------------


def live_beside_the_thread(steps: Steps, asked: list[Request], flush_rows: int) -> None:
    """Segments are made and merged whenever the thread gets to it; at the end it has come to rest."""
    with folder() as place, few_rows(flush_rows):
        history = History(place)
        history.store.close()
        history.store = EmbeddedStore(place)
        for number, step in enumerate(steps):
            getattr(history, step[0])(*step[1:])
            history.check(history.handles[number % 3], SCOPES[number % 2], asked[:1], TERMS[number % 9 :: 9])
            history.check_held(asked[1])
        history.store.settle()
        assert next_job(history.store, keeper._BUSY_RATIO) is None
        assert_only_listed_files(history.store)
        for number, scope in enumerate(SCOPES):
            history.check(history.handles[number], scope, asked)
        history.close()


@at_length
def test_the_thread_changes_nothing_whenever_it_gets_to_work(times: int) -> None:
    drawn = histories("put put put delete hold", first="put put")
    check_many(200 * times, live_beside_the_thread, drawn, asked, st.integers(1, 8))


# --- the front door --------------------------------------------------------------------------------------------------

options = st.fixed_dictionaries(
    {"mode": modes, "fusion": fusions, "weight": weights, "k": sizes, "filters": filters, "cut": cuts},
    optional={
        "per_document": st.integers(1, 2),
        "max_tokens": st.sampled_from([3, 12, 60]),
        "threshold": st.sampled_from([0.2, 0.5]),
        "language": st.sampled_from(["en", "de"]),
    },
)
lots = st.lists(
    st.tuples(
        st.sampled_from(IDS),
        st.lists(st.sampled_from(LINES), min_size=1, max_size=4).map("\n\n".join),
        st.sampled_from(METADATA),
    ),
    min_size=3,
    max_size=8,
    unique_by=lambda drawn: drawn[0],
)
doors = st.sampled_from(["whole", "bound", "scoped"])
visits = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove", "empty", "flush", "flush", "merge", "none"]),
        lots,
        st.sampled_from(["acme", "globex"]),
        queries,
        options,
    ),
    min_size=4,
    max_size=6,
)


class Doors:
    """An index in a folder, another handle of it, and one in memory; all of them bound alike."""

    def __init__(self, place: Any, door: str) -> None:
        self.door = door
        key = "tenant" if door == "scoped" else None
        fixed: Any = {"embedder": EMBEDDER, "languages": ["en", "de"], "scope_key": key}
        self.written = Index.open(place, **fixed)
        by_hand(self.written._house.store)
        self.whole = (self.written, Index.open(place, embedder=EMBEDDER), Index.open(":memory:", **fixed))

    @property
    def store(self) -> EmbeddedStore:
        return self.written._house.store

    def bound(self, tenant: str) -> tuple[Index, ...]:
        return self.whole if self.door == "whole" else tuple(index.scoped(tenant=tenant) for index in self.whole)

    def change(self, verb: str, documents: list[Document], tenant: str) -> None:
        if verb in ("add", "remove", "empty"):
            for index in (self.bound(tenant)[0], self.bound(tenant)[2]):
                if verb == "add":
                    index.add(documents)
                else:
                    there = [document.id for document in index.documents()]
                    index.remove(there[:2] if verb == "remove" else there)
        elif verb != "none":
            segments, upto = state_of(self.store)
            covered = segments[-1].last if segments else 0
            if verb == "merge" and segments:
                carry_out(self.store._database, Job(tuple(segments), segments[0].first, covered))
            elif upto > covered:
                carry_out(self.store._database, Job((), covered + 1, upto))

    def close(self) -> None:
        for index in self.whole:
            index.close()


def answered(index: Index, query: str, options: dict[str, Any]) -> Hits | tuple[Any, ...]:
    """What a search gives, or what it raises."""
    try:
        return index.search(query, **options)
    except WellheadError as error:
        return type(error), error.what, error.why


def visit_and_compare(drawn: list[tuple[Any, ...]], door: str) -> None:
    with folder() as place:
        doors = Doors(place, door)
        for number, (verb, lot, tenant, query, options) in enumerate(drawn):
            own = f"{tenant}/" if door == "bound" else ""  # one id there is one document, whoever wrote it
            documents = [Document(id=own + name, text=text, metadata=_own(meta, door)) for name, text, meta in lot]
            doors.change("add" if number == 0 else verb, documents, tenant)
            *stored, memory = doors.bound(tenant)
            index = stored[number % 2]
            mine, other = (answered(one, query, options) for one in (index, memory))
            if isinstance(mine, tuple):
                assert mine == other
                continue
            assert_same_hits(mine, other)
            for hit in (*mine, *mine.near_misses)[:1]:
                one, two = (each.explain(query, hit.id, **options) for each in (index, memory))
                assert_same_explanation(one, two)
            for document in documents[:2]:
                assert index.passages(document.id) == memory.passages(document.id)
            assert told(index) == told(memory)
        doors.close()


def _own(metadata: Mapping[str, Any], door: str) -> dict[str, Any]:
    """In an index with scopes the handle says whose a document is."""
    return {key: value for key, value in metadata.items() if door == "whole" or key != "tenant"}


def told(index: Index) -> tuple[Any, ...]:
    held = index.stats()
    return held.documents, held.passages, held.with_vectors, held.languages, held.vectors, held.areas


def assert_same_explanation(one: Any, two: Any) -> None:
    first, second = one.to_dict(), two.to_dict()
    scores = [
        (term.pop("score"), other.pop("score")) for term, other in zip(first["terms"], second["terms"], strict=True)
    ]
    scores.append((first.pop("score"), second.pop("score")))
    signals = first.pop("signals"), second.pop("signals")
    scores += [(signals[0][name], signals[1][name]) for name in signals[0]]
    assert first == second
    assert all(left == right or math.isclose(left, right, abs_tol=1e-9) for left, right in scores)


@at_length
def test_an_index_in_a_folder_answers_as_one_in_memory(times: int) -> None:
    check_many(250 * times, visit_and_compare, visits, doors)
