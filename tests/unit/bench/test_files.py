"""Lines with their places, and files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from wellhead.bench.files import json_objects, read_text, refuse_existing, text_lines, write_whole
from wellhead.errors import StoreError, UsageError


def test_only_a_line_feed_ends_a_line_and_blank_ones_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + "a\u2028b\r\n\n \nc\x85d".encode())
    assert list(text_lines(file)) == [(f"{file}, line 1", "a\u2028b"), (f"{file}, line 4", "c\x85d")]


def test_bytes_that_are_no_utf8_are_named_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "some.txt"
    file.write_bytes(b"good\ncaf\xe9\n")
    for read in (lambda: list(text_lines(file)), lambda: read_text(file)):
        with pytest.raises(UsageError, match="not UTF-8") as caught:
            read()
        assert caught.value.where == f"{file}, line 2"


@pytest.mark.parametrize("line", ['{"a": ', "[1]", "7", "[" * 100_000, '{"a": "\\ud800"}'])
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text("{}\n" + line)
    with pytest.raises(UsageError, match="malformed JSON") as caught:
        list(json_objects(file))
    assert caught.value.where == f"{file}, line 2"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(UsageError, match="cannot read") as caught:
            read_text(path)
        assert caught.value.where == str(path)


def test_what_is_written_is_there_whole_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    write_whole(file, "first\r\n")
    write_whole(file, "é\n")
    assert file.read_bytes() == "é\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_whole(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_failure_leaves_the_old_content_and_no_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.txt"
    file.write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wellhead.bench.files.os.fsync", full)
    with pytest.raises(StoreError, match="cannot write") as caught:
        write_whole(file, "new")
    assert caught.value.why == "No space left on device"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out.txt", "old")]


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write_whole(tmp_path / "none" / "out.txt", "x")
    assert not (tmp_path / "none").exists()


def test_what_is_there_is_not_written_over_but_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    refuse_existing(tmp_path, fix="no")
    refuse_existing(tmp_path / "new", fix="no")
    (tmp_path / "a").write_text("")
    for path in (tmp_path, tmp_path / "a"):
        with pytest.raises(UsageError, match="there already") as caught:
            refuse_existing(path, fix="say so")
        assert caught.value.fix == "say so"
