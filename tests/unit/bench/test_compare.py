"""Two runs held against one another: values by hand, symmetry, and what flatters nobody."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs_by_hand import QRELS, detail, saved_run
from wellhead.bench.compare import Comparison, Row, compare, to_dict
from wellhead.bench.pipelines import QueryDetail
from wellhead.bench.runs import SavedRun
from wellhead.errors import UsageError

BEST: Mapping[str, Sequence[str]] = {"q1": ["a", "b"], "q2": ["b"], "q3": ["c"]}
IDS = [f"d{number}" for number in range(6)]

judged = st.dictionaries(st.sampled_from(IDS), st.integers(0, 2), min_size=1, max_size=4)
rankings = st.lists(st.sampled_from(IDS), max_size=8)  # repeats and empty ones too
both = st.dictionaries(
    st.sampled_from([f"q{number:02}" for number in range(20)]),
    st.tuples(judged, rankings, rankings),
    min_size=1,
    max_size=20,
)
Cases = dict[str, tuple[dict[str, int], list[str], list[str]]]


def of(cases: Cases) -> tuple[SavedRun, SavedRun]:
    qrels = {query_id: grades for query_id, (grades, _, _) in cases.items()}
    return (
        saved_run({query_id: a for query_id, (_, a, _) in cases.items()}, qrels),
        saved_run({query_id: b for query_id, (_, _, b) in cases.items()}, qrels),
    )


def all_get(qrels: Mapping[str, object], ranking: list[str]) -> dict[str, list[str]]:
    return {query_id: [*ranking] for query_id in qrels}


def row(comparison: Comparison, name: str) -> Row:
    return next(one for one in comparison.rows if one.measure == name)


def test_each_number_by_hand() -> None:
    found = compare(saved_run(BEST), saved_run({**BEST, "q1": ["x", "b", "a"], "q2": ["x"] * 3}))
    assert (found.collection, found.queries, found.unanswerable) == ("tiny", 3, 0)
    recall = row(found, "R@10")
    assert (recall.a, recall.b, recall.difference) == (1.0, pytest.approx(2 / 3), pytest.approx(-1 / 3))
    assert (recall.wins, recall.losses, recall.ties, recall.p) == (0, 1, 2, 1.0)
    reciprocal = row(found, "RR@10")
    assert (reciprocal.a, reciprocal.b) == (1.0, pytest.approx((1 / 2 + 0 + 1) / 3))
    assert reciprocal.p == 2 / 2**2
    nothing = row(found, "nothing_relevant@10")
    assert (nothing.a, nothing.b, nothing.difference, nothing.counted) == (0, 1, 1, True)
    assert (nothing.wins, nothing.losses) == (0, 1)  # more of them is worse
    assert found.main.measure == "nDCG@10"
    assert not found.told
    assert found.better == ""


def test_the_most_contrasting_queries_come_first_and_show_what_each_returned() -> None:
    found = compare(saved_run(BEST), saved_run({**BEST, "q1": ["x", "b", "a"], "q2": ["y", "x"]}))
    assert [one.query_id for one in found.contrasts] == ["q2", "q1"]
    first, second = found.contrasts
    assert (first.a, first.b, first.difference, first.text) == (1.0, 0.0, -1.0, "text of q2")
    assert [(one.rank, one.document_id, one.grade) for one in first.first_a] == [(1, "b", 1)]
    assert [(one.rank, one.document_id, one.grade) for one in first.only_b] == [(1, "y", None), (2, "x", None)]
    assert [one.document_id for one in first.only_a] == ["b"]
    assert first.first_a[0].terms == ("key",)
    assert [(one.document_id, one.grade) for one in second.first_b] == [("x", None), ("b", 1), ("a", 2)]
    assert ([one.document_id for one in second.only_a], len(second.only_b)) == ([], 1)


def test_as_many_contrasts_as_asked_for_and_equal_ones_by_id() -> None:
    other = saved_run({"q1": [], "q2": [], "q3": []})
    assert [one.query_id for one in compare(saved_run(BEST), other, show=2).contrasts] == ["q1", "q2"]
    assert compare(saved_run(BEST), other, show=0).contrasts == ()
    with pytest.raises(UsageError, match="negative"):
        compare(saved_run(BEST), other, show=-1)


def test_a_difference_is_called_one_when_chance_does_not_explain_it() -> None:
    qrels = {f"q{number}": {"a": 1} for number in range(8)}
    good, bad = saved_run(all_get(qrels, ["a"]), qrels), saved_run(all_get(qrels, ["x", "a"]), qrels)
    found = compare(bad, good)
    assert (found.told, found.better, found.main.p) == (True, "B", 2 / 2**8)
    assert compare(good, bad).better == "A"
    assert compare(good, saved_run(all_get(qrels, []), qrels), measure="nothing_relevant@10").better == "A"
    few = {name: qrels[name] for name in ("q0", "q1", "q2")}
    found = compare(saved_run(all_get(few, []), few), saved_run(all_get(few, ["a"]), few))
    assert (found.told, found.better, found.resolves) == (False, "", None)


def test_what_the_set_resolves_is_told_in_the_unit_of_the_measure() -> None:
    qrels = {f"q{number}": {"a": 1} for number in range(10)}
    a = saved_run(all_get(qrels, ["a"]), qrels)
    b = saved_run({name: ["a"] if place % 2 else ["x"] for place, name in enumerate(qrels)}, qrels)
    spread = math.sqrt(10 / 9 * 0.25)
    wanted = (1.959964 + 0.841621) * spread / math.sqrt(10 - 1.959964**2 / 2)
    assert compare(a, b).resolves == pytest.approx(wanted, abs=1e-6)
    assert compare(a, b, measure="nothing_relevant@10").resolves == pytest.approx(10 * wanted, abs=1e-5)
    assert compare(a, a).resolves is None


def test_another_measure_gets_its_row_and_decides() -> None:
    other = saved_run({**BEST, "q1": ["b", "a"]})
    found = compare(saved_run(BEST), other, measure="nDCGexp@3")
    assert found.main == row(found, "nDCGexp@3") == found.rows[-2]
    assert found.main.difference < row(found, "nDCG@10").difference < 0
    assert len(compare(saved_run(BEST), other).rows) + 1 == len(found.rows)
    for name in ("nDCG@101", "nDCG", "MRR@10"):
        with pytest.raises(UsageError):
            compare(saved_run(BEST), other, measure=name)


def test_runs_of_another_collection_or_with_other_labels_are_refused_naming_both() -> None:
    with pytest.raises(UsageError, match="different collections") as caught:
        compare(saved_run(BEST), saved_run(BEST, collection="other"))
    assert "'tiny'" in caught.value.where
    assert "'other'" in caught.value.where
    relabelled = {**QRELS, "q2": {"b": 2}}
    with pytest.raises(UsageError, match="different labels") as caught:
        compare(saved_run(BEST), saved_run(BEST, relabelled))
    assert saved_run(BEST).labels[:12] in caught.value.where
    assert saved_run(BEST, relabelled).labels[:12] in caught.value.where
    assert "1 of their queries" in caught.value.why
    assert "'q2'" in caught.value.why


def test_a_pipeline_that_a_run_lacks_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(UsageError, match="run A has no pipeline 'blind'") as caught:
        compare(saved_run(BEST), saved_run(BEST), pipeline="blind")
    assert "blend" in caught.value.fix
    with pytest.raises(UsageError, match="run B has no pipeline 'dense'"):
        compare(saved_run(BEST), saved_run(BEST), against="dense")


def test_two_pipelines_can_be_compared() -> None:
    a, b = saved_run(BEST, pipeline="bm25"), saved_run({**BEST, "q2": []}, pipeline="dense")
    found = compare(a, b, pipeline="bm25", against="dense")
    assert (found.a.pipeline, found.b.pipeline, found.main.losses) == ("bm25", "dense", 1)


def test_what_changed_between_the_runs_is_named() -> None:
    newer = saved_run(BEST, fingerprint={"embedder": "other", "analyzer": "2"}, passages=4)
    assert compare(saved_run(BEST), newer).changed == (
        ("embedder", "static", "other"),
        ("passages", "3", "4"),
        ("analyzer", "", "2"),
    )
    assert compare(newer, newer).changed == ()


def test_what_the_default_cut_did_is_counted_on_both_sides() -> None:
    refused = {"outcome": "no_match"}
    a = saved_run({**BEST, "u": detail(["x"], **refused), "v": ["x"]})
    b = saved_run({**BEST, "q1": detail(BEST["q1"], **refused), "u": ["x"], "v": ["x"]})
    found = compare(a, b)
    assert found.unanswerable == 2
    no_match, hits = row(found, "no_match"), row(found, "unanswerable with hits")
    assert (no_match.a, no_match.b, no_match.losses, no_match.ties) == (0, 1, 1, 2)
    assert (hits.a, hits.b, hits.losses, hits.ties) == (1, 2, 1, 1)


def test_the_baseline_has_no_cut_to_compare() -> None:
    without = {query_id: detail(ranking, outcome=None) for query_id, ranking in BEST.items()}
    names = [one.measure for one in compare(saved_run(without), saved_run(BEST)).rows]
    assert "no_match" not in names


def test_medians_of_time_and_tokens_are_kept_by_side() -> None:
    timed = {
        "q1": detail(["a"], ms=5.0, tokens=90),
        "q2": detail(["b"], ms=1.0),
        "q3": detail(["c"], ms=3.0, tokens=40),
    }
    found = compare(saved_run(timed), saved_run(BEST))
    assert (found.a.p50_ms, found.a.tokens, found.b.p50_ms, found.b.tokens) == (3.0, 40, 1.0, 10)


# --- nobody is flattered ----------------------------------------------------------------------------------------


def test_an_empty_run_counts_nought_on_every_query_and_is_told() -> None:
    empty = saved_run({"q1": [], "q2": [], "q3": []})
    found = compare(saved_run(BEST), empty)
    assert {one.b for one in found.rows if not one.counted} == {0.0}
    assert row(found, "nothing_relevant@10").b == 3
    assert found.b.warnings == ("3 of 3 queries returned nothing, counted 0",)
    assert found.a.warnings == ()


def test_failed_and_degraded_searches_are_told() -> None:
    worse: dict[str, QueryDetail] = {
        "q1": detail([], failed="the embedder is away"),
        "q2": detail(["b"], degraded="dense: away"),
        "q3": detail(["c"], degraded="dense: away"),
    }
    assert compare(saved_run(worse), saved_run(BEST)).a.warnings == (
        "1 of 3 queries returned nothing, counted 0",
        "1 of 3 queries failed",
        "2 of 3 queries ran degraded",
    )


def test_a_run_in_a_foreign_id_space_is_told() -> None:
    foreign = saved_run({query_id: [f"{one}.md" for one in ranking] for query_id, ranking in BEST.items()})
    (warning,) = compare(saved_run(BEST), foreign).b.warnings
    assert "are its document ids those of the labels?" in warning


def test_an_id_that_is_returned_again_gains_nothing() -> None:
    again = saved_run({"q1": ["a", "a", "b"], "q2": ["b", "b"], "q3": ["c"] * 5})
    found = compare(saved_run(BEST), again)
    assert {one.b for one in found.rows if not one.counted} == {1.0}
    assert {(one.wins, one.losses) for one in found.rows} == {(0, 0)}


# --- what always holds ------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(both)
def test_exchanging_the_runs_mirrors_everything(cases: Cases) -> None:
    a, b = of(cases)
    there, back = compare(a, b, show=30), compare(b, a, show=30)
    for one, other in zip(there.rows, back.rows, strict=True):
        assert (one.a, one.b, one.p) == (other.b, other.a, other.p)
        assert (one.wins, one.losses, one.ties) == (other.losses, other.wins, other.ties)
        assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert there.told == back.told
    assert {there.better, back.better} in ({""}, {"A", "B"})
    assert there.resolves == pytest.approx(back.resolves)
    for one, other in zip(there.contrasts, back.contrasts, strict=True):
        assert (one.query_id, one.a, one.first_a, one.only_b) == (other.query_id, other.b, other.first_b, other.only_a)


@settings(max_examples=25, deadline=None)
@given(both)
def test_identical_runs_do_not_differ(cases: Cases) -> None:
    a, _ = of(cases)
    found = compare(a, a)
    for one in found.rows:
        assert (one.difference, one.low, one.high, one.p, one.ties) == (0.0, 0.0, 0.0, 1.0, len(cases))
    assert (found.told, found.contrasts, found.changed, found.resolves) == (False, (), (), None)


@settings(max_examples=25, deadline=None)
@given(both, st.permutations(IDS), st.randoms(use_true_random=False))
def test_renaming_documents_and_queries_changes_no_number(cases: Cases, names: list[str], random: object) -> None:
    renamed = dict(zip(IDS, names, strict=True))
    mixed = [*cases]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    others: Cases = {
        f"other-{place}": (
            {renamed[one]: grade for one, grade in cases[query_id][0].items()},
            [renamed[one] for one in cases[query_id][1]],
            [renamed[one] for one in cases[query_id][2]],
        )
        for place, query_id in enumerate(mixed)
    }
    plain, changed = (compare(*of(given)) for given in (cases, others))
    assert changed.rows == plain.rows
    assert changed.resolves == pytest.approx(plain.resolves)


@settings(max_examples=25, deadline=None)
@given(both)
def test_plain_data_hold_what_the_comparison_holds(cases: Cases) -> None:
    found = compare(*of(cases))
    plain = json.loads(json.dumps(to_dict(found)))
    assert plain["schema"] == 1
    assert (plain["told"], plain["better"]) == (found.told, found.better)
    assert msgspec.convert({name: plain[name] for name in Comparison.__struct_fields__}, Comparison) == found
