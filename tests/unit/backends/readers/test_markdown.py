"""Markdown: front matter, title, and a body that is left alone."""

from __future__ import annotations

import pytest

from wellhead.backends.readers.markdown import first_heading, read_markdown
from wellhead.records import Document


def test_front_matter_becomes_metadata_and_the_body_is_exact() -> None:
    source = (
        "---\ntitle: Key rotation\nproduct: vault\ntags: [a, 2, true]\nowner:\n  team: sec\n  lead: null\n"
        "date: 2026-01-02\nat: 2026-01-02T03:04:05\nlang: en-GB\nodd: [[1], {b: 2}]\n---\n\n# Heading\r\ntext\n"
    )
    reading = read_markdown(source.encode(), "a.md")
    assert reading.text == "\n# Heading\r\ntext\n"
    assert reading.title == "Key rotation"
    assert reading.language == "en"
    assert reading.media_type == "text/markdown"
    assert reading.metadata == {
        "product": "vault",
        "tags": ("a", 2, True),
        "owner.team": "sec",
        "date": "2026-01-02",
        "at": "2026-01-02T03:04:05",
        "lang": "en-GB",
        "odd": ("[1]", '{"b": 2}'),
    }
    Document(id="a", text=reading.text, metadata=reading.metadata)


def test_toml_front_matter_and_windows_line_ends() -> None:
    reading = read_markdown(b'+++\r\ntitle = "T"\r\nn = 3\r\n[a]\r\nb = 1.5\r\n+++\r\nbody', "a.md")
    assert (reading.title, reading.metadata, reading.text) == ("T", {"n": 3, "a.b": 1.5}, "body")


def test_yaml_may_end_in_dots_and_the_title_need_not_be_text() -> None:
    reading = read_markdown(b"---\ntitle: 2024\n...\nbody", "a.md")
    assert (reading.title, reading.text) == ("2024", "body")


@pytest.mark.parametrize(
    "source",
    [
        "---\nhello\n---\nworld",  # no mapping
        "---\n---\nworld",  # empty
        "---\n- a\n- b\n---\nworld",  # a list
        "---\na: 1\nnever closed",
        " ---\na: 1\n---\nworld",
        "--- \na: 1\n---\nworld",
        "text\n---\na: 1\n---\n",
        "+++\nnot toml at all\nnever closed",
    ],
)
def test_what_is_no_front_matter_stays_text(source: str) -> None:
    reading = read_markdown(source.encode(), "a.md")
    assert reading.text == source
    assert reading.metadata == {}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("a: [1, 2", "line"),
        ("a: b: c", "line 2"),
        ("date: 2024-13-45", "month"),
        ("a: &x [1]\nb: *x", "alias"),
        ("? [a, b]\n: 1\na: {b", "line"),
        ("a: " + "[" * 900, "YAML"),
        ("a: " + "[" * 60_000, "brackets"),
        ("a: !!python/object/apply:os.system [ls]", "constructor"),
    ],
)
def test_broken_front_matter_stays_text_and_is_told(block: str, said: str) -> None:
    source = f"---\n{block}\n---\nworld"
    reading = read_markdown(source.encode(), "a.md")
    assert reading.text == source
    assert said in str(reading.metadata["front_matter"])


def test_values_that_cannot_be_stored_become_text() -> None:
    reading = read_markdown(
        b'---\nbig: 99999999999999999999\nnan: .nan\nhalf: "\\uD800"\n1: x\n"": y\n---\nbody', "a.md"
    )
    assert reading.metadata == {"big": "99999999999999999999", "nan": "NaN", "half": "\ufffd", "1": "x"}
    Document(id="a", text=reading.text, metadata=reading.metadata)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# A *bold* `code` [link](x) title #\ntext", "A bold code link title"),
        ("Under\nline\n====\n", "Under line"),
        ("## Two\n# One\n", "One"),
        ("```\n# fenced\n```\n> # quoted\n\n- # listed\n", ""),
        ("#hashtag\n", ""),
        ("no heading", ""),
        ("x\r# Lone CR\ry", "Lone CR"),
        ("word\n" * 20_000 + "\n# Late\n", "Late"),
    ],
)
def test_the_title_is_the_first_top_level_heading(text: str, title: str) -> None:
    assert first_heading(text) == title
