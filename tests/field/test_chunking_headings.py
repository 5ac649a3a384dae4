"""Faults that others had in reading the structure of a text: fences, levels, line ends, rules, headings left alone."""

from __future__ import annotations

import pytest

from wellhead.ingest.chunk import structure
from wellhead.records import Document


def cut(text: str, size: int = 240) -> list[tuple[tuple[str, ...], str]]:
    slices = structure(Document(id="d", text=text, media_type="text/markdown"), size=size)
    return [(one.heading, text[one.start : one.end]) for one in slices]


def test_lines_inside_a_fence_are_no_headings() -> None:
    """deepset-ai/haystack PR#12373, langchain-ai/langchain PR#13511: all but the plainest fences leaked."""
    text = "# Real\nx\n````\n```\n# fake\n```\n````\n   ~~~\n# fake2\n   ~~~~\n# Next\ny\n```\n# fake3"
    passages = cut(text)
    assert [heading for heading, _ in passages] == [("Real",), ("Next",)]
    assert passages[1][1] == "# Next\ny\n```\n# fake3"


def test_siblings_do_not_become_children_and_a_slash_is_only_a_character() -> None:
    """run-llama/llama_index#17599, #17965: a second H3 became a child of the first; '/' broke the path."""
    text = "# Top\n### First\na\n### Second\nb\n## 24/7 Support\nc"
    assert [heading for heading, _ in cut(text)] == [("Top", "First"), ("Top", "Second"), ("Top", "24/7 Support")]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_do_not_change_what_is_a_heading(end: str) -> None:
    """langchain-ai/langchain PR#38738, abhigyanpatwari/GitNexus PR#1469: headings lost, or a CR stuck to them."""
    lines = [
        "# A",
        "one",
        "",
        "## B ##",
        "two",
        "",
        "Set",
        "---",
        "",
        "| h |",
        "|---|",
        "| c |",
        "***",
        "```",
        "# x",
        "```",
    ]
    expected = cut("\n".join(lines))
    found = cut(end.join(lines))
    assert [heading for heading, _ in expected] == [("A",), ("A", "B"), ("A", "Set")]
    assert [(heading, text.replace(end, "\n")) for heading, text in found] == expected


@pytest.mark.parametrize("text", ["----\nhello\n----\nworld", "--- note\ntext"])
def test_a_dashed_banner_loses_no_line(text: str) -> None:
    """Yeachan-Heo/gajae-code PR#2822: a banner was taken for front matter and its lines were deleted."""
    assert "\n".join(part for _, part in cut(text)) == text


@pytest.mark.parametrize("body", ["Within 24 hours only. " * 60, "- one item of the list\n" * 100, "word " * 239])
def test_a_heading_never_stands_alone_while_its_section_has_text(body: str) -> None:
    """Unstructured-IO/unstructured#3688, #1310: a title landed in a passage of its own, away from its text."""
    passages = cut(f"# Refunds\n\n{body}")
    assert len(passages) > 1
    assert {heading for heading, _ in passages} == {("Refunds",)}
    assert len(passages[0][1].split()) > 50
