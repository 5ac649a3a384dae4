"""An explanation is the search's own arithmetic: same rank, same score, and a reason for whatever is missing."""

from __future__ import annotations

from typing import Any

import pytest

from wellhead import Document, Index, wiring
from wellhead.backends.embedders.profiles import Profile
from wellhead.search.rank import POOL
from wellhead.search.threshold import Cuts
from wellhead.testing.fakes import HashEmbedder


def open_with(*texts: str, **metadata: Any) -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder())
    index.add(Document(id=f"d{n}", text=text, metadata=metadata, language="en") for n, text in enumerate(texts))
    return index


def of(index: Index, document: str) -> str:
    (passage,) = index.passages(document)
    return passage.id


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
@pytest.mark.parametrize("fusion", ["blend", "rrf", "convex"])
def test_rank_score_and_signals_are_those_of_the_search(mode: str, fusion: str) -> None:
    index = open_with(*(f"red {'green ' * n}" for n in range(8)))
    options: Any = {"mode": mode, "fusion": fusion}
    for hit in index.search("red green", **options):
        told = index.explain("red green", hit.passage, **options)
        assert (told.rank, told.score, told.verdict) == (hit.rank, hit.score, hit.verdict)
        assert told.returned
        assert told.reason == f"returned: rank {hit.rank} of 8"
        assert told.signals.cosine == hit.signals.cosine
        assert told.signals.lexical_rank == hit.signals.lexical_rank


def test_what_the_terms_give_adds_up_to_bm25() -> None:
    index = open_with("red green policies", "blue green policy", "grey")
    told = index.explain("red policy policy unknown", of(index, "d1"))
    assert sum(match.score for match in told.terms) == pytest.approx(told.signals.bm25)
    assert {match.term: match.query_count for match in told.terms if match.field == "word"} == {
        "red": 1,
        "policy": 2,
        "unknown": 1,
    }
    assert {match.term for match in told.terms if match.score == 0.0} == {"red", "unknown"}


@pytest.mark.promise("B16")
def test_words_that_agree_by_their_stem_alone_are_named() -> None:
    index = open_with("policies of the house", "policy of the house")
    assert index.explain("the policy", of(index, "d0")).stem_only == ("policy",)
    assert index.explain("the policy", of(index, "d1")).stem_only == ()


def test_a_passage_that_the_filter_leaves_out_names_the_clause() -> None:
    index = open_with("red", shop="mine")
    told = index.explain("red", of(index, "d0"), filters={"shop": "other"})
    assert not told.returned
    assert (told.rank, told.score) == (None, None)
    assert told.filter == "shop $eq 'other', but it holds 'mine'"
    assert (told.stage, told.reason) == ("filter", f"the filter leaves it out: {told.filter}")


def test_a_passage_in_no_pool_says_so() -> None:
    index = open_with("red", "green")
    told = index.explain("red", of(index, "d1"), mode="lexical")
    assert (told.rank, told.returned) == (None, False)
    assert (told.stage, told.reason) == ("no terms", "it holds no word of the query")
    both = Index.open(":memory:", embedder=HashEmbedder())
    both.add(Document(id=f"d{n:03}", text=f"red {n}", language="en") for n in range(POOL + 5))
    near = both.search("red", mode="dense", k=100, cut="off")
    passages = [passage for n in range(POOL + 5) for passage in both.passages(f"d{n:03}")]
    lost = both.explain_all("red", passages, mode="dense")
    assert sum(one.stage == "dense pool" for one in lost) == 5
    assert all(str(POOL) in one.reason for one in lost if one.stage == "dense pool")
    assert {one.stage for one in lost if one.passage.id in {hit.id for hit in near}} <= {"delivered", "fusion"}
    by_words = both.explain_all("red", passages, mode="lexical")
    assert sum(one.stage == "lexical pool" for one in by_words) == 5


