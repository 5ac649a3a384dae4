"""Jupyter notebooks become Markdown: prose as it is, code and its text outputs in fences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from wellhead.backends.readers.decode import clean, decode
from wellhead.backends.readers.json_text import parse_json
from wellhead.backends.readers.markdown import first_heading
from wellhead.backends.readers.reading import Reading
from wellhead.errors import DocumentError

__all__ = ["fence", "read_notebook"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TICKS = re.compile("`{3,}")


def read_notebook(data: bytes, name: str) -> Reading:
    """A notebook of format 3 or later. Outputs are kept whole; images and HTML outputs are left out.

    The title is the first level-1 heading, else the notebook's own `title`.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: malformed JSON, or no notebook.
    """
    decoded = decode(data, where=name)
    book = parse_json(decoded.text, name)
    try:
        text = clean("\n\n".join(_blocks(book)))
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DocumentError(
            "no Jupyter notebook", where=name, why="its cells are not as the format says", fix="open and save it again"
        ) from error
    title = first_heading(text) or _metadata(book).get("title", "")
    return Reading(
        text=f"{text}\n" if text else "",
        title=clean(title) if isinstance(title, str) else "",
        metadata=decoded.metadata,
        media_type="text/markdown",
    )


def fence(code: str, language: str = "") -> str:
    """A fenced block; the fence is longer than any run of backticks inside."""
    ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(code))])
    return f"{ticks}{language}\n{code}\n{ticks}"


def _metadata(book: object) -> Mapping[str, object]:
    metadata = book.get("metadata") if isinstance(book, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def _language(book: object) -> str:
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        about = _metadata(book).get(part)
        if isinstance(about, Mapping) and isinstance(about.get(key), str):
            return "".join(about[key].split())
    return "python"


def _cells(book: object) -> list[Mapping[str, object]]:
    if not isinstance(book, Mapping):
        raise TypeError("not an object")
    cells = book["cells"] if "cells" in book else book["worksheets"][0]["cells"]
    if not isinstance(cells, list):
        raise TypeError("cells is no list")
    return cells


def _blocks(book: object) -> Iterator[str]:
    language = _language(book)
    for cell in _cells(book):
        source = _joined(cell.get("source", cell.get("input", ""))).strip("\r\n")
        if cell["cell_type"] == "code":
            yield from [fence(source, language)] if source.strip() else []
            yield from (fence(output) for output in _outputs(cell.get("outputs")) if output.strip())
        elif source.strip():
            yield source


def _outputs(outputs: object) -> Iterator[str]:
    for output in outputs if isinstance(outputs, list) else ():
        if output.get("output_type") in ("error", "pyerr"):
            yield f"{output.get('ename')}: {output.get('evalue')}"
        else:
            yield _COLOURS.sub("", _output_text(output)).strip("\r\n")


def _output_text(output: Mapping[str, object]) -> str:
    data = output.get("data", output)
    if not isinstance(data, Mapping) or any(str(kind).startswith(("image/", "png", "jpeg")) for kind in data):
        return ""  # its text is only the name of a figure
    return _joined(data.get("text/markdown") or data.get("text/plain") or data.get("text") or "")


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(map(str, source))
    if not isinstance(source, str):
        raise TypeError("source is neither text nor lines")
    return source
