"""What every retriever must do under the guard, as tests to inherit. Needs no test library; run it with pytest.

Example::

    class TestMyRetriever(RetrieverContract):
        def open_retriever(self, documents):
            return Guarded(MyRetriever(documents))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from wellhead.errors import UsageError
from wellhead.records import Document, Hits
from wellhead.search.guard import Guarded

__all__ = ["DOCUMENTS", "RetrieverContract"]

DOCUMENTS: Sequence[Document] = tuple(
    Document(
        id=f"{tenant}-{topic}",
        text=f"{topic.capitalize()} of {tenant}: ask at the desk on floor {floor}.",
        metadata={"tenant": tenant, "topic": topic, "floor": floor, "open": floor == 1},
    )
    for tenant in ("acme", "globex")
    for floor, topic in enumerate(("refunds", "tickets", "guides"), start=1)
)


class RetrieverContract:
    """Every retriever: scopes are apart, filters hold, k is the most, both ways of calling agree."""

    # Whether a filter reaches the backend; otherwise it is only checked afterwards, and fewer may come back.
    filters_first = True
    query = "refunds"

    def open_retriever(self, documents: Sequence[Document]) -> Guarded:
        """A retriever over these documents, with `scope_key="tenant"`."""
        raise NotImplementedError

    def asked(self, documents: Sequence[Document] = DOCUMENTS) -> Guarded:
        return self.open_retriever(documents).scoped(tenant="acme")

    def test_hits_are_ranked_from_one_and_say_where_they_are_from(self) -> None:
        hits = self.asked().search(self.query)
        assert hits.outcome == "hits"
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert all(hit.id and hit.text.strip() and hit.citation for hit in hits)
        scores = [hit.score for hit in hits if hit.score is not None]
        assert scores == sorted(scores, reverse=True)

    def test_the_same_question_has_the_same_answer(self) -> None:
        retriever = self.asked()
        assert self._ids(retriever.search(self.query)) == self._ids(retriever.search(self.query))

    def test_no_more_than_k_come_back(self) -> None:
        retriever = self.asked()
        assert all(len(retriever.search(self.query, k=k)) <= k for k in (1, 2, 100))
        assert len(retriever.search(self.query, k=1)) == 1

    def test_nothing_of_another_scope_is_seen(self) -> None:
        hits = self.asked().search(self.query, k=100)
        assert {hit.metadata["tenant"] for hit in hits} == {"acme"}
        assert "globex" not in json.dumps(hits.to_dict())

    def test_a_search_without_its_scope_is_refused(self) -> None:
        retriever = self.open_retriever(DOCUMENTS)
        refusal_of_scope = _refused(lambda: retriever.search(self.query))
        assert "scope" in refusal_of_scope.what
        assert "tenant" in _refused(lambda: retriever.search(self.query, filters={"tenant": " "})).what
        assert len(retriever.search(self.query, filters={"tenant": "globex"}))

    def test_filters_hold(self) -> None:
        retriever = self.asked()
        for filters in ({"topic": "refunds"}, {"floor": 1}, {"open": True}):
            hits = retriever.search(self.query, filters=filters)
            assert {hit.metadata["topic"] for hit in hits} <= {"refunds"}
            assert len(hits) or not self.filters_first
        assert not len(retriever.search(self.query, filters={"open": 1}))
        assert retriever.search(self.query, filters={"topic": "nothing"}).outcome in ("filtered_out", "no_match")

    def test_a_scope_that_holds_nothing_tells_nothing_of_others(self) -> None:
        hits = self.open_retriever(DOCUMENTS).scoped(tenant="initech").search(self.query)
        assert not len(hits)
        assert hits.outcome in ("no_match", "empty_index")
        assert "acme" not in json.dumps(hits.to_dict())

    def test_any_text_is_a_query(self) -> None:
        retriever = self.asked()
        for query in ("what's (v3.11)?", '"unclosed', "days:", "-x", "AND", "^", "a\x00b", "\ud800", "食べ物", "'; --"):
            assert retriever.search(query).outcome in ("hits", "no_match")

    def test_a_wrong_question_is_refused(self) -> None:
        retriever = self.asked()
        for wrong in (lambda: retriever.search(" "), lambda: retriever.search("x" * 8001)):
            assert _refused(wrong).what
        wrong_k: Sequence[Any] = (0, 101, True, "3")
        for k in wrong_k:
            assert "k must be" in _refused(partial(retriever.search, self.query, k=k)).what

    def test_both_ways_of_calling_agree(self) -> None:
        retriever = self.asked()
        assert self._ids(asyncio.run(retriever.asearch(self.query))) == self._ids(retriever.search(self.query))

    def test_many_may_ask_at_once(self) -> None:
        retriever = self.open_retriever(DOCUMENTS)
        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(
                    lambda number: retriever.search(self.query, filters={"tenant": ("acme", "globex")[number % 2]}),
                    range(16),
                )
            )
        for number, hits in enumerate(answers):
            assert {hit.metadata["tenant"] for hit in hits} == {("acme", "globex")[number % 2]}

    @staticmethod
    def _ids(hits: Hits) -> list[str]:
        return [hit.id for hit in hits]


def _refused(action: Callable[[], object]) -> UsageError:
    try:
        action()
    except UsageError as error:
        return error
    raise AssertionError("nothing was refused")
