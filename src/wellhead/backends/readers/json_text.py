"""JSON becomes lines of `key: value`, one block a record, so that a record is found and cited as text.

Numbers stay as they are written (`1.10`, forty digits, `NaN`), repeated keys are all kept, nulls and empty values are
left out. The path of keys before each value is clipped where it is long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from wellhead.backends.readers.decode import clean, decode
from wellhead.backends.readers.reading import Reading
from wellhead.errors import DocumentError

__all__ = ["parse_json", "read_json", "read_json_lines"]

_LONGEST_KEY = 80  # characters shown
_LONGEST_PATH = 200
# Keys repeat on every line. Ordinary files grow less than threefold; what outgrows this would be keys and nothing else.
_MOST_GROWTH = 20
_ALWAYS = 10_000

# Objects are tuples of pairs (a dict would drop repeated keys), arrays are lists.
_Value: TypeAlias = "str | bool | list[_Value] | tuple[tuple[str, _Value], ...] | None"


def read_json(data: bytes, name: str) -> Reading:
    """One JSON value: a list gives one block (or, for a scalar, one line) per item, an object a single block.

    Nested keys are joined by dots, items of nested lists of objects are numbered from 0, lists of scalars are joined
    by ", ".

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits; malformed JSON (names line and column); nested too deeply; keys so long and
            so often repeated that the text would be 20 times the file.
    """
    decoded = decode(data, where=name)
    value = _parse(decoded.text, name)
    records = value if isinstance(value, list) else [value]
    return Reading(text=_text(records, len(data), name), metadata=decoded.metadata, media_type="text/plain")


def read_json_lines(data: bytes, name: str) -> Reading:
    """One JSON value per line (JSONL, NDJSON), each a record; blank lines are passed over.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits; a malformed line (names it and the column): the whole file is refused; or
            nearly all keys, as in `read_json`.
    """
    decoded = decode(data, where=name)
    lines = enumerate(decoded.text.split("\n"), 1)
    records = [_parse(line, name, line=number) for number, line in lines if line.strip()]
    return Reading(text=_text(records, len(data), name), metadata=decoded.metadata, media_type="text/plain")


def parse_json(text: str, name: str, *, line: int | None = None) -> object:
    """`json.loads`, with its errors as a `DocumentError` that names line and column."""
    return _loads(json.JSONDecoder(), text, name, line)


def _parse(text: str, name: str, *, line: int | None = None) -> _Value:
    decoder = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)
    value: _Value = _loads(decoder, text, name, line)  # type: ignore[assignment]
    return value


def _loads(decoder: json.JSONDecoder, text: str, name: str, line: int | None) -> object:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        raise DocumentError("malformed JSON", where=name, why=f"{place}: {error.msg}", fix="mend that line") from error
    except RecursionError as error:
        raise DocumentError("JSON nested too deeply", where=name, why="brackets within brackets without end") from error
    except ValueError as error:  # a number with thousands of digits
        raise DocumentError("JSON that cannot be read", where=name, why=str(error)) from error


def _text(records: Iterable[_Value], size: int, name: str) -> str:
    """Scalars one a line; each object (or list) is a block of its own between blank lines. `size`: bytes read."""
    parts: list[str] = []
    room = _MOST_GROWTH * size + _ALWAYS
    for record in records:
        lines: list[str] = []
        for key, shown in _leaves(record):
            lines.append(f"{key}: {shown}" if key else shown)
            room -= len(lines[-1])
            if room < 0:
                raise _outgrown(key, size, name)
        block = "\n".join(lines)
        if block:
            apart = "\n" if parts and isinstance(record, (list, tuple)) else ""
            parts.append(f"{apart}{block}\n")
    return clean("".join(parts))


def _outgrown(key: str, size: int, name: str) -> DocumentError:
    return DocumentError(
        "JSON that is nearly all keys",
        where=name,
        why=f"with the keys before every value its {size:,} bytes became over {_MOST_GROWTH} times as many, at {key!r}",
        fix="shorten its keys, or exclude it",
    )


def _leaves(record: _Value) -> Iterator[tuple[str, str]]:
    """The leaves in order with their paths, on an explicit stack: a file's depth must not be that of our calls."""
    stack: list[tuple[str, _Value]] = [("", record)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, tuple):
            stack.extend((_path(key, name), item) for name, item in reversed(value))
        elif isinstance(value, list) and any(isinstance(item, (list, tuple)) for item in value):
            stack.extend((_path(key, str(n)), value[n]) for n in reversed(range(len(value))))
        else:
            shown = ", ".join(filter(None, map(_show, value))) if isinstance(value, list) else _show(value)
            if shown:
                yield key, shown


def _path(above: str, key: str) -> str:
    """The key under those above it; of a long path the middle is left out."""
    shown = key if len(key) <= _LONGEST_KEY else f"{key[: _LONGEST_KEY - 1]}…"
    path = f"{above}.{shown}" if above else shown
    half = _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[: half - 1]}…{path[-half:]}"


def _show(value: object) -> str:
    """A scalar as text; blank lines within it are closed up, as they part records."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "\n".join(filter(None, map(str.rstrip, str(value).split("\n")))) if value is not None else ""
