from __future__ import annotations

import pytest

from wellhead.doors.cli.options import did_you_mean, read_filters, read_scope, read_threshold
from wellhead.errors import UsageError


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("area=guides", "guides"),
        ("area=", ""),
        ("area=5", 5),
        ("area=5.0", 5.0),
        ("area=true", True),
        ('area="5"', "5"),
        ('area={"$gt": 5}', {"$gt": 5}),
        ("area=a=b", "a=b"),
        ("area=NaN", "NaN"),
        ('area="[draft]"', "[draft]"),
        ("area=2026-01-02", "2026-01-02"),
        ("area=a[0]", "a[0]"),
    ],
)
def test_a_filter_is_json_where_it_parses_and_text_elsewhere(given: str, read: object) -> None:
    filters = read_filters([given])
    assert filters is not None
    assert filters["area"] == read
    assert type(filters["area"]) is type(read)


@pytest.mark.parametrize("value", ["{broken", " [", "[draft]", "[" * 100_000, '{"$gt": NaN}'])
def test_a_filter_that_begins_like_json_and_is_none_is_refused_not_matched_as_text(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_filters([f"area={value}"])
    assert caught.value.what.startswith(f"--filter area={value:.80} ")
    assert caught.value.why
    assert "'area=\"[x]\"'" in caught.value.fix


def test_several_filters_are_one_mapping_and_none_is_none() -> None:
    assert read_filters(["a=1", '$or=[{"b": 2}, {"c": 3}]']) == {"a": 1, "$or": [{"b": 2}, {"c": 3}]}
    assert read_filters([]) is None


def test_the_same_key_twice_names_the_operator_for_either() -> None:
    with pytest.raises(UsageError) as caught:
        read_filters(["area=guides", "area=api"])
    assert "'area'" in caught.value.what
    assert "$in" in caught.value.fix


@pytest.mark.parametrize("given", ["area", "=x", "  =x", ""])
def test_a_filter_without_a_key_or_a_value_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="KEY=VALUE"):
        read_filters([given])


@pytest.mark.parametrize("given", ["price>=5", "price<=5", "price!=5"])
def test_a_comparison_as_in_a_formula_is_refused_not_taken_for_a_key(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_filters([given])
    assert "$gte" in caught.value.fix


def test_scope() -> None:
    assert read_scope(["tenant=acme=x"]) == {"tenant": "acme=x"}
    assert read_scope([]) == {}
    for twice in (["tenant=acme", "tenant=globex"], ["tenant=acme", "tenant=acme"]):
        with pytest.raises(UsageError, match="given twice"):
            read_scope(twice)
    with pytest.raises(UsageError) as caught:
        read_scope(["acme"])
    assert caught.value.fix == "write --scope tenant=acme"


def test_threshold() -> None:
    assert read_threshold([]) is None
    assert read_threshold(["0.4"]) == 0.4
    assert read_threshold(["cosine=0.4"]) == 0.4
    assert read_threshold(["0.4", "coverage=0.3"]) == {"cosine": 0.4, "coverage": 0.3}
    with pytest.raises(UsageError, match="no number"):
        read_threshold(["high"])


@pytest.mark.parametrize("given", [["0.4", "cosine=0.5"], ["coverage=0.1", "coverage=0.2"], ["0.4", "0.4"]])
def test_two_thresholds_on_one_signal_are_refused_not_the_last_one_taken(given: list[str]) -> None:
    with pytest.raises(UsageError, match="twice"):
        read_threshold(given)


def test_did_you_mean_is_silent_when_nothing_is_near() -> None:
    assert did_you_mean("serach", ["search", "show"]) == "did you mean 'search'?"
    assert did_you_mean("zzz", ["search", "show"]) == ""
