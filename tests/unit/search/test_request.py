"""Every wrong option of a search is refused with its name and what it may be; every text is a query."""

from __future__ import annotations

from typing import Any

import pytest

from wellhead.errors import UsageError
from wellhead.search.request import Asked, check


def asked(query: Any = "a query", **options: Any) -> Asked:
    plain: dict[str, Any] = {
        "k": 10,
        "filters": None,
        "mode": "hybrid",
        "fusion": "blend",
        "weight": None,
        "cut": "query",
        "threshold": None,
        "per_document": None,
        "max_tokens": None,
        "language": None,
    }
    return check(query, **{**plain, **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": ""}, "blank"),
        ({"query": " \t\n\u3000"}, "blank"),
        ({"query": None}, "must be text"),
        ({"query": b"bytes"}, "must be text"),
        ({"query": "x" * 8001}, "8001 characters; 8000"),
        ({"k": 0}, "k must be a whole number from 1 to 100"),
        ({"k": 101}, "k must be a whole number from 1 to 100"),
        ({"k": -1}, "from 1 to 100"),
        ({"k": True}, "from 1 to 100"),
        ({"k": 5.0}, "from 1 to 100"),
        ({"k": "5"}, "from 1 to 100"),
        ({"per_document": 0}, "per_document must be a whole number from 1"),
        ({"max_tokens": 0}, "max_tokens must be a whole number from 1"),
        ({"weight": 1.1}, "weight must be a number from 0 to 1"),
        ({"weight": float("nan")}, "weight must be a number from 0 to 1"),
        ({"weight": True}, "weight must be a number from 0 to 1"),
        ({"mode": "vector"}, "known: hybrid, lexical, dense"),
        ({"mode": "lexica"}, "did you mean 'lexical'?"),
        ({"fusion": "RRF"}, "known: blend, rrf, convex"),
        ({"cut": None}, "known: query, hit, off"),
        ({"threshold": "0.5"}, "a threshold on cosine must be a number from -1 to 1"),
        ({"threshold": True}, "a threshold on cosine must be a number from -1 to 1"),
        ({"threshold": float("nan")}, "a threshold on cosine must be a number from -1 to 1"),
        ({"threshold": {}}, "coverage, cosine, probability"),
        ({"threshold": {"bm25": 1.0}}, "coverage, cosine, probability"),
        ({"threshold": {"cosine": None}}, "a threshold on cosine must be a number from -1 to 1"),
        ({"threshold": 5}, "a threshold on cosine must be a number from -1 to 1"),
        ({"threshold": {"coverage": -0.1}}, "a threshold on coverage must be a number from 0 to 1"),
        ({"threshold": {"probability": 30}}, "a threshold on probability must be a number from 0 to 1"),
        ({"threshold": 0.5, "mode": "lexical"}, "has none"),
        ({"threshold": {"cosine": 0.5}, "mode": "lexical"}, "mode 'lexical' names one of coverage"),
        ({"threshold": {"coverage": 0.5}, "mode": "dense"}, "mode 'dense' names one of cosine"),
        ({"filters": ["a"]}, "must be a mapping"),
        ({"filters": {"a": {"$regex": "x"}}}, r"known|use one of \$eq, \$in"),
        ({"language": "english"}, "ISO 639-1"),
        ({"language": 7}, "ISO 639-1"),
    ],
)
def test_a_wrong_option_is_named_with_what_it_may_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        asked(**options)


@pytest.mark.parametrize("name", ["k", "per_document", "max_tokens"])
def test_the_message_repeats_what_was_given(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked(**{name: -7})
    assert "-7" in caught.value.why


def test_the_bounds_themselves_are_fine() -> None:
    assert asked("x" * 8000, k=100, weight=0, max_tokens=1, per_document=1).k == 100
    assert asked(k=1, weight=1.0).weight == 1.0


@pytest.mark.parametrize("query", ["\ud800 broken", "null \x00 byte", "AND (", '"', "^", "-x", "a:b", "\u202e", "🍣"])
def test_any_characters_are_a_query(query: str) -> None:
    found = asked(query).query
    assert len(found) == len(query)
    assert found.encode()
    assert "\x00" not in found


def test_a_plain_threshold_is_a_cosine() -> None:
    assert asked(threshold=1).thresholds == {"cosine": 1.0}
    assert asked(threshold={"coverage": 0.4}).thresholds == {"coverage": 0.4}
    assert asked().thresholds is None
    assert asked(threshold=0.0).thresholds == {"cosine": 0.0}, "zero is a cut, too"


def test_an_empty_filter_is_no_filter() -> None:
    assert asked(filters={}).condition is asked(filters=None).condition is None
