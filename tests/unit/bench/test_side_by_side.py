"""A comparison as a person reads it."""

from __future__ import annotations

import pytest

from runs_by_hand import QRELS, detail, saved_run
from wellhead.bench.compare import compare
from wellhead.bench.runs import SavedRun
from wellhead.bench.side_by_side import resolution, to_text, verdict

BEST = {"q1": ["a", "b"], "q2": ["b"], "q3": ["c"]}
NAMES = ("before.json", "after.json")


def many(*rankings: list[str]) -> SavedRun:
    """A query for each ranking, each with one relevant document, `a`."""
    qrels = {f"q{number:02}": {"a": 1} for number in range(len(rankings))}
    return saved_run(dict(zip(qrels, rankings, strict=True)), qrels)


def test_the_head_says_what_is_compared_and_what_changed() -> None:
    lines = to_text(
        compare(saved_run({**BEST, "u": ["a"]}), saved_run({**BEST, "u": []}, fingerprint={"embedder": "other"})), NAMES
    ).splitlines()
    assert lines[:4] == [
        "tiny: 3 labelled queries, 1 unanswerable",
        "A: before.json, blend; p50 1.00 ms, 10 tokens delivered (medians)",
        "B: after.json, blend; p50 1.00 ms, 10 tokens delivered (medians)",
        "embedder: A static, B other",
    ]


def test_a_row_reads_from_left_to_right() -> None:
    text = to_text(compare(saved_run(BEST), saved_run({**BEST, "q2": ["x"]})), NAMES)
    (head,) = [line for line in text.splitlines() if line.startswith("measure")]
    assert head.split() == ["measure", "A", "B", "B", "-", "A", "95", "%", "p", "wins", "losses", "ties"]
    rows = [line.split() for line in text.splitlines() if line.startswith(("nothing", "R@10 "))]
    assert rows == [
        ["nothing", "relevant", "0", "1", "+1", "0.0", "to", "+3.0", "1.0000", "0", "1", "2"],
        ["R@10", "1.0000", "0.6667", "-0.3333", "-1.0000", "to", "0.0000", "1.0000", "0", "1", "2"],
    ]


def test_a_difference_is_stated_only_where_there_is_one_to_tell() -> None:
    assert verdict(compare(many(*[["x", "a"]] * 8), many(*[["a"]] * 8))) == (
        "B is better than A: nDCG@10 +0.3691 (B - A), p = 0.0078"
    )
    assert verdict(compare(many(*[["a"]] * 8), many(*[[]] * 8), measure="nothing_relevant@10")) == (
        "A is better than B: nothing_relevant@10 +8 (B - A), p = 0.0078"
    )
    assert verdict(compare(many(*[["x", "a"]] * 3), many(*[["a"]] * 3))) == (
        "no difference that 3 queries can tell: nDCG@10 +0.3691, p = 0.2500"
    )
    assert verdict(compare(many(["a"]), many(["a"]))) == "no difference: 1 query, each with the same nDCG@10 in both"


def test_what_the_set_can_resolve_is_one_sentence() -> None:
    half = many(*[["a"], ["x"]] * 20)
    assert resolution(compare(half, many(*[["a"]] * 40))) == (
        "40 queries with this spread resolve differences of nDCG@10 above 0.230 (four times out of five)"
    )
    assert resolution(compare(half, many(*[["a"]] * 40), measure="nothing_relevant@10")).endswith(
        "nothing_relevant@10 above 9.2 (four times out of five)"
    )
    assert "5 queries are too few" in resolution(compare(many(*[["x"]] * 5), many(*[["a"]] * 5)))
    assert "nothing differs" in resolution(compare(half, half))


def test_contrasting_queries_stand_side_by_side() -> None:
    other = saved_run({**BEST, "q1": ["x", "b", "y", "z"]})
    text = to_text(compare(saved_run(BEST), other), NAMES)
    assert text.splitlines()[-8:] == [
        "q1: nDCG@10 1.0000 -> 0.2398",
        "  text of q1",
        f"  {'A':<54}  B",
        f"  {'1. a (2) key':<54}  1. x (-) key",
        f"  {'2. b (1) key':<54}  2. b (1) key",
        f"  {'-':<54}  3. y (-) key",
        "  only A, in the first 10: a (2)",
        "  only B, in the first 10: x (-), y (-), z (-)",
    ]


def test_what_only_one_returned_is_listed_relevant_ones_first_and_shortened() -> None:
    foreign = [f"x{number}" for number in range(8)]
    text = to_text(compare(saved_run({**BEST, "q1": []}), saved_run({**BEST, "q1": [*foreign, "a"]})), NAMES)
    assert "only B, in the first 10: a (2), x0 (-), x1 (-), x2 (-), x3 (-) and 4 more" in text
    assert "only A" not in text


@pytest.mark.parametrize("width", [200, 5_000])
def test_long_ids_and_texts_do_not_break_the_columns(width: int) -> None:
    long = "d" * width
    text = to_text(compare(saved_run({**BEST, "q2": [long]}), saved_run(BEST)), NAMES)
    assert max(map(len, text.splitlines())) <= 130 or f"only A, in the first 10: {long}" in text
    assert f"  1. {'d' * 48}...  1. b (1) key" in text


def test_warnings_name_their_side() -> None:
    worse = saved_run({**BEST, "q1": detail(["a"], degraded="dense: away")})
    assert "warning: A: 1 of 3 queries ran degraded" in to_text(compare(worse, saved_run(BEST)), NAMES)
    assert "warning" not in to_text(compare(saved_run(BEST), saved_run(BEST, QRELS)), NAMES)
