"""Faults that others had in where they cut a text, and in the positions they gave to what they cut."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from wellhead.errors import UsageError
from wellhead.ingest.chunk import Slice, check_window, fixed, structure
from wellhead.records import Document


def texts(source: str, slices: list[Slice]) -> list[str]:
    return [source[one.start : one.end] for one in slices]


@pytest.mark.promise("A9")
@pytest.mark.parametrize(("size", "overlap"), [(512, 512), (512, 600), (0, 0), (0, 50), (512, -1)])
def test_a_window_that_never_advances_is_refused_at_once(size: int, overlap: int) -> None:
    """BerriAI/litellm#38980: overlap >= size kept ingest running for ever, eating memory."""
    begun = time.monotonic()
    with pytest.raises(UsageError) as caught:
        check_window(size, overlap)
    with pytest.raises(UsageError):
        fixed(Document(id="d", text="a" * 5000), size=size, overlap=overlap)
    assert time.monotonic() - begun < 1
    assert {f"size={size}", f"overlap={overlap}"} <= set(str(caught.value).replace(",", " ").split())


def test_a_word_that_stands_twice_has_two_places() -> None:
    """langchain-ai/langchain#21475: an offset found by searching for the text landed on an earlier twin."""
    text = "alpha alpha"
    assert [one.start for one in structure(Document(id="d", text=text), size=1)] == [0, 6]
    assert [one.start for one in fixed(Document(id="d", text=text), size=5, overlap=0)] == [0, 5, 10]
    assert texts(text, fixed(Document(id="d", text=text), size=1, overlap=0, unit="tokens")) == ["alpha ", "alpha"]


def test_equal_sentences_of_different_sections_keep_their_own_places() -> None:
    """run-llama/llama_index PR#20050: two identical sentences got one position."""
    text = "Part 1\nSee note.\nPart 2\nSee note.\n" * 40
    slices = structure(Document(id="d", text=text), size=20)
    assert len(slices) == 20
    assert all(one.end <= following.start for one, following in pairwise(slices))
    assert _ink("".join(texts(text, slices))) == _ink(text)


def test_no_window_repeats_only_what_the_one_before_holds() -> None:
    """deepset-ai/haystack#12686: a last window was made of nothing but overlap."""
    text = "p1.p2.p3."
    assert texts(text, fixed(Document(id="d", text=text), size=9, overlap=3)) == [text]
    assert texts(text, structure(Document(id="d", text=text))) == [text]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_characters_of_several_bytes_are_cut_between_characters(size: int) -> None:
    """feyninc/chonkie PR#636: a cut inside a multi-byte character crashed, or shifted all offsets."""
    text = "食べ物" * 50
    document = Document(id="d", text=text)
    for slices in (structure(document, size=size), fixed(document, size=size, overlap=0)):
        assert all(texts(text, slices))
        assert "".join(texts(text, slices)) == text


def _ink(text: str) -> str:
    return "".join(text.split())