def test_a_passage_beyond_k_says_where_it_stands() -> None:
    index = open_with("red red", "red blue sky", "red blue sky above")
    order = [hit.id for hit in index.search("red", mode="lexical")]
    told = index.explain("red", order[2], mode="lexical", k=2)
    assert (told.stage, told.reason) == ("fusion", "rank 3, and k=2 are returned")
    assert told.rank == 3


def test_a_twin_points_at_the_hit_that_stands_for_it() -> None:
    index = open_with("red door", "red door", "red gate")
    (first, second) = index.search("red door", mode="lexical")
    (twin,) = first.also_in
    told = index.explain("red door", twin.passage_id, mode="lexical")
    assert not told.returned
    assert "also_in" in told.reason
    third = index.explain("red door", second.id, mode="lexical")
    assert third.returned
    assert third.reason == "returned: rank 2 of 2"


def test_a_query_that_was_refused_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red", "green")
    monkeypatch.setattr(
        wiring, "profile", lambda model: Profile(weight=0.5, cuts=Cuts(hybrid={"cosine": (0.999, 0.0)}))
    )
    told = index.explain("blue", of(index, "d0"))
    assert told.reason.startswith("the whole query was answered no_match: best cosine")
    assert told.verdict == "below"
    assert told.threshold is not None


def test_a_hit_below_an_explicit_threshold_says_so_whatever_k() -> None:
    index = open_with("red", "green", "blue")
    for k in (1, 10):
        assert (
            index.explain("red", of(index, "d1"), mode="dense", threshold=0.99, k=k).reason
            == "it is below the cut per hit"
        )


@pytest.mark.parametrize(
    ("cap", "stage", "reason"),
    [
        ({"max_tokens": 3}, "token budget", "it does not fit into what is left of max_tokens=3"),
        ({"per_document": 1}, "per-document cap", "per_document=1, and so many of its document are returned"),
    ],
)
def test_a_passage_that_a_cap_left_out_says_so(cap: dict[str, int], stage: str, reason: str) -> None:
    index = Index.open(":memory:", embedder=HashEmbedder())
    text = "# One\n\nred\n\n# Two\n\nred and many more words than three of them"
    index.add([Document(id="d0", text=text, media_type="text/markdown", language="en")])
    _, longer = index.passages("d0")
    told = index.explain("red", longer.id, mode="lexical", **cap)  # type: ignore[arg-type]
    assert (told.stage, told.reason) == (stage, reason)


def test_a_query_that_the_token_budget_alone_left_empty_was_not_cut() -> None:
    index = open_with("red and many more words than three of them")
    told = index.explain("red", of(index, "d0"), mode="lexical", max_tokens=3, threshold={"coverage": 0.1})
    assert (told.verdict, told.stage) == ("pass", "token budget")
    told = index.explain("red", of(index, "d0"), mode="lexical", max_tokens=3, threshold={"coverage": 1.0})
    assert (told.verdict, told.stage) == ("below", "cut")


def test_a_passage_behind_the_last_hit_is_beyond_k_whatever_the_caps() -> None:
    index = open_with("red red red", "red red blue", "red blue sky", "red blue sky above all of it")
    order = [hit.id for hit in index.search("red", mode="lexical")]
    stages = [index.explain("red", one, mode="lexical", k=2, per_document=1, max_tokens=50).stage for one in order]
    assert stages == ["delivered", "delivered", "fusion", "fusion"]


def test_several_passages_are_explained_as_each_alone() -> None:
    index = open_with(*(f"red {'green ' * n}" for n in range(4)), "grey")
    passages = [passage for n in range(5) for passage in index.passages(f"d{n}")]
    together = index.explain_all("red green", passages, k=2)
    assert together == [index.explain("red green", passage, k=2) for passage in passages]
    assert index.explain_all("red", []) == []


def test_an_explanation_is_plain_data() -> None:
    index = open_with("red")
    plain = index.explain("red", of(index, "d0")).to_dict()
    assert plain["schema"] == 1
    assert plain["returned"] is True
