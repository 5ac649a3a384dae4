"""The measure: what counts as a token, and what keeps it honest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.ingest.chunk import word_starts
from wellhead.ingest.chunk.measure import Measure


@pytest.mark.parametrize(
    ("text", "count"),
    [("two words", 2), ("a_b c-d", 4), ("wait...!", 2), ("食べ物", 3), ("ครับ", 4), ("हिन्दी में", 2), ("", 0), (" \n", 0)],
)
def test_words_runs_of_punctuation_and_unspaced_characters_count(text: str, count: int) -> None:
    assert len(word_starts(text)) == count


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=20), st.integers(1, 8), st.integers(0, 60))
def test_reach_is_the_furthest_end_that_fits(text: str, starts: list[int], size: int, start: int) -> None:
    measure = Measure(text, lambda source: [place for place in starts if place < len(source)])
    start = min(start, len(text))
    fitting = [end for end in range(start, len(text) + 1) if measure.count(start, end) <= size]
    assert max(measure.reach(start, size), start) == max(fitting)


def test_a_token_that_began_before_counts_and_so_does_one_of_endless_length() -> None:
    measure = Measure("abcdef " + "x" * 1000)
    assert measure.count(0, 6) == measure.count(3, 6) == 1
    assert measure.count(7, 1007) > 30
    assert measure.count(3, 3) == 0


def test_tokens_that_begin_at_one_place_count_each() -> None:
    assert Measure("🦊a", lambda source: [0, 0, 0, 1]).count(0, 1) == 3
