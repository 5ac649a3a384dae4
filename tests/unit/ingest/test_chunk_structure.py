"""`structure`: sections, blocks kept whole, the best places to cut, what goes into the context."""

from __future__ import annotations

import pytest

from wellhead.errors import ConfigError
from wellhead.ingest.chunk import structure, word_starts
from wellhead.records import Document

MARKDOWN = "text/markdown"


def cut(text: str, media_type: str = MARKDOWN, size: int = 240) -> list[tuple[tuple[str, ...], str]]:
    slices = structure(Document(id="d", text=text, media_type=media_type), size=size)
    return [(one.heading, text[one.start : one.end]) for one in slices]


def headings(text: str, media_type: str = MARKDOWN) -> list[tuple[str, ...]]:
    return [heading for heading, _ in cut(text, media_type)]


def test_text_before_the_first_heading_has_no_path() -> None:
    assert cut("intro\n\n# A\nbody") == [((), "intro"), (("A",), "# A\nbody")]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("# **Bold** `code` [link](http://x.y) ##", "Bold code link"),
        ("Two\nlines\n=====", "Two lines"),
        ("   ### A &amp; B <b>c</b>", "A & B c"),
        ("# ![logo](x.png)", "logo"),
        ("# <b></b>", "<b></b>"),
        ("# a \\# b/c", "a # b/c"),
    ],
)
def test_a_heading_is_recorded_as_a_reader_sees_it(source: str, shown: str) -> None:
    assert headings(f"{source}\n\ntext") == [(shown,)]


def test_a_heading_as_long_as_a_page_is_clipped_in_the_path_and_whole_in_the_text() -> None:
    [(heading, text)] = cut("# " + "ab " * 60 + "\ntext", size=400)
    assert len(heading[0]) <= 200
    assert text.count("ab") == 60
    assert all(len(path[0]) <= 200 for path in headings("# " + "[" * 5000 + "\ntext"))


def test_headings_in_lists_and_quotations_begin_no_section() -> None:
    assert headings("# A\n- # item\n\n> # quoted\n\ntext") == [("A",)]


def test_a_section_without_text_goes_with_what_follows_it() -> None:
    assert cut("# A\n## B\n## C\ntext") == [(("A", "C"), "# A\n## B\n## C\ntext")]


def test_a_last_heading_without_text_stays_a_passage_so_that_nothing_is_lost() -> None:
    assert cut("# A\ntext\n# B\n") == [(("A",), "# A\ntext"), (("B",), "# B")]


def test_blocks_that_fit_stay_whole() -> None:
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 3
    fence = "```python\nx = 1\n\ny = 2\n```"
    items = "- one two\n- three four\n- five six"
    texts = [text for _, text in cut("\n\n".join([table, fence, items]), size=34)]
    assert texts == [table.strip(), f"{fence}\n\n{items}"]


def test_what_is_too_large_is_cut_evenly_and_not_into_a_full_one_and_a_tiny_tail() -> None:
    text = "word " * 250
    assert [len(part.split()) for _, part in cut(text, "text/plain")] == [125, 125]


def test_a_small_last_paragraph_is_evened_out_with_the_one_before() -> None:
    text = "\n\n".join(["word " * 120] * 4 + ["tail " * 5])
    assert [len(part.split()) for _, part in cut(text, "text/plain")] == [240, 120, 125]


def test_a_long_list_is_cut_between_items_and_items_between_their_blocks() -> None:
    items = [f"- item {number}\n  goes on" for number in range(6)]
    assert [text for _, text in cut("\n".join(items), size=10)] == ["\n".join(items[n : n + 2]) for n in (0, 2, 4)]
    nested = "- outer\n\n  - first inner item\n  - second inner item"
    assert [text for _, text in cut(nested, size=6)] == ["- outer\n\n  - first inner item", "  - second inner item"]


def test_a_cut_table_repeats_its_header_in_the_context_and_never_in_the_slice() -> None:
    table = "| key | value |\n|-----|-------|\n" + "".join(f"| k{n} | v{n} |\n" for n in range(12))
    slices = structure(Document(id="d", text=f"# T\n\n{table}", media_type=MARKDOWN), size=30)
    assert len(slices) > 2
    assert [one.context for one in slices] == ["", *["| key | value |\n|-----|-------|"] * (len(slices) - 1)]
    assert all("key" not in table[one.start - 5 : one.end - 5] for one in slices[1:])
    assert all(one.heading == ("T",) for one in slices)


def test_a_header_that_would_crowd_out_the_rows_is_not_repeated() -> None:
    table = "| " + "name " * 30 + "|\n|---|\n" + "| row |\n" * 30
    slices = structure(Document(id="d", text=table, media_type=MARKDOWN), size=40)
    assert {one.context for one in slices} == {""}


def test_a_long_fence_is_cut_at_blank_lines_before_the_least_indented() -> None:
    part = "def f():\n    a = 1\n\n    return a\n"
    fence = f"```\n{part}\n{part}\n{part}```"
    texts = [text for _, text in cut(fence, size=24)]
    assert texts == [f"```\n{part}\n{part}".rstrip(), f"{part}```"]


