"""How much text of passages is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wellhead.agent.fitting import Limits, fitting, tokens_at_most
from wellhead.records import Hit, Passage


def hits(texts: list[str]) -> list[Hit]:
    return [
        Hit(
            rank=number,
            score=None,
            passage=Passage(id=str(number), document_id="d", ordinal=number, text=text, start=0, end=len(text)),
        )
        for number, text in enumerate(texts, start=1)
    ]


def test_what_does_not_fit_is_passed_over_and_smaller_ones_are_tried() -> None:
    shown = fitting(hits(["a" * 6, "b" * 6, "c" * 3]), Limits(max_chars=10))
    assert [each.text for each in shown] == ["a" * 6, "c" * 3]
    assert all(each.whole for each in shown)


def test_where_nothing_fits_the_beginning_of_the_best_is_shown() -> None:
    (only,) = fitting(hits(["one two three", "x" * 99]), Limits(max_chars=9))
    assert (only.text, only.whole) == ("one two", False)


@given(st.lists(st.text(max_size=40), max_size=6), st.integers(1, 60), st.integers(1, 20))
def test_the_limits_hold_and_the_order_stays(texts: list[str], chars: int, tokens: int) -> None:
    shown = fitting(hits(texts), Limits(max_chars=chars, max_tokens=tokens))
    assert sum(len(each.text) for each in shown) <= chars
    assert sum(tokens_at_most(each.text) for each in shown) <= tokens
    ranks = [each.hit.rank for each in shown]
    assert ranks == sorted(ranks)
    assert all(each.text == each.hit.text if each.whole else each.hit.text.startswith(each.text) for each in shown)


@given(st.lists(st.text(max_size=40), max_size=6))
def test_without_limits_everything_is_shown(texts: list[str]) -> None:
    assert [each.text for each in fitting(hits(texts), Limits())] == texts


def test_a_counter_of_ones_own_is_used() -> None:
    limits = Limits(max_tokens=2, count_tokens=lambda text: len(text.split()))
    assert [each.text for each in fitting(hits(["one two", "three"]), limits)] == ["one two"]
