"""JSON as lines that can be found and cited."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wellhead.backends.readers.formats import read_bytes
from wellhead.backends.readers.json_text import read_json, read_json_lines
from wellhead.backends.readers.reading import Reading
from wellhead.errors import DocumentError


def lines(source: str) -> str:
    return read_json(source.encode(), "a.json").text


@pytest.mark.promise("B53")
def test_a_list_of_records_becomes_blocks_of_lines() -> None:
    source = '[{"id": 1, "at": {"city": "Köln", "tags": ["a", 2, null, true]}, "none": null, "e": ""}, {"id": 2}]'
    assert lines(source) == "id: 1\nat.city: Köln\nat.tags: a, 2, true\n\nid: 2\n"


def test_objects_and_scalars() -> None:
    assert lines('{"a": {"b": [{"c": 1}, {"c": 2}]}}') == "a.b.0.c: 1\na.b.1.c: 2\n"
    assert lines('["x", 1, false]') == "x\n1\nfalse\n"
    assert lines('"word"') == "word\n"
    assert lines("[]") == ""


def test_nothing_is_rewritten_or_dropped() -> None:
    assert lines('{"k": 1, "k": 2}') == "k: 1\nk: 2\n"
    assert lines('{"v": 1.10, "n": NaN, "i": -Infinity}') == "v: 1.10\nn: NaN\ni: -Infinity\n"
    assert lines(f'{{"big": {"9" * 5000}}}') == f"big: {'9' * 5000}\n"
    assert lines(r'{"half": "\ud800", "nul": "a\u0000b"}') == "half: \ufffd\nnul: a\ufffdb\n"


def test_long_values_keep_their_lines_but_no_blank_ones() -> None:
    assert lines(r'[{"t": "one\n\n  two\n"}, {"t": "x"}]') == "t: one\n  two\n\nt: x\n"


def test_json_lines() -> None:
    source = '{"a": "x\u2028y"}\r\n\n{"b": [1, 2]}\n"s"\n'
    assert read_json_lines(source.encode(), "a.jsonl").text == "a: x\u2028y\n\nb: 1, 2\ns\n"


@pytest.mark.promise("B47")
def test_malformed_json_is_refused_with_its_place() -> None:
    with pytest.raises(DocumentError) as caught:
        read_json(b'{\n "a": 1,\n "b" 2}', "bad.json")
    assert (caught.value.where, caught.value.why[:17]) == ("bad.json", "line 3, column 6:")
    with pytest.raises(DocumentError) as caught:
        read_json_lines(b'{"a": 1}\n\n{"a": }\n{"a": 3}\n', "bad.jsonl")
    assert (caught.value.where, caught.value.why[:17]) == ("bad.jsonl", "line 3, column 7:")


@pytest.mark.parametrize("source", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_nesting_without_end_is_refused(source: str) -> None:
    with pytest.raises(DocumentError, match=r"deeply|malformed"):
        lines(source)


def test_deep_values_are_flattened() -> None:
    depth = 400
    assert lines('{"a":' * depth + "1" + "}" * depth) == "a." * 49 + "a…" + ".a" * 50 + ": 1\n"
    assert lines('{"a":' * 100 + "1" + "}" * 100) == ".".join("a" * 100) + ": 1\n"


def test_a_long_key_is_shown_clipped() -> None:
    assert lines(f'{{"{"k" * 300}": {{"z": 1}}}}') == "k" * 79 + "….z: 1\n"
    assert lines(f'{{"{"k" * 80}": 1}}') == "k" * 80 + ": 1\n"


def test_a_long_key_over_many_values_does_not_outgrow_the_file() -> None:
    items = ",".join(['{"z":1}'] * 3000)
    source = f'{{"{"k" * 12_000}": [{items}]}}'
    assert len(lines(source)) < 12 * len(source)


@pytest.mark.promise("B47")
@pytest.mark.parametrize("read", [read_json, read_json_lines])
def test_json_that_is_nearly_all_keys_is_refused_with_its_place(read: Callable[[bytes, str], Reading]) -> None:
    keys = [letter * 66 for letter in "abc"]
    inner = "[" + ",".join(["[1,[]]"] * 5000) + "]"
    source = "".join(f'{{"{key}":' for key in keys) + inner + "}" * 3
    with pytest.raises(DocumentError, match="nearly all keys") as caught:
        read(source.encode(), "keys.json")
    assert caught.value.where == "keys.json"
    assert f"{keys[0]}.{keys[1][:31]}" in caught.value.why


@pytest.mark.promise("B47")
def test_one_malformed_line_refuses_its_file_by_name() -> None:
    """A JSONL file with one broken line must not be indexed in part, as if it were whole."""
    with pytest.raises(DocumentError, match=r"a\.jsonl\s+why: line 2, column \d+"):
        read_bytes(b'{"a": 1}\n{"a": \n{"a": 3}\n', "a.jsonl")
