"""Filters: strict in types, written one way or refused, the same for one passage and for columns of them."""

from __future__ import annotations

import datetime
from typing import Any
from typing import Any as Anything

import pytest

from wellhead import Document, Index
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import UsageError
from wellhead.search.filters import failing, instant, matches, parse, select
from wellhead.testing.contracts import put

MONTH = {"at": {"$gte": "2024-01-01", "$lt": "2024-02-01"}}


def passes(filters: dict[str, Anything], **metadata: Anything) -> bool:
    return matches(parse(filters), metadata)


@pytest.mark.promise("D41")
def test_the_flat_form_is_equality_and_the_operators_say_the_same() -> None:
    for filters in (
        {"product": "vault"},
        {"product": {"$eq": "vault"}},
        {"product": {"$in": ["vault", "ledger"]}},
        {"$and": [{"product": "vault"}, {"year": 2024}]},
    ):
        assert passes(filters, product="vault", year=2024)
        assert not passes(filters, product="other", year=2024)
        assert not passes(filters, year=2024)


@pytest.mark.parametrize(
    ("operand", "held", "passing"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1.0, 1, True),
        (1, True, False),
        (1, "1", False),
        (True, True, True),
        (True, 1, False),
        (True, 1.0, False),
        (False, 0, False),
        ("1", "1", True),
        ("1", 1, False),
        ("true", True, False),
        ("", "", True),
        ("A", "a", False),
    ],
)
def test_equality_is_strict_in_types(operand: object, held: object, passing: bool) -> None:
    assert passes({"flag": operand}, flag=held) is passing
    assert passes({"flag": {"$in": [operand]}}, flag=held) is passing
    assert passes({"flag": operand}, flag=(held, "other")) is passing


@pytest.mark.parametrize(
    ("filters", "held", "passing"),
    [
        ({"$gte": 2}, 2, True),
        ({"$gt": 2}, 2, False),
        ({"$lt": 2.5}, 2, True),
        ({"$lte": 2}, 2.0, True),
        ({"$gte": 1}, True, False),
        ({"$gte": 1}, "2", False),
        ({"$gte": 2, "$lt": 4}, 4, False),
        ({"$gte": 2**62}, 2**62, True),
        ({"$gt": 2**62}, 2**62 + 1, True),
    ],
)
def test_ranges_on_numbers(filters: dict[str, object], held: object, passing: bool) -> None:
    assert passes({"n": filters}, n=held) is passing


@pytest.mark.parametrize(
    ("held", "passing"),
    [
        ("2024-01-31T23:30:00-02:00", False),
        ("2024-01-31T23:30:00+02:00", True),
        ("2024-02-01", False),
        ("2024-01-31T23:59:59.999999", True),
        ("2024-01-01", True),
        ("2024-01-01T00:30:00+01:00", False),
        ("not a date", False),
        (1704067200, False),
    ],
)
def test_dates_are_compared_as_instants(held: object, passing: bool) -> None:
    assert passes(MONTH, at=held) is passing


def test_an_instant_is_exact_to_the_microsecond() -> None:
    late = "9999-12-31T23:59:59.999998"
    assert passes({"at": {"$gt": late}}, at="9999-12-31T23:59:59.999999")
    assert not passes({"at": {"$gt": late}}, at=late)
    assert instant("1970-01-01T00:00:01Z") == 1_000_000
    assert instant("0001-01-01T00:00:00+14:00") is not None


def test_dates_of_python_are_taken_as_their_text() -> None:
    bound = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert passes({"at": {"$gte": bound}}, at="2024-01-01")
    assert passes({"at": datetime.date(2024, 1, 1)}, at="2024-01-01")


def test_a_list_in_the_metadata_matches_by_any_of_its_elements() -> None:
    assert passes({"tags": "a"}, tags=("a", "b"))
    assert passes({"tags": {"$in": ["x", "b"]}}, tags=("a", "b"))
    assert not passes({"tags": "a"}, tags=())


def test_not_leaves_out_what_lacks_the_key() -> None:
    assert passes({"$not": {"a": 1}}, a=2)
    assert not passes({"$not": {"a": 1}}, a=1)
    assert not passes({"$not": {"a": 1}}, b=1)
    assert passes({"a": {"$not": {"$in": [1, 2]}}}, a=3)
    assert passes({"a": {"$not": 1}}, a=3)


@pytest.mark.parametrize("filters", [None, {}, {"$and": []}])
def test_no_clause_is_no_filter(filters: dict[str, object] | None) -> None:
    assert parse(filters) is None
    assert matches(parse(filters), {})


