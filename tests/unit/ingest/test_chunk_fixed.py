"""`fixed`: windows of one size, their tail, their unit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.errors import UsageError, WellheadError
from wellhead.ingest.chunk import check_window, fixed
from wellhead.records import Document


def windows(text: str, **options: object) -> list[str]:
    return [text[one.start : one.end] for one in fixed(Document(id="d", text=text), **options)]  # type: ignore[arg-type]


@pytest.mark.promise("A8")
def test_windows_are_of_400_characters_and_share_50_unless_asked_otherwise() -> None:
    text = "".join(chr(0x4E00 + number) for number in range(1000))
    assert windows(text) == [text[0:400], text[350:750], text[700:1000]]


@pytest.mark.promise("A9")
@pytest.mark.parametrize(("size", "overlap"), [(512, 512), (512, 600), (0, -1), (400, -1), (0, 0), (-5, 0)])
def test_a_window_that_never_advances_is_refused_with_both_numbers(size: int, overlap: int) -> None:
    for refused in (
        lambda: check_window(size, overlap),
        lambda: fixed(Document(id="d", text=""), size=size, overlap=overlap),
    ):
        with pytest.raises(ValueError, match="need 0 <= overlap < size") as caught:
            refused()
        assert isinstance(caught.value, WellheadError)
        assert f"size={size}" in str(caught.value)
        assert f"overlap={overlap}" in str(caught.value)
        assert "never advances" in str(caught.value)


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(UsageError, match="'words'"):
        windows("text", unit="words")


@pytest.mark.promise("A10")
@pytest.mark.parametrize(("length", "kept", "with_tail"), [(0, 0, 0), (1, 1, 1), (350, 1, 1), (351, 1, 2), (400, 1, 2)])
def test_a_tail_inside_the_window_before_is_kept_only_where_asked_for(length: int, kept: int, with_tail: int) -> None:
    assert len(windows("x" * length)) == kept
    assert len(windows("x" * length, redundant_tail=True)) == with_tail


@pytest.mark.promise("A10")
@settings(max_examples=80, deadline=None)
@given(st.integers(0, 300), st.integers(1, 60), st.data())
def test_one_window_begins_at_every_step(length: int, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    text = "x" * length
    starts = [one.start for one in fixed(Document(id="d", text=text), size=size, overlap=overlap, redundant_tail=True)]
    assert starts == [size_step * (size - overlap) for size_step in range(math.ceil(length / (size - overlap)))]
    slices = fixed(Document(id="d", text=text), size=size, overlap=overlap)
    ends = [one.end for one in slices]
    assert ends == sorted(set(ends))
    assert not length or ends[-1] == length


@pytest.mark.promise("A11")
def test_a_sentence_no_longer_than_the_overlap_reads_whole_in_some_window() -> None:
    sentence = "The badge opens door seven."
    for offset in range(300, 420):
        text = ". " * (offset // 2) + sentence + " ." * 300
        assert any(sentence in window for window in windows(text))


@pytest.mark.promise("A14")
def test_a_text_of_fifty_characters_is_one_window() -> None:
    text = "Refunds are paid back within five working days ok."
    assert windows(text) == windows(text, redundant_tail=True) == [text]


def test_windows_of_tokens_begin_and_end_between_tokens() -> None:
    assert windows("one two three four five", unit="tokens", size=2, overlap=1) == [
        "one two ", "two three ", "three four ", "four five",
    ]  # fmt: skip


def test_blank_windows_are_left_out() -> None:
    assert windows("a" + " " * 20 + "b", size=5, overlap=0) == ["a    ", " b"]
