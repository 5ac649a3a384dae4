"""Writes Markdown block by block: white space, lists, quotes, and text that must not become structure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from wellhead.backends.readers.notebook import fence
from wellhead.backends.readers.tables import pipe_table

__all__ = ["Writer"]

_DEEPEST = 12  # lists and quotes nested deeper are written at this depth
_SPACES = re.compile(r"[ \t\n\r\f\xa0]+")
_INVISIBLE = re.compile("[\u00ad\u200b\ufeff]")
_STRUCTURE = re.compile(r"(?:#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|\||<(?=[A-Za-z/!?])|`{3}|~{3}|[-=_*:|][-=_*:|\s]*$)")
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_CLOSING = re.compile(r"(?<=\s)(#+)$")
_TICKS = re.compile("`+")


class _Container(msgspec.Struct):
    """A list item, a definition or a quote: `first` stands before its first line, `rest` before the others."""

    kind: str
    first: str
    rest: str
    begun: bool = False


class Writer:
    """Collects inline text, and turns it into a block whenever one ends."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._inline: list[str] = []
        self._containers: list[_Container] = []
        self._last: list[_Container] = []
        self._last_kind = ""
        self._too_deep = 0
        self._heading = 0

    def finish(self) -> str:
        self.end_block()
        return "".join(self._parts) + "\n" if self._parts else ""

    def text(self, text: str) -> None:
        self._inline.append(_SPACES.sub(" ", _INVISIBLE.sub("", text)))

    def line_break(self) -> None:
        self._inline.append(" " if self._heading else "\n")

    def code(self, text: str) -> None:
        """Inline code; its delimiter is longer than any run of backticks inside."""
        text = " ".join(text.split())
        if text:
            ticks = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
            pad = " " if text.startswith("`") or text.endswith("`") else ""
            self._inline.append(f"{ticks}{pad}{text}{pad}{ticks}")

    def begin_heading(self, level: int) -> None:
        self.end_block()
        self._heading = level

    def end_heading(self) -> None:
        self.end_block()
        self._heading = 0

    def end_block(self) -> None:
        """The inline text so far becomes a paragraph (or, within a heading, the heading)."""
        lines = [line.strip() for line in "".join(self._inline).split("\n")]
        lines = [_SPACES.sub(" ", line) for line in lines if line]
        self._inline.clear()
        if lines and self._heading:
            title = _CLOSING.sub(r"\\\1", " ".join(lines))
            self._write([f"{'#' * self._heading} {title}"], "heading")
        elif lines:
            self._write(list(map(_escaped, lines)), "paragraph")

    def space(self) -> None:
        """A block boundary that must not end the heading it stands in."""
        if self._heading:
            self._inline.append(" ")
        else:
            self.end_block()

    def code_block(self, code: str, language: str) -> None:
        self.end_heading()
        if code.strip():
            self._write(fence(code, language).split("\n"), "code")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self.end_heading()
        if rows:
            self._write(pipe_table(rows).rstrip("\n").split("\n"), "table")

    def term(self) -> None:
        """What was collected is the term of a definition list: its definition follows without a blank line."""
        self.end_block()
        self._last_kind = "term"

    def open(self, kind: str, first: str, rest: str) -> None:
        self.end_block()
        if len(self._containers) < _DEEPEST:
            self._containers.append(_Container(kind, first, rest))
        else:
            self._too_deep += 1

    def close(self) -> None:
        self.end_block()
        if self._too_deep:
            self._too_deep -= 1
        elif self._containers:
            self._containers.pop()

    def _write(self, lines: list[str], kind: str) -> None:
        if self._parts:
            self._parts.append(self._gap())
        rest = "".join(container.rest for container in self._containers)
        first = "".join(container.rest if container.begun else container.first for container in self._containers)
        self._parts.append("\n".join([first + lines[0], *((rest + line).rstrip() for line in lines[1:])]))
        for container in self._containers:
            container.begun = True
        self._last, self._last_kind = list(self._containers), kind

    def _gap(self) -> str:
        """A blank line between blocks (marked inside a quote); none between the items of a list."""
        begins = next((container.kind for container in self._containers if not container.begun), "")
        after_item = bool(self._last) and self._last[-1].kind == "item"
        if begins == "item" and after_item and self._last_kind == "paragraph":
            return "\n"
        after_definition = bool(self._last) and self._last[-1].kind == "definition"
        if begins == "definition" and (self._last_kind == "term" or after_definition):
            return "\n"
        shared = [new for new, old in zip(self._containers, self._last, strict=False) if new is old]
        return "\n" + "".join(container.rest for container in shared).rstrip() + "\n"


def _escaped(line: str) -> str:
    """`line` with a backslash where its beginning would be taken for structure."""
    if _STRUCTURE.match(line):
        return "\\" + line
    return _NUMBERED.sub(r"\1\\\2", line, count=1) if _NUMBERED.match(line) else line
