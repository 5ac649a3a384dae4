"""CSV and TSV become a Markdown pipe table, which the chunker can cut without losing its header."""

from __future__ import annotations

import csv
import io
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wellhead.backends.readers.decode import decode
from wellhead.backends.readers.reading import Reading
from wellhead.errors import DocumentError

__all__ = ["pipe_table", "read_csv"]

_DELIMITERS = ",;\t|"
_LIMIT_LOCK = threading.Lock()
_SAMPLE = 1 << 16  # characters looked at to find the delimiter


def read_csv(data: bytes, name: str) -> Reading:
    """Rows of cells; the delimiter (comma, semicolon, tab, bar) is the one that gives the steadiest rows.

    The first row is the header. Ragged rows keep every cell; the header grows blank cells for them. Where the
    quoting does not add up, quotes are taken as ordinary characters, so that no cell swallows the rest of the file.

    Raises:
        FileSkipped: the bytes are binary.
        DocumentError: no encoding fits, or rows that the csv module cannot take apart.
    """
    decoded = decode(data, where=name)
    rows = _rows(decoded.text, _delimiter(decoded.text), name)
    return Reading(text=pipe_table(rows), metadata=decoded.metadata, media_type="text/markdown")


def pipe_table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose header is the first row; "" for no row. Shorter rows are filled with blank cells."""
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [_line([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([lines[0], _line(["---"] * width), *lines[1:]]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def _delimiter(text: str) -> str:
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r")) + 1] or sample
    # Ties go to the earlier one in the list.
    return max(_DELIMITERS, key=lambda delimiter: _steadiness(sample, delimiter))


def _steadiness(sample: str, delimiter: str) -> tuple[int, int]:
    """How many rows have the commonest width above one cell, and that width."""
    try:
        widths = Counter(len(row) for row in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter) if row)
    except csv.Error:
        return 0, 0
    return max(((count, width) for width, count in widths.items() if width > 1), default=(0, 0))


def _rows(text: str, delimiter: str, name: str) -> list[list[str]]:
    try:
        return _parse(text, delimiter, quoted=True)
    except csv.Error:
        pass  # unbalanced quotes: read them literally
    try:
        return _parse(text, delimiter, quoted=False)
    except csv.Error as error:
        raise DocumentError(
            "the table cannot be read", where=name, why=str(error), fix="check its quotes and delimiters"
        ) from error


def _parse(text: str, delimiter: str, *, quoted: bool) -> list[list[str]]:
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    with _cells_up_to(len(text)):
        return [row for row in reader if any(cell.strip() for cell in row)]


@contextmanager
def _cells_up_to(characters: int) -> Iterator[None]:
    """Let a cell be as long as its file. The limit is the whole process's: it is put back, one table at a time."""
    with _LIMIT_LOCK:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, characters))
        try:
            yield
        finally:
            csv.field_size_limit(before)
