"""Field cases: text that other readers lost, shifted or misread."""

from __future__ import annotations

import pytest

from wellhead.backends.readers import read_bytes
from wellhead.backends.readers.markdown import first_heading


@pytest.mark.parametrize("source", ["----\nhello\n----\nworld", "--- note\ntext", "---\nhello\n---\nworld"])
def test_a_dashed_banner_is_no_front_matter(source: str) -> None:
    """Yeachan-Heo/gajae-code PR#2822: lines between dashed rules were taken for front matter and deleted."""
    reading = read_bytes(source.encode(), "note.md")
    assert reading.text == source
    assert reading.metadata == {}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_headings_are_found_with_any_line_end(newline: str) -> None:
    """langchain-ai/langchain PR#38738, abhigyanpatwari/GitNexus PR#1469: no headings in CRLF files, or `A\\r`."""
    source = newline.join(["---", "title: Front", "---", "# A", "", "text", "", "Under", "=====", ""])
    reading = read_bytes(source.encode(), "a.md")
    assert reading.title == "Front"
    assert reading.text == source[source.index("# A") :], "line ends stay as they are"
    assert first_heading(reading.text) == "A"


def test_text_of_several_bytes_a_character_is_read_whole() -> None:
    """feyninc/chonkie PR#636: a cut inside a multi-byte character crashed or shifted the offsets."""
    text = "食べ物" * 50
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "cp932", "euc_jp"):
        assert read_bytes(text.encode(encoding), "a.txt").text == text


def test_invalid_bytes_shift_nothing_and_are_told() -> None:
    """feyninc/chonkie PR#629: bytes that are no valid text raised UnicodeDecodeError."""
    data = "Ä Ö Ü ä ö ü ß — before".encode() + b"\xf0\x9f" + b" after\n"
    reading = read_bytes(data, "a.md")
    assert reading.text == "Ä Ö Ü ä ö ü ß — before\ufffd after\n"
    assert "invalid" in str(reading.metadata["encoding"])
