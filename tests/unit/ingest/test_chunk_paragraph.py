"""`paragraph`: one passage a paragraph, short ones dropped, headings recorded."""

from __future__ import annotations

import pytest

from wellhead.errors import ConfigError
from wellhead.ingest.chunk import paragraph
from wellhead.records import Document

TEXT = """# Keys

A key is rotated every thirty days.

## Limits
Exactly twenty chars

Exactly twenty-1 char

```
# no heading in a fence
```
"""


def cut(text: str, **options: int) -> list[tuple[tuple[str, ...], str]]:
    slices = paragraph(Document(id="d", text=text, media_type="text/markdown"), **options)
    return [(one.heading, text[one.start : one.end]) for one in slices]


@pytest.mark.promise("B42")
def test_each_paragraph_is_a_passage_and_records_its_heading() -> None:
    assert cut(TEXT)[0] == (("Keys",), "A key is rotated every thirty days.")
    assert cut(TEXT)[-1] == (("Keys", "Limits"), "```\n# no heading in a fence\n```")


@pytest.mark.promise("B47")
def test_paragraphs_of_twenty_characters_are_dropped_and_of_twenty_one_kept() -> None:
    texts = [text for _, text in cut(TEXT)]
    assert "Exactly twenty chars" not in texts
    assert "Exactly twenty-1 char" in texts
    assert "Exactly twenty chars" in [text for _, text in cut(TEXT, min_chars=20)]


def test_a_heading_is_no_paragraph_and_blank_lines_of_any_line_end_part_paragraphs() -> None:
    text = "# A heading of more than twenty characters\r\n\r\none\r\n \r\ntwo\r\rthree"
    assert [part for _, part in cut(text, min_chars=1)] == ["one", "two", "three"]


def test_a_bound_cuts_long_paragraphs_only_where_it_is_asked_for() -> None:
    long = "A sentence of five words. " * 100
    assert len(cut(long)) == 1
    assert len(cut(long, size=60)) == 10
    with pytest.raises(ConfigError, match="0 tokens"):
        cut(long, size=0)


def test_equal_paragraphs_keep_their_own_places() -> None:
    text = "The very same words here.\n\n" * 3
    assert [one.start for one in paragraph(Document(id="d", text=text))] == [0, 27, 54]
