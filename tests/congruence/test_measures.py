"""Our measures equal those of trec_eval and of ir_measures wherever no tie lets them differ."""

from __future__ import annotations

import shutil

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.bench.measures import measure_run

DOCUMENTS = [f"d{number}" for number in range(30)]
NAMES = ["nDCG@1", "nDCG@5", "nDCG@10", "R@5", "R@10", "P@5", "P@10", "RR@3", "RR@10", "AP@5", "AP@10", "Success@5"]
TREC = {
    "nDCG@5": "ndcg_cut_5",
    "nDCG@10": "ndcg_cut_10",
    "R@5": "recall_5",
    "P@10": "P_10",
    "AP@10": "map_cut_10",
    "Success@5": "success_5",
}

grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1, max_size=12)
ranking = st.lists(st.sampled_from(DOCUMENTS), unique=True, min_size=1, max_size=25)
judged_rankings = st.lists(st.tuples(grades, ranking), min_size=1, max_size=5)


def drawn(count: int) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """Qrels and a run of so many queries, of every size and with grades 0 to 3."""
    generator = np.random.default_rng(2002)
    qrels, run = {}, {}
    for query_id in map(str, range(1, count + 1)):
        judged = generator.permutation(DOCUMENTS)[: generator.integers(1, 13)]
        qrels[query_id] = {
            str(one): int(grade) for one, grade in zip(judged, generator.integers(0, 4, 12), strict=False)
        }
        run[query_id] = [str(one) for one in generator.permutation(DOCUMENTS)[: generator.integers(1, 26)]]
    return qrels, run


def as_scores(order: list[str]) -> dict[str, float]:
    """Scores that fall with the rank, without ties."""
    return {document_id: float(len(order) - place) for place, document_id in enumerate(order)}


@settings(max_examples=80, deadline=None)
@given(judged_rankings)
def test_values_and_means_equal_those_of_ir_measures(cases: list[tuple[dict[str, int], list[str]]]) -> None:
    qrels = {f"q{number}": judged for number, (judged, _) in enumerate(cases)}
    run = {f"q{number}": order for number, (_, order) in enumerate(cases)}
    measures = [ir_measures.parse_measure(name) for name in [*NAMES, "Judged@10"]]
    scored = {query_id: as_scores(order) for query_id, order in run.items()}
    theirs = {
        (metric.query_id, str(metric.measure)): metric.value
        for metric in ir_measures.iter_calc(measures, qrels, scored)
    }
    ours = measure_run(qrels, run, [*NAMES, "Judged@10"])
    assert len(theirs) == len(cases) * len(measures)
    for (query_id, name), value in theirs.items():
        assert ours.per_query[name][query_id] == pytest.approx(value, abs=1e-9), (query_id, name)
    means = {str(measure): value for measure, value in ir_measures.calc_aggregate(measures, qrels, scored).items()}
    assert ours.values == pytest.approx(means, abs=1e-9)


def test_two_thousand_runs_have_the_values_of_ir_measures() -> None:
    qrels, run = drawn(2_000)
    measures = [ir_measures.parse_measure(name) for name in NAMES]
    scored = {query_id: as_scores(order) for query_id, order in run.items()}
    ours = measure_run(qrels, run, NAMES).per_query
    seen = 0
    for metric in ir_measures.iter_calc(measures, qrels, scored):
        assert ours[str(metric.measure)][metric.query_id] == pytest.approx(metric.value, abs=1e-9)
        seen += 1
    assert seen == 2_000 * len(NAMES)


@pytest.mark.skipif(shutil.which("perl") is None, reason="what ir_measures asks for this measure is a perl script")
def test_exponential_gain_equals_that_of_ir_measures() -> None:
    qrels, run = drawn(2_000)
    scored = {query_id: as_scores(order) for query_id, order in run.items()}
    ours = measure_run(qrels, run, ["nDCGexp@5", "nDCGexp@10"]).per_query
    for k in (5, 10):
        measure = ir_measures.parse_measure(f"nDCG(dcg='exp-log2')@{k}")
        theirs = {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], qrels, scored)}
        # The script prints five digits.
        assert ours[f"nDCGexp@{k}"] == pytest.approx(theirs, abs=6e-6)


@settings(max_examples=80, deadline=None)
@given(judged_rankings)
def test_values_equal_those_of_trec_eval(cases: list[tuple[dict[str, int], list[str]]]) -> None:
    qrels = {f"q{number}": judged for number, (judged, _) in enumerate(cases)}
    run = {f"q{number}": order for number, (_, order) in enumerate(cases)}
    asked = {"ndcg_cut.5,10", "recall.5", "P.10", "map_cut.10", "success.5"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(
        {query_id: as_scores(order) for query_id, order in run.items()}
    )
    ours = measure_run(qrels, run, list(TREC))
    for query_id in qrels:
        for name, trec in TREC.items():
            assert ours.per_query[name][query_id] == pytest.approx(theirs[query_id][trec], abs=1e-9), (query_id, name)


@settings(max_examples=80, deadline=None)
@given(judged_rankings)
def test_every_value_lies_between_nothing_and_everything(cases: list[tuple[dict[str, int], list[str]]]) -> None:
    for judged, order in cases:
        scores = measure_run({"q": judged}, {"q": order + order}, [*NAMES, "Judged@10"])
        assert all(0.0 <= value <= 1.0 + 1e-12 for value in scores.values.values())
