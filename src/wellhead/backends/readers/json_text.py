"""JSON becomes lines of `key: value`, one block a record, so that a record is found and cited as text.

Numbers stay as they are written (`1.10`, forty digits, `NaN`), repeated keys are all kept, nulls and empty values are
left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from wellhead.backends.readers.decode import clean, decode
from wellhead.backends.readers.reading import Reading
from wellhead.errors import DocumentError

__all__ = ["parse_json", "read_json", "read_json_lines"]

# Objects are tuples of pairs (a dict would drop repeated keys), arrays are lists.
_Value: TypeAlias = "str | bool | list[_Value] | tuple[tuple[str, _Value], ...] | None"


def read_json(data: bytes, name: str) -> Reading:
    """One JSON value: a list gives one block (or, for a scalar, one line) per item, an object a single block.

    Nested keys are joined by dots, items of nested lists of objects are numbered from 0, lists of scalars are joined
    by ", ".

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits; malformed JSON (names line and column); nested too deeply.
    """
    decoded = decode(data, where=name)
    value = _parse(decoded.text, name)
    records = value if isinstance(value, list) else [value]
    return Reading(text=_text(records), metadata=decoded.metadata, media_type="text/plain")


def read_json_lines(data: bytes, name: str) -> Reading:
    """One JSON value per line (JSONL, NDJSON), each a record; blank lines are passed over.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits; a malformed line (names it and the column): the whole file is refused.
    """
    decoded = decode(data, where=name)
    lines = enumerate(decoded.text.split("\n"), 1)
    records = [_parse(line, name, line=number) for number, line in lines if line.strip()]
    return Reading(text=_text(records), metadata=decoded.metadata, media_type="text/plain")


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


def _text(records: Iterable[_Value]) -> str:
    """Scalars one a line; each object (or list) is a block of its own between blank lines."""
    parts: list[str] = []
    for record in records:
        block = "\n".join(_lines(record))
        if block:
            apart = "\n" if parts and isinstance(record, (list, tuple)) else ""
            parts.append(f"{apart}{block}\n")
    return clean("".join(parts))


def _lines(record: _Value) -> Iterator[str]:
    """The leaves in order, on an explicit stack: the depth of a file must not be the depth of our calls."""
    stack: list[tuple[str, _Value]] = [("", record)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, tuple):
            stack.extend((f"{key}.{name}" if key else name, item) for name, item in reversed(value))
        elif isinstance(value, list) and any(isinstance(item, (list, tuple)) for item in value):
            stack.extend((f"{key}.{n}" if key else str(n), value[n]) for n in reversed(range(len(value))))
        else:
            shown = ", ".join(filter(None, map(_show, value))) if isinstance(value, list) else _show(value)
            if shown:
                yield f"{key}: {shown}" if key else shown


def _show(value: object) -> str:
    """A scalar as text; blank lines within it are closed up, as they part records."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "\n".join(filter(None, map(str.rstrip, str(value).split("\n")))) if value is not None else ""
