"""Filters, dates, repeats and scores once more, as a model comes to read them: through the tool."""

from __future__ import annotations

from typing import Any

import pytest

from wellhead import Document, Executor, FunctionRetriever, Index, Registry, ScopeError, ToolCall, search_tool
from wellhead.testing.fakes import HashEmbedder

FLAGS: dict[str, Any] = {"whole": 1, "truth": True, "decimal": 1.0, "text": "1"}


def open_with(*documents: Document, **options: Any) -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"], **options)
    index.add(documents)
    return index


def flags() -> Index:
    return open_with(*(Document(id=name, text=f"red {name}", metadata={"flag": held}) for name, held in FLAGS.items()))


def asked(retriever: Any, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    executor = Executor(Registry(search_tool(retriever, **options)))
    return executor.run(ToolCall(name="search_docs", arguments={"query": "red", **(arguments or {})}))


def shown(result: Any) -> set[str]:
    return {str(one["source"]) for one in result.data["documents"]}


@pytest.mark.parametrize("by_call", [False, True])
@pytest.mark.parametrize(
    ("flag", "expected"),
    [(1, {"whole", "decimal"}), (1.0, {"whole", "decimal"}), (True, {"truth"}), ("1", {"text"}), (False, set())],
)
def test_a_host_that_filters_on_true_shows_only_true(flag: object, expected: set[str], by_call: bool) -> None:
    """chroma-core/chroma PR#672: in Python True equals 1, so a filter on one matched the other."""
    filters: Any = (lambda ctx: {"flag": flag}) if by_call else {"flag": flag}
    result = asked(flags(), filters=filters)
    assert shown(result) == expected
    assert result.outcome == ("hits" if expected else "filtered_out")


def test_a_model_that_narrows_by_one_does_not_get_true() -> None:
    """chroma-core/chroma PR#672: the same for what a model may choose; true and "1" are none of its choices."""
    assert shown(asked(flags(), {"flag": 1}, narrowing={"flag": [1, 2]})) == {"whole", "decimal"}
    for wrong in (True, "1"):
        assert asked(flags(), {"flag": wrong}, narrowing={"flag": [1, 2]}).outcome == "bad_arguments"


def of_ada() -> Index:
    return open_with(*(Document(id=f"d{n}", text=f"red {n}", metadata={"author": "ada"}) for n in range(3)))


@pytest.mark.parametrize("filters", [{"author": "nobody"}, {"author": {"$in": ["nobody"]}}, {"$or": [{"author": 1}]}])
@pytest.mark.parametrize("by_call", [False, True])
def test_a_filter_that_admits_nothing_shows_nothing(filters: dict[str, Any], by_call: bool) -> None:
    """infiniflow/ragflow PR#14967: an empty choice was falsy, so everything came back."""
    index = of_ada()
    given: Any = (lambda ctx: filters) if by_call else filters
    result = asked(index, filters=given)
    assert (result.outcome, shown(result)) == ("filtered_out", set())
    assert "NOTHING TO LOOK AT" in result.text


@pytest.mark.parametrize("filters", [{"author": {"$in": []}}, {"$or": []}, {"$and": []}, {"$or": [{}]}])
def test_an_empty_choice_of_a_host_is_one_that_was_not_made(filters: dict[str, Any]) -> None:
    """infiniflow/ragflow PR#14967: the same where the host program hands it to a tool; there it is an error."""
    result = asked(of_ada(), filters=lambda ctx: filters)
    assert (result.outcome, result.hits, "red" in result.text) == ("no_scope", None, False)
    with pytest.raises(ScopeError):
        search_tool(of_ada(), filters=filters)


def test_an_empty_mapping_and_none_are_the_same_for_a_tool_but_not_from_a_function() -> None:
    """RyanCodrai/turbovec#131: {} and None were taken differently by different methods.

    A function that gives nothing for a user has forgotten somebody: for both that is an error, not a search of all.
    """
    index = flags()
    assert asked(index, filters={}).data == asked(index, filters=None).data
    assert len(shown(asked(index, filters={}))) == 4
    for nothing in ({}, None):
        assert asked(index, filters=lambda ctx, nothing=nothing: nothing).outcome == "no_scope"


def test_dates_are_compared_as_instants_behind_the_tool() -> None:
    """mem0ai/mem0#4591: a range over ISO dates gave nothing, and zones were taken differently."""
    dates = {"late": "2024-01-31T23:30:00-02:00", "first": "2024-02-01", "early": "2024-01-31T23:30:00+00:00"}
    documents = [Document(id=name, text=f"red {name}", metadata={"at": at}) for name, at in dates.items()]
    rows = [{"id": one.id, "text": one.text, "source": one.id, "metadata": one.metadata} for one in documents]
    for retriever in (open_with(*documents, date_keys=["at"]), FunctionRetriever(lambda query, k, filters: rows)):
        assert shown(asked(retriever, filters={"at": {"$lt": "2024-02-01T00:00:00Z"}})) == {"early"}
        assert shown(asked(retriever, filters={"at": {"$gte": "2024-02-01"}})) == {"late", "first"}


def test_one_passage_of_three_legs_is_shown_once() -> None:
    """Aharshi3614/Devwhisper#266: each leg named a passage its own way, so nothing ever came together."""
    legs = [{"text": "red door", "source": "a.md", "score": score} for score in (0.9, 0.5, 0.4)]
    result = asked(FunctionRetriever(lambda query, k, filters: legs))
    assert [one["score"] for one in result.data["documents"]] == [0.9]
    assert result.text.count("red door") == 1


def test_the_scores_that_a_model_sees_fall_down_the_list() -> None:
    """run-llama/llama_index#7007, langchain-ai/langchain#18709: the best had the lowest score, or one out of range."""
    index = open_with(*(Document(id=f"d{n}", text=f"red {'door ' * n}") for n in range(5)))
    scores = [one["score"] for one in asked(index).data["documents"]]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert all(-1.0 <= score <= 1.0 for score in scores)