def test_sentences_end_at_their_ends_and_not_at_abbreviations() -> None:
    text = "Dr. A. Smith wrote it, e.g. here. Then it rained! 食べ物。飲み物。 Version 2. x is small."
    parts = [part for _, part in cut(text, "text/plain", size=14)]
    assert parts == ["Dr. A. Smith wrote it, e.g. here.", "Then it rained! 食べ物。", "飲み物。 Version 2. x is small."]


def test_records_of_one_line_each_are_cut_between_lines() -> None:
    log = "\n".join(f"User: hello. How are you {n}?" for n in range(8))
    assert all(part.startswith("User:") and part.endswith("?") for _, part in cut(log, "text/plain", size=20))


@pytest.mark.parametrize(
    "whole", ["e\u0301\u0308", "👩\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪", "\r\n", "\u1100\u1161\u11a8", "नि"]
)
def test_a_character_of_several_parts_is_never_cut(whole: str) -> None:
    text = f"x{whole}" * 30
    slices = structure(
        Document(id="d", text=text), size=7, token_starts=lambda source: range(len(source))
    )  # one token for each code point
    edges = {one.start for one in slices} | {one.end for one in slices}
    inside = {place for start in range(1, len(text), len(whole) + 1) for place in range(start + 1, start + len(whole))}
    assert len(slices) > 8
    assert edges.isdisjoint(inside)


@pytest.mark.parametrize("text", ["QUJD" * 25_000, "." * 100_000, "e" + "\u0301" * 100_000, "a" + " " * 100_000 + "b"])
def test_a_run_without_a_word_is_cut_all_the_same(text: str) -> None:
    slices = structure(Document(id="d", text=text), size=10, token_starts=lambda source: [0])
    assert all(one.end - one.start <= 10 * 32 for one in slices)


def test_the_measure_is_the_callers() -> None:
    text = "aa bb cc dd"
    by_character = structure(Document(id="d", text=text), size=5, token_starts=lambda source: range(len(source)))
    assert [text[one.start : one.end] for one in by_character] == ["aa bb", "cc dd"]


def test_a_size_below_one_names_the_number() -> None:
    with pytest.raises(ConfigError, match="0 tokens"):
        structure(Document(id="d", text="text"), size=0)


@pytest.mark.promise("D50")
def test_a_long_document_becomes_passages_of_about_the_default_size() -> None:
    text = "\n\n".join("A sentence of just seven words here. " * 10 for _ in range(50))
    counts = [len(word_starts(part)) for _, part in cut(text)]
    assert len(counts) > 10
    assert all(120 <= count <= 240 for count in counts)


def test_rst_titles_give_levels_by_their_order_and_literals_are_no_titles() -> None:
    text = (
        "====\nBook\n====\n\nOne\n===\n\nsee::\n\n    Lit\n    ---\n\nDeep\n----\nx\n\n"
        "Two\n===\n\n-----\n\n.. note::\n\n   kept"
    )
    assert cut(text, "text/x-rst; charset=utf-8") == [
        (("Book", "One"), "====\nBook\n====\n\nOne\n===\n\nsee::\n\n    Lit\n    ---"),
        (("Book", "One", "Deep"), "Deep\n----\nx"),
        (("Book", "Two"), "Two\n===\n\n-----\n\n.. note::\n\n   kept"),
    ]


PYTHON = '''"""A module."""

import os


class Key:
    """A key."""

    def __init__(self):
        self.value = 1

    # Turned once a day.
    @cached
    def rotate(self, by):
        first = by + 1

        return first


def free():
    return 2
'''


def test_code_is_cut_before_definitions_with_their_comments_and_names_what_encloses() -> None:
    passages = cut(PYTHON, "text/x-python", size=24)
    assert [heading for heading, _ in passages] == [(), ("class Key", "def rotate"), ("def free",)]
    assert passages[1][1].startswith("    # Turned once a day.\n    @cached\n    def rotate")
    assert passages[1][1].endswith("return first")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("export default async function load(x) {", "function load"),
        ("func (s *Server) Serve(w int) {", "func Serve"),
        ("pub(crate) fn turn<T>(x: T) -> T {", "fn turn"),
        ("impl<T> Wheel for T {", "impl Wheel"),
        ("public abstract class Wheel extends Part {", "class Wheel"),
        ("class Wheel < Part", "class Wheel"),
        ("namespace app.core {", "namespace app.core"),
    ],
)
def test_definitions_of_many_languages_are_known(line: str, name: str) -> None:
    assert headings(f"{line}\n    body;\n}}", "text/x-any") == [(name,)]


@pytest.mark.parametrize("line", ["class methods are fine", "function of the wheel", "x = class_(1)", "import fn"])
def test_a_sentence_about_a_class_is_no_definition(line: str) -> None:
    assert headings(line, "text/x-any") == [()]


def test_a_passage_of_several_definitions_is_named_after_what_encloses_them_all() -> None:
    methods = "\n".join(f"    def step{number}(self):\n        return {number}\n" for number in range(3))
    ((heading, _),) = cut(f"class Ladder:\n{methods}", "text/x-python", size=400)
    assert heading == ("class Ladder",)
    ((heading, _),) = cut("def one():\n    return 1\n\n\ndef two():\n    return 2\n", "text/x-python", size=400)
    assert heading == ()
    ((heading, _),) = cut("def one():\n    return 1\n\n\nONE = one()\n", "text/x-python", size=400)
    assert heading == ("def one",)