@pytest.mark.parametrize(
    "filters",
    [
        {"$or": [{"a": 1}, {}]},
        {"$or": [{}]},
        {"$and": [{}]},
        {"$and": [{"a": 1}, {}]},
        {"$not": {}},
        {"$not": {"$or": [{"a": 1}, {}]}},
        {"b": 2, "$and": [{"$or": [{}]}]},
    ],
)
def test_an_empty_filter_inside_another_is_refused(filters: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="a filter inside another is empty"):
        parse(filters)


@pytest.mark.parametrize("filters", [{"$or": []}, {"a": {"$in": []}}, {"a": 1, "$or": []}])
def test_an_empty_choice_matches_nothing(filters: dict[str, object]) -> None:
    assert not passes(filters, a=1)


@pytest.mark.parametrize("name", ["$ne", "$regex", "$nin", "$exists", "eq", "$EQ", "$where"])
def test_an_unknown_operator_is_refused_and_the_known_ones_are_named(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse({"a": {name: 1}})
    assert repr(name) in caught.value.what
    for known in ("$eq", "$in", "$gt", "$gte", "$lt", "$lte", "$and", "$or", "$not"):
        assert known in caught.value.fix


@pytest.mark.parametrize(
    "filters",
    [
        {"$xor": []},
        {"a": None},
        {"a": ["x"]},
        {"a": float("nan")},
        {"a": {"$gt": float("inf")}},
        {"a": {}},
        {"a": {"$in": "abc"}},
        {"a": {"$in": {"b": 1}}},
        {"a": {"$in": [["x"]]}},
        {"a": {"$gt": "soon"}},
        {"a": {"$gt": True}},
        {"$and": {"a": 1}},
        {"$or": "a"},
        {"$not": [1]},
        {"": 1},
        {" ": 1},
        {7: 1},
        "a",
        [("a", 1)],
    ],
)
def test_what_could_only_match_nothing_is_refused(filters: Anything) -> None:
    with pytest.raises(UsageError):
        parse(filters)


@pytest.mark.parametrize("wrap", [lambda inner: {"$not": inner}, lambda inner: {"$and": [inner]}])
@pytest.mark.parametrize("leaf", [{"a": 1}])
def test_twenty_levels_are_fine_and_thousands_are_refused(wrap: Anything, leaf: Anything) -> None:
    filters = leaf
    for _ in range(20):
        filters = wrap(filters)
    assert passes(filters, a=1)
    for _ in range(5000):
        filters = wrap(filters)
    with pytest.raises(UsageError, match="20 levels"):
        parse(filters)


def test_an_operator_inside_an_operator_is_counted_as_a_level() -> None:
    filters: Anything = 1
    for _ in range(5000):
        filters = {"$not": filters}
    with pytest.raises(UsageError, match="20 levels"):
        parse({"a": filters})


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"a": 1, "b": 2}, "b $eq 2, but it holds 3"),
        ({"c": {"$in": ["x"]}}, "c $in ('x',), but it holds nothing"),
        ({"$or": [{"a": 5}, {"b": 5}]}, "$or over a, b"),
        ({"$not": {"a": 1}}, "$not over a"),
    ],
)
def test_the_failing_clause_is_said_in_words(filters: dict[str, object], said: str) -> None:
    assert failing(parse(filters), {"a": 1, "b": 3}) == said
    assert failing(parse({"a": 1}), {"a": 1}) is None


def test_a_key_that_no_row_has_selects_nothing() -> None:
    store = MemoryStore()
    put(store, [Document(id=name, text=name) for name in "xyz"])
    selected = select(parse({"a": 1}), store.view(""))
    assert selected is not None
    assert selected.tolist() == [False, False, False]
    assert select(None, store.view("")) is None


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"yaer": 2024}, "no passage has the key 'yaer'; did you mean 'year'?"),
        ({"year": "2024"}, "'year' holds numbers, and '2024' is text"),
        ({"team": 5}, "'team' holds text, and 5 is numbers"),
        ({"$and": [{"team": "sre"}, {"year": True}]}, "'year' holds numbers, and True is true or false"),
    ],
)
def test_a_filter_that_admits_nothing_says_what_is_odd_about_it(wanted: dict[str, Any], said: str) -> None:
    index = Index.open(":memory:")
    index.add([Document(id="a", text="Some words.", metadata={"year": 2024, "team": "sre"})])
    hits = index.search("words", filters=wanted)
    assert hits.outcome == "filtered_out"
    assert said in hits.why_empty


def test_a_filter_whose_value_just_differs_says_no_more_than_that() -> None:
    index = Index.open(":memory:")
    index.add([Document(id="a", text="Some words.", metadata={"year": 2024})])
    assert index.search("words", filters={"year": 2023}).why_empty == "the filters admit 0 of 1 passages"
