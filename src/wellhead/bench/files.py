"""Files of lines, as every form of labels has them: read with the place of each line, written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from wellhead.errors import StoreError, UsageError

__all__ = ["json_objects", "read_text", "refuse_existing", "text_lines", "write_whole"]


def text_lines(file: Path, *, fix: str = "") -> Iterator[tuple[str, str]]:
    """The non-blank lines of a file, each with its place (`labels.jsonl, line 3`).

    Only a line feed ends a line, for a text in JSON may hold other separators.

    Args:
        fix: what to do about a file that cannot be read.

    Raises:
        UsageError: the file cannot be read, or a line is not UTF-8.
    """
    for number, raw in enumerate(_content(file, fix).split(b"\n"), start=1):
        where = f"{file}, line {number}"
        if raw.strip():
            yield where, _decoded(raw.removesuffix(b"\r"), where)


def json_objects(file: Path, *, fix: str = "") -> Iterator[tuple[str, dict[str, object]]]:
    """The JSON object of each line, with its place; `fix` as for `text_lines`.

    Raises:
        UsageError: as `text_lines`; a line that is no JSON object.
    """
    for where, line in text_lines(file, fix=fix):
        try:
            yield where, msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UsageError(
                "malformed JSON", where=where, why=why, fix="every line must be one JSON object"
            ) from error


def read_text(file: Path) -> str:
    """The whole file, without a byte order mark.

    Raises:
        UsageError: it cannot be read, or is not UTF-8 (with the line).
    """
    content = _content(file)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _not_utf8(f"{file}, line {line}", error) from error


def write_whole(file: Path, text: str) -> None:
    """Write a file in one step: whoever reads it sees the old content or the new one, never a part.

    Raises:
        UsageError: its folder is not there.
        StoreError: it cannot be written; the old content stays.
    """
    target = file.resolve()
    if not target.parent.is_dir():
        raise UsageError(f"cannot write {file.name}", where=str(file), why="its folder is not there", fix="make it")
    made = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with made.open("xb") as opened:
            opened.write(text.encode("utf-8"))
            opened.flush()
            os.fsync(opened.fileno())
        made.replace(target)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise StoreError(f"cannot write {file.name}", where=str(file), why=error.strerror or str(error)) from error


def refuse_existing(path: Path, *, fix: str) -> None:
    """Refuse to write over what is there.

    Raises:
        UsageError: there is a file, or a folder that is not empty.
    """
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise UsageError(
            f"{path.name} is there already",
            where=str(path),
            why="what it holds would be lost",
            fix=fix,
        )


def _content(file: Path, fix: str = "") -> bytes:
    try:
        return file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"cannot read {file.name}", where=str(file), why=why, fix=fix) from error


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(where, error) from error


def _not_utf8(where: str, error: UnicodeDecodeError) -> UsageError:
    return UsageError("the file is not UTF-8", where=where, why=str(error), fix="save it as UTF-8")
