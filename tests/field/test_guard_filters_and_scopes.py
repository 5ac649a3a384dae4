"""Backends that take filters, types and scopes loosely, seen from the guard that checks them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from wellhead import Document, Index, ScopeError
from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.errors import BackendError
from wellhead.index.embedding import EmbeddingRetriever
from wellhead.search.guard import Guarded
from wellhead.testing.fakes import HashEmbedder

FLAGS: dict[str, Any] = {"whole": 1, "truth": True, "decimal": 1.0, "text": "1"}


def everything(query: str, k: int, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A backend that takes equality as Python does, and a filter that admits nothing for none."""
    rows = [{"text": f"red {name}", "id": name, "metadata": {"flag": flag}} for name, flag in FLAGS.items()]
    admitted = [row for row in rows if not filters or row["metadata"]["flag"] == filters.get("flag")]
    return admitted or rows


@pytest.mark.parametrize(
    ("flag", "expected"),
    [(1, {"whole", "decimal"}), (1.0, {"whole", "decimal"}), (True, {"truth"}), ("1", {"text"}), (False, set())],
)
def test_a_backend_that_mixes_up_one_and_true_is_corrected(flag: object, expected: set[str]) -> None:
    """chroma-core/chroma PR#672: in Python True equals 1, so a filter on one matched the other."""
    hits = FunctionRetriever(everything).search("red", filters={"flag": flag})
    assert {hit.id for hit in hits} == expected
    assert hits.outcome == ("hits" if expected else "filtered_out")


@pytest.mark.parametrize("filters", [{"flag": "nobody"}, {"flag": {"$in": []}}, {"$or": []}])
def test_a_backend_that_takes_no_match_for_no_filter_gives_nothing(filters: dict[str, Any]) -> None:
    """infiniflow/ragflow PR#14967: an empty choice was falsy, so everything came back."""
    hits = FunctionRetriever(everything).search("red", filters=filters)
    assert (len(hits), hits.outcome, hits.dropped) == (0, "filtered_out", 4)


def test_an_empty_mapping_and_none_are_the_same_for_every_retriever() -> None:
    """RyanCodrai/turbovec#131: {} and None were taken differently by different methods."""
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add([Document(id="a", text="red")])
    for retriever in (
        Guarded(index),
        FunctionRetriever(everything),
        EmbeddingRetriever(HashEmbedder(), [Document(id="a", text="red")]),
    ):
        one, other = retriever.search("red", filters={}), retriever.search("red", filters=None)
        assert one.hits == other.hits
        assert len(one)


def test_a_backend_that_compares_dates_as_text_is_corrected() -> None:
    """mem0ai/mem0#4591: a range over ISO dates gave nothing, and zones were taken differently."""
    dates = {"late": "2024-01-31T23:30:00-02:00", "first": "2024-02-01", "early": "2024-01-31T23:30:00+00:00"}
    rows = [{"text": f"red {name}", "id": name, "metadata": {"at": at}} for name, at in dates.items()]
    retriever = FunctionRetriever(lambda query, k, filters: rows)
    hits = retriever.search("red", filters={"at": {"$lt": "2024-02-01T00:00:00Z"}})
    assert [hit.id for hit in hits] == ["early"]
    assert [hit.id for hit in retriever.search("red", filters={"at": {"$gte": "2024-02-01"}})] == ["late", "first"]


def test_a_backend_that_finds_by_id_alone_shows_nothing_of_another_scope() -> None:
    """chroma-core/chroma#7462: calls resolved an id without looking at the tenant in the path."""
    rows = {
        name: {"text": f"secret of {tenant}", "id": name, "metadata": {"tenant": tenant}}
        for name, tenant in (("a1", "acme"), ("b1", "globex"))
    }
    retriever = FunctionRetriever(
        lambda query, k, filters: [rows[query]] if query in rows else [], scope_key="tenant"
    ).scoped(tenant="globex")
    foreign, unknown = retriever.search("a1"), retriever.search("no such id")
    assert (len(foreign), foreign.outcome, foreign.near_misses) == (0, unknown.outcome, unknown.near_misses)
    assert (foreign.coverage, foreign.evidence) == (unknown.coverage, unknown.evidence)
    assert "acme" not in str(foreign.to_dict())
    assert [hit.id for hit in retriever.search("b1")] == ["b1"]


def test_four_kinds_of_nothing_are_four_outcomes() -> None:
    """elizaOS/eliza#17138: no match was told as if there were no documents."""
    documents = [Document(id=f"d{n}", text=f"Rule {n} about refunds.", metadata={"n": n}) for n in range(10)]
    filled, empty = Index.open(":memory:"), Index.open(":memory:")
    filled.add(documents)

    def down(query: str, k: int, filters: object) -> list[str]:
        raise ConnectionRefusedError

    outcomes = [
        Guarded(filled).search("quantum chromodynamics of gluons").outcome,
        Guarded(empty).search("refunds").outcome,
        Guarded(filled).search("refunds", filters={"n": 99}).outcome,
    ]
    assert outcomes == ["no_match", "empty_index", "filtered_out"]
    with pytest.raises(BackendError):
        FunctionRetriever(down).search("refunds")
    with pytest.raises(ScopeError):
        Guarded(filled, scope_key="tenant").search("refunds")
