"""HTML tables as rows of plain cells: spans are filled, header rows joined into one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from wellhead.backends.readers.html_visible import Sight, children

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

__all__ = ["caption_of", "is_data_table", "rows_of"]

_WIDEST = 200  # columns that one cell may span
_BLOCKY = frozenset({"table", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"})
_PARTED = {"li": "; ", "tr": "; ", "tbody": "; ", "tfoot": "; ", "td": ", ", "th": ", "}
_BREAKING = frozenset({"p", "div", "br", "tr", "ul", "ol", "dl", "dt", "dd", "pre", "h1", "h2", "h3", "h4", "h5", "h6"})


def is_data_table(table: LexborNode) -> bool:
    """True when it has header cells, or at least two rows and columns of plain cells; else it is mere layout."""
    if table.attributes.get("role") in ("presentation", "none"):
        return False
    rows = wide = 0
    blocky = False
    for node in _own(table):
        if node.tag in ("th", "thead"):
            return True
        blocky = blocky or node.tag in _BLOCKY
        rows += node.tag == "tr"
        wide += node.tag == "td" and node.prev is not None and not blocky and _follows(node)
    return not blocky and rows > 1 and wide > 0


def caption_of(table: LexborNode, sight: Sight) -> str:
    caption = next((node for node in _own(table) if node.tag == "caption"), None)
    return _cell_text(caption, sight) if caption is not None and sight.sees(caption, inside=True) else ""


def rows_of(table: LexborNode, sight: Sight) -> list[list[str]]:
    """The table's rows, the header first.

    A cell that spans rows is repeated in each, so that a row can stand alone; one that spans columns is repeated in
    the header only. Several header rows become one. Rows and last columns without text are dropped.
    """
    headers: list[list[str]] = []
    rows: list[list[str]] = []
    carried: dict[int, tuple[int, str]] = {}  # by column: rows still to fill, and with what
    for row, in_head in _own_rows(table, sight):
        cells = _cells(row, sight, carried, header=in_head, first=not (headers or rows))
        (headers if in_head and not rows else rows).append(cells)
    kept = [row for row in (_joined(headers), *rows) if any(row)]
    width = max((len(row) - next(n for n, cell in enumerate(reversed(row)) if cell) for row in kept), default=0)
    return [row[:width] for row in kept]


def _own(table: LexborNode) -> Iterator[LexborNode]:
    """Every element of this table, in order; a table inside is seen but not entered."""
    stack = list(children(table))
    while stack:
        node = stack.pop()
        yield node
        if node.tag != "table":
            stack.extend(children(node))


def _own_rows(table: LexborNode, sight: Sight) -> Iterator[tuple[LexborNode, bool]]:
    for node in _own(table):
        if node.tag != "tr" or not sight.sees(node, inside=True):
            continue
        parent = node.parent
        if parent is None or parent is table or sight.sees(parent, inside=True):
            yield node, parent is not None and parent.tag == "thead"


def _cells(
    row: LexborNode, sight: Sight, carried: dict[int, tuple[int, str]], *, header: bool, first: bool
) -> list[str]:
    cells: list[str] = []
    for cell in reversed(list(children(row))):
        if cell.tag not in ("td", "th") or not sight.sees(cell, inside=True):
            continue
        _fill(cells, carried)
        text = _cell_text(cell, sight)
        for n in range(_span(cell, "colspan", _WIDEST)):
            shown = text if n == 0 or header or (first and cell.tag == "th") else ""
            down = _span(cell, "rowspan", 65_534)
            if down > 1:
                carried[len(cells)] = (down - 1, shown)
            cells.append(shown)
    _fill(cells, carried)
    return cells


def _fill(cells: list[str], carried: dict[int, tuple[int, str]]) -> None:
    """Put what hangs down from the rows above into the next columns."""
    while len(cells) in carried:
        column = len(cells)
        left, text = carried.pop(column)
        if left > 1:
            carried[column] = (left - 1, text)
        cells.append(text)


def _span(cell: LexborNode, name: str, most: int) -> int:
    value = (cell.attributes.get(name) or "").strip()
    return min(most, max(1, int(value))) if value.isdecimal() and len(value) < 6 else 1


def _joined(headers: list[list[str]]) -> list[str]:
    width = max(map(len, headers), default=0)
    columns = [[row[n] for row in headers if n < len(row) and row[n]] for n in range(width)]
    return [" ".join(dict.fromkeys(column)) for column in columns]


def _cell_text(cell: LexborNode, sight: Sight) -> str:
    """The cell in one line: list items and inner rows parted by semicolons, other blocks by a space."""
    parts: list[str] = []
    stack = list(children(cell))
    while stack:
        node = stack.pop()
        if node.is_text_node:
            parts.append(node.text_content or "")
            continue
        if not sight.sees(node, inside=True):
            continue
        parts.append(_before(node))
        stack.extend(children(node))
    text = " ".join("".join(parts).replace("\u00ad", "").replace("\u200b", "").split())
    return text.replace(" ; ", "; ").replace(" , ", ", ")


def _before(node: LexborNode) -> str:
    tag = node.tag or ""
    if tag in _PARTED:
        return _PARTED[tag] if _follows(node) else " "
    if tag == "img":
        return f" {node.attributes.get('alt') or ''} "
    return " " if tag in _BREAKING else ""


def _follows(node: LexborNode) -> bool:
    before = node.prev
    while before is not None and before.tag not in _PARTED and before.tag != "thead":
        before = before.prev
    return before is not None
