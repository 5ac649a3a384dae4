"""The measures over a delivered order, and what a run must not get away with."""

from __future__ import annotations

import math

import pytest

from wellhead.bench.measures import Measure, measure_run, parse_measure
from wellhead.errors import UsageError


def value(name: str, ranking: list[str], grades: dict[str, int]) -> float:
    return parse_measure(name).of(ranking, grades)


def test_a_name_and_its_measure_are_two_forms_of_one() -> None:
    assert parse_measure("nDCG@10") == Measure(kind="nDCG", k=10)
    assert str(parse_measure("Success@3")) == "Success@3"


@pytest.mark.parametrize("name", ["nDCG", "nDCG@0", "nDCG@-1", "nDCG@ten", "ndcg@10", "MRR@10", "", "@10", "R@1@2"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="nDCG@k") as caught:
        parse_measure(name)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("R@1", 0.0),
        ("R@3", 2 / 3),
        ("P@3", 2 / 3),
        ("P@10", 2 / 10),
        ("RR@10", 1 / 2),
        ("RR@1", 0.0),
        ("AP@10", (1 / 2 + 2 / 3) / 3),
        ("Success@1", 0.0),
        ("Success@2", 1.0),
        ("Judged@10", 3 / 4),
        ("Judged@1", 1.0),
        ("nothing_relevant@1", 1.0),
        ("nothing_relevant@2", 0.0),
        ("nDCG@3", (1 / math.log2(3) + 2 / 2) / (2 + 1 / math.log2(3) + 1 / 2)),
        ("nDCGexp@3", (1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3) + 1 / 2)),
    ],
)
def test_each_measure_on_one_ranking(name: str, expected: float) -> None:
    grades = {"one": 1, "two": 2, "three": 1, "judged": 0}
    assert value(name, ["judged", "one", "two", "foreign"], grades) == pytest.approx(expected, abs=1e-12)


def test_a_document_delivered_twice_counts_at_its_first_place() -> None:
    for name in ("nDCG@10", "R@10", "AP@10", "RR@10"):
        assert value(name, ["a", "a", "a"], {"a": 1}) == 1.0
    assert value("RR@2", ["x", "x", "a"], {"a": 1}) == 1 / 2


def test_a_negative_grade_gains_nothing_and_costs_nothing() -> None:
    assert value("nDCG@2", ["spam", "a"], {"spam": -2, "a": 1}) == pytest.approx(1 / math.log2(3))


def test_with_exponential_gain_one_best_document_outweighs_two_good_ones() -> None:
    grades = {"best": 3, "good": 2, "other": 2}
    for name, prefers_the_best in (("nDCG@2", False), ("nDCGexp@2", True)):
        one, two = value(name, ["best", "x"], grades), value(name, ["good", "other"], grades)
        assert (one > two) == prefers_the_best, name


def test_exponential_gain_takes_any_grade() -> None:
    assert value("nDCGexp@2", ["a", "b"], {"a": 5000, "b": 4999}) == 1.0
    assert value("nDCGexp@2", ["b"], {"a": 5000, "b": 4999}) == pytest.approx(0.5 / (1 + 0.5 / math.log2(3)))
    assert value("nDCGexp@2", ["spam"], {"spam": -2, "a": 1}) == 0.0
    assert value("nDCGexp@2", ["spam"], {"spam": 0}) == 0.0


def test_an_empty_ranking_counts_zero_and_is_listed() -> None:
    scores = measure_run({"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}, {"q1": ["a"], "q2": []}, ["nDCG@10"])
    assert scores.values == {"nDCG@10": pytest.approx(1 / 3)}
    assert scores.per_query["nDCG@10"] == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    assert scores.returned_nothing == ("q2", "q3")


def test_nothing_relevant_is_a_count() -> None:
    qrels = {name: {"a": 1} for name in ("q1", "q2", "q3")}
    run = {"q1": ["a"], "q2": ["x"] * 10 + ["a"], "q3": ["x", "y"]}
    assert measure_run(qrels, run, ["nothing_relevant@10"]).values == {"nothing_relevant@10": 1.0}


def test_a_query_without_a_relevant_document_counts_zero() -> None:
    scores = measure_run({"q1": {"a": 1}, "q2": {"a": 0}}, {"q1": ["a"], "q2": ["a"]}, ["nDCG@10", "R@10"])
    assert scores.values == {"nDCG@10": 0.5, "R@10": 0.5}


def test_queries_that_the_qrels_do_not_name_are_left_out() -> None:
    assert measure_run({"q1": {"a": 1}}, {"q1": ["a"], "other": ["x"]}, ["R@10"]).values == {"R@10": 1.0}


def test_a_run_of_other_queries_is_refused() -> None:
    with pytest.raises(UsageError, match="none of the labelled queries"):
        measure_run({"q1": {"a": 1}}, {"1": ["a"]}, ["R@10"])


def test_a_run_of_other_documents_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'a\.md'"):
        measure_run({"q1": {"a": 1}}, {"q1": ["a.md"]}, ["R@10"], documents={"a", "b"})


def test_qrels_without_a_query_are_refused() -> None:
    with pytest.raises(UsageError, match="no query"):
        measure_run({}, {}, ["R@10"])
