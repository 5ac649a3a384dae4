"""Filters that let the wrong rows through: types mixed up, empty choices taken for no filter, dates as text."""

from __future__ import annotations

import pytest

from wellhead import Document, Index
from wellhead.testing.fakes import HashEmbedder

FLAGS = {"whole": 1, "truth": True, "decimal": 1.0, "text": "1"}


def open_with(*documents: Document, date_keys: list[str] | None = None) -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"], date_keys=date_keys)
    index.add(documents)
    return index


def found(index: Index, filters: dict[str, object] | None) -> set[str]:
    return {hit.passage.document_id for hit in index.search("red", filters=filters)}


@pytest.mark.parametrize(
    ("flag", "expected"),
    [(1, {"whole", "decimal"}), (1.0, {"whole", "decimal"}), (True, {"truth"}), ("1", {"text"}), (False, set())],
)
def test_a_bool_matches_only_a_bool_and_text_only_text(flag: object, expected: set[str]) -> None:
    """chroma-core/chroma PR#672: in Python True equals 1, so a filter on one matched the other."""
    index = open_with(*(Document(id=name, text=f"red {name}", metadata={"flag": held}) for name, held in FLAGS.items()))
    assert found(index, {"flag": flag}) == expected
    assert found(index, {"flag": {"$in": [flag]}}) == expected


@pytest.mark.parametrize("filters", [{"author": "nobody"}, {"author": {"$in": []}}, {"$or": []}])
def test_a_filter_that_admits_nothing_is_not_an_unfiltered_search(filters: dict[str, object]) -> None:
    """infiniflow/ragflow PR#14967: an empty choice was falsy, so everything came back."""
    index = open_with(*(Document(id=f"d{n}", text=f"red {n}", metadata={"author": "ada"}) for n in range(3)))
    hits = index.search("red", filters=filters)
    assert (len(hits), hits.outcome) == (0, "filtered_out")
    assert "0 of 3" in hits.why_empty


def test_an_empty_mapping_and_none_are_the_same_everywhere() -> None:
    """RyanCodrai/turbovec#131: {} and None were taken differently by different methods."""
    index = open_with(*(Document(id=f"d{n}", text=f"red {n}") for n in range(3)))
    for mode in ("hybrid", "lexical", "dense"):
        one, other = index.search("red", filters={}, mode=mode), index.search("red", filters=None, mode=mode)
        assert one.hits == other.hits
        assert len(one) == 3
        told = [index.explain("red", one[0].passage, filters=filters, mode=mode) for filters in ({}, None)]
        assert told[0] == told[1]


def test_dates_are_compared_as_instants() -> None:
    """mem0ai/mem0#4591: a range over ISO dates gave nothing, and zones were taken differently."""
    dates = {"late": "2024-01-31T23:30:00-02:00", "first": "2024-02-01", "early": "2024-01-31T23:30:00+00:00"}
    index = open_with(*(Document(id=name, text=f"red {name}", metadata={"at": at}) for name, at in dates.items()))
    assert found(index, {"at": {"$lt": "2024-02-01T00:00:00Z"}}) == {"early"}
    assert found(index, {"at": {"$gte": "2024-02-01"}}) == {"late", "first"}
    assert found(index, {"at": {"$gt": "2024-02-01"}}) == {"late"}


@pytest.mark.parametrize("date", ["not a date", "2024-13-01", "01/02/2024", 20240201, True, "", ("2024-01-01", "x")])
def test_a_date_that_is_none_is_refused_by_name_and_the_others_are_taken(date: object) -> None:
    """mem0ai/mem0#4591: invalid dates were kept and never matched any range."""
    index = Index.open(":memory:", embedder=HashEmbedder(), date_keys=["at"])
    good = Document(id="good.md", text="red good", metadata={"at": "2024-02-01"})
    bad = Document(id="bad.md", text="red bad", metadata={"at": date})  # type: ignore[dict-item]
    report = index.add([bad, good])
    assert [refusal.id for refusal in report.refused] == ["bad.md"]
    assert "'at'" in report.refused[0].reason
    assert not report.complete
    assert index.get("bad.md") is None
    assert found(index, {"at": {"$gte": "2024-01-01"}}) == {"good.md"}
