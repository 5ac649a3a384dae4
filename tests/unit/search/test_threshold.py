"""The two decisions: inclusive cuts, any signal vouches, and words that say why not."""

from __future__ import annotations

import math

import pytest

from wellhead import Document, Index
from wellhead.records import Signals
from wellhead.search.threshold import Cuts, decide, is_rare, probability, verdict

CUTS = {"cosine": 0.5, "coverage": 0.2}


@pytest.mark.promise("D10")
@pytest.mark.parametrize(("cosine", "answered"), [(0.5, True), (0.4999999, False), (0.5000001, True)])
def test_a_cut_is_inclusive(cosine: float, answered: bool) -> None:
    assert decide({"cosine": cosine}, {"cosine": 0.5}, "profile", None).answered is answered
    assert verdict(Signals(cosine=cosine), {"cosine": 0.5}) == ("pass" if answered else "below")


def test_any_signal_at_its_cut_vouches_and_is_named() -> None:
    decision = decide({"cosine": 0.1, "coverage": 0.2}, CUTS, "calibrated", None)
    assert decision.answered
    assert decision.threshold is not None
    assert (decision.threshold.signal, decision.threshold.value, decision.threshold.origin) == (
        "coverage",
        0.2,
        "calibrated",
    )


def test_a_refusal_names_what_was_measured_the_cuts_and_where_they_come_from() -> None:
    decision = decide({"cosine": 0.314, "coverage": 0.1}, CUTS, "profile", None)
    assert not decision.answered
    assert decision.reason == (
        "best cosine 0.31 < 0.50, best coverage 0.10 < 0.20, no rare word matched (profile cut, not calibrated)"
    )


def test_a_rare_word_vouches_where_no_signal_does() -> None:
    decision = decide({"cosine": 0.1}, CUTS, "profile", "fry-4012")
    assert decision.answered
    assert "'fry-4012'" in decision.reason


@pytest.mark.parametrize(
    ("evidence", "cuts"), [({"cosine": -1.0}, {}), ({"coverage": 0.0}, {"cosine": 0.5}), ({}, CUTS)]
)
def test_without_a_cut_or_a_signal_that_has_one_no_query_is_refused(
    evidence: dict[str, float], cuts: dict[str, float]
) -> None:
    decision = decide(evidence, cuts, "profile", None)
    assert (decision.answered, decision.threshold) == (True, None)


def test_the_verdict_is_on_the_signals_that_have_a_cut() -> None:
    assert verdict(Signals(cosine=0.1, coverage=0.9), CUTS) == "pass"
    assert verdict(Signals(cosine=0.1, coverage=0.1), CUTS) == "below"
    assert verdict(Signals(cosine=0.1), CUTS) == "below"
    assert verdict(Signals(bm25=9.0), CUTS) == "unjudged"
    assert verdict(Signals(cosine=0.1), {}) == "unjudged"


@pytest.mark.parametrize(
    ("frequency", "rows", "rare"),
    [
        (0, 100, False),
        (1, 2, True),
        (3, 3, True),
        (4, 10, False),
        (5, 100, True),
        (6, 100, False),
        (50, 1000, True),
        (51, 1000, False),
    ],
)
def test_rare_is_at_most_a_twentieth_or_three(frequency: int, rows: int, rare: bool) -> None:
    assert is_rare(frequency, rows) is rare


def test_the_fitted_probability_by_hand() -> None:
    cuts = Cuts(fit=(-1.0, 2.0, 3.0, -0.5))
    few = 0.5 * math.log(5)
    assert probability(cuts, 0.5, 0.0, 1, 5) == pytest.approx(1 / (1 + math.exp(few)))
    assert probability(cuts, 0.5, 1.0, 1, 5) == pytest.approx(1 / (1 + math.exp(few - 3.0)))
    assert probability(cuts, 0.5, 1.0, 4, 5) == pytest.approx(1 / (1 + math.exp(few - 6.0)))
    assert probability(cuts, 0.5, 1.0, 4, 1) == probability(cuts, 0.5, 1.0, 4, 5)
    assert probability(cuts, 0.5, 1.0, 1, 100) == pytest.approx(1 / (1 + math.exp(-3.0 + 0.5 * math.log(100))))
    assert probability(cuts, None, 1.0, 1, 1) is None
    assert probability(Cuts(), 0.5, 0.5, 1, 1) is None


@pytest.mark.parametrize(("bias", "expected"), [(-5000.0, 0.0), (5000.0, 1.0)])
def test_no_fit_is_too_steep(bias: float, expected: float) -> None:
    assert probability(Cuts(fit=(bias, 1.0, 1.0, 0.0)), 0.5, 0.5, 1, 10) == expected


def test_cuts_are_kept_by_the_legs_that_search_and_rise_with_the_passages() -> None:
    cuts = Cuts(hybrid={"probability": (0.4, 0.0)}, dense={"cosine": (0.3, 0.02)}, lexical={"coverage": (0.2, 0.0)})
    assert cuts.of("hybrid", 1000) == {"probability": 0.4}
    assert cuts.of("lexical", 1000) == {"coverage": 0.2}
    assert cuts.of("dense", 5)["cosine"] == pytest.approx(0.3 + 0.02 * math.log(5))
    assert cuts.of("dense", 0) == cuts.of("dense", 1) == cuts.of("dense", 5)
    assert cuts.of("dense", 1000)["cosine"] == pytest.approx(0.3 + 0.02 * math.log(1000))


@pytest.mark.parametrize("passages", [1, 2, 3])
def test_a_handful_of_passages_does_not_answer_everything(passages: int) -> None:
    index = Index.open(":memory:")
    texts = ["Refunds are paid within 45 days.", "The office opens at nine.", "Keys are kept in the safe."]
    index.add([Document(id=str(number), text=text) for number, text in enumerate(texts[:passages])])
    assert index.search("when are refunds paid?").outcome == "hits"
    for far in ("zebra stripes", "capital of Mongolia", "vaccinations for a journey to Peru"):
        assert index.search(far).outcome == "no_match"
        assert index.search(far, mode="lexical").outcome == "no_match"
