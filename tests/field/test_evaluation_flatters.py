"""Evaluations that look better than the search they measure."""

from __future__ import annotations

import math

import pytest

from runs_by_hand import saved_run
from wellhead.bench.compare import compare
from wellhead.bench.measures import measure_run


def test_a_query_that_returned_nothing_counts_zero() -> None:
    """AmenRa/ranx#27, joaopalotti/trectools#24: queries without results left the mean, or crashed it."""
    scores = measure_run({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a"]}, ["nDCG@10", "R@10", "RR@10"])
    assert scores.values == {"nDCG@10": 0.5, "R@10": 0.5, "RR@10": 0.5}
    assert scores.returned_nothing == ("q2",)


def test_the_ideal_order_holds_all_that_is_relevant() -> None:
    """run-llama/llama_index#17070: the ideal gain was taken from what was retrieved."""
    scores = measure_run({"q": {"a": 1, "b": 1, "c": 1}}, {"q": ["a"]}, ["nDCG@10"])
    assert scores.values["nDCG@10"] == pytest.approx(1 / (1 + 1 / math.log2(3) + 1 / 2))
    assert scores.values["nDCG@10"] == pytest.approx(0.469, abs=5e-4)


def test_recall_is_a_share_and_not_a_hit_rate() -> None:
    """supermemoryai/memorybench#67: one of twenty found was shown as a recall of 100 %."""
    relevant = {f"d{number}": 1 for number in range(20)}
    scores = measure_run({"q": relevant}, {"q": ["d0", "x"]}, ["R@10", "Success@10"])
    assert scores.values == {"R@10": 1 / 20, "Success@10": 1.0}


def test_a_query_that_returned_nothing_stays_in_a_comparison() -> None:
    """AmenRa/ranx#27: two runs could only be compared over the queries that both had answered."""
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    found = compare(saved_run({"q1": ["a"], "q2": ["b"]}, qrels), saved_run({"q1": ["a"], "q2": []}, qrels))
    assert (found.queries, found.main.a, found.main.b) == (2, 1.0, 0.5)
    assert (found.main.losses, found.main.ties) == (1, 1)
    assert found.b.warnings == ("1 of 2 queries returned nothing, counted 0",)
