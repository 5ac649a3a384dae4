"""What holds for every document: exact slices that cover the text once, in order, none too large."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wellhead.ingest.chunk import Slice, structure, word_starts
from wellhead.ingest.chunk.cuts import _between
from wellhead.records import Document

MEDIA_TYPES = ("text/markdown", "text/x-rst", "text/plain", "text/x-python", "application/json")
LINES = [
        "# Top", "## Middle #", "### `deep` **one**", "Setext", "===", "---", "```", "````python",
        "~~~", "   ~~~", "    indented", "| a | b |", "|---|---|", "| 1 | 2 |", "- item",
        "  - nested", "1. first", "> quoted", "> - in a quotation", "[ref]: https://x.y", "<div>",
        "</div>", "A sentence. Another one! A third?", "食べ物。飲み物！", "สวัสดีครับ", "def rotate(key):",
        "class Key:", "    @cached", "    def turn(self):", "        return 1", "// comment", "}",
        "", "", "", "   ", "\t", "Title", "*****", ".. note::", "e.g. this", "…", "\u2028",
        "x\x0by\x0cz", "\x85", "👩\u200d👩\u200d👧", "🇩🇪🇫🇷", "e\u0301\u0302",
        "x" * 90,
]  # fmt: skip
MIXED = st.lists(st.sampled_from(LINES) | st.text(max_size=12), max_size=40)
TEXTS = st.text(max_size=200) | st.builds(str.join, st.sampled_from(["\n", "\r\n", "\r"]), MIXED)
SIZES = st.integers(1, 40)


def cut(text: str, media_type: str, size: int) -> list[Slice]:
    return structure(Document(id="d", text=text, media_type=media_type), size=size)


def tokens(text: str, start: int, end: int) -> int:
    """Tokens that begin in the slice, and the one it begins in the middle of."""
    starts = word_starts(text)
    return sum(start <= token < end for token in starts) + (start not in starts)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.sampled_from(MEDIA_TYPES), SIZES)
@example("# a\r\n\r\n| h | i |\r\n|--|--|\r\n" + "| cell | cell |\r\n" * 20, "text/markdown", 12)
@example("- " * 40 + "deep", "text/markdown", 2)
@example("#\u2003\n\n\u2003" * 30, "text/markdown", 1)
def test_slices_are_in_order_and_hold_every_character_once(text: str, media_type: str, size: int) -> None:
    slices = cut(text, media_type, size)
    for one, following in pairwise(slices):
        assert one.start < one.end <= following.start < following.end
    covered = "".join(text[one.start : one.end] for one in slices)
    assert re.sub(r"\s", "", covered) == re.sub(r"\s", "", text)
    assert all(text[one.start : one.end].strip() for one in slices)
    assert all(text[one.start : one.end] == text[one.start : one.end].rstrip() for one in slices)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.sampled_from(MEDIA_TYPES), SIZES)
def test_no_slice_is_larger_than_asked_but_for_a_single_character(text: str, media_type: str, size: int) -> None:
    for one in cut(text, media_type, size):
        within = tokens(text, one.start, one.end) + len(word_starts(one.context))
        assert within <= size or not any(_between(text, place) for place in range(one.start + 1, one.end))


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.sampled_from(MEDIA_TYPES), SIZES)
def test_headings_are_single_lines_and_the_same_text_is_cut_the_same(text: str, media_type: str, size: int) -> None:
    slices = cut(text, media_type, size)
    assert all(name and name.splitlines() == [name] for one in slices for name in one.heading)
    assert cut(text, media_type, size) == slices


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=40), st.sampled_from(MEDIA_TYPES), SIZES)
def test_line_ends_change_no_heading_and_no_cut(lines: list[str], media_type: str, size: int) -> None:
    texts = [end.join(lines) for end in ("\n", "\r\n", "\r")]
    shapes = [
        [
            (one.heading, _newlines(text[one.start : one.end]), _newlines(one.context))
            for one in cut(text, media_type, size)
        ]
        for text in texts
    ]
    assert shapes[0] == shapes[1] == shapes[2]


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
@pytest.mark.parametrize("text", ["", " \n\t\r\n", "\u2003\u2028\x0c"])
def test_a_document_of_white_space_has_no_slice(text: str, media_type: str) -> None:
    assert cut(text, media_type, 10) == []
