"""What goes to the screen: data on stdout, talk on stderr, and nothing there that could act on a terminal.

A line is given in parts, each plain text or `(text, style)`. Retrieved text is untrusted: on a terminal control
characters are shown as escapes, never sent. Into a pipe or a file the text goes as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeAlias

import click

from wellhead.errors import StoreError

__all__ = [
    "INDENT",
    "Part",
    "StdoutError",
    "command",
    "counted",
    "excerpt",
    "is_terminal",
    "next_command",
    "one_line",
    "put",
    "put_json",
    "put_table",
    "say",
    "survive_any_encoding",
    "visible",
    "warn",
]

Part: TypeAlias = str | tuple[str, str]

STYLES: Mapping[str, Mapping[str, Any]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "cite": {"fg": "cyan", "bold": True},
    "strong": {"bold": True},
    "dim": {"dim": True},
}
EXCERPT_ROWS = 4
INDENT = "   "
# C0 and C1 controls but tab and newline, line separators, and the marks that turn the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class StdoutError(StoreError):
    """Stdout takes no more: a full disk, a failing device (a reader that has gone is a `BrokenPipeError`)."""


def put(*parts: Part) -> None:
    """Data: one line (or a few) to stdout."""
    with _writing():
        _write(sys.stdout, parts)


def say(*parts: Part) -> None:
    """Talk: one line (or a few) to stderr."""
    _write(sys.stderr, parts)


def warn(what: str, *, why: str = "", fix: str = "") -> None:
    """A warning to stderr, in the parts of an error."""
    say(("warning: ", "warning"), what)
    if why:
        say(f"  why: {why}")
    if fix:
        say(f"  mend: {fix}")


def next_command(*words: str) -> None:
    """Suggest on stderr what to run next."""
    say(("next: ", "dim"), command(*words))


def command(*words: str) -> str:
    """A `wellhead` command line, quoted for the shell."""
    return shlex.join(("wellhead", *words))


def counted(number: int, noun: str) -> str:
    """`1 document`, `2 documents`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def put_json(value: Mapping[str, object]) -> None:
    """One JSON object to stdout: indented on a terminal, one line elsewhere; ASCII where UTF-8 is not sure."""
    terminal = is_terminal(sys.stdout)
    encoding = str(getattr(sys.stdout, "encoding", "")).lower().replace("-", "")
    text = json.dumps(value, ensure_ascii=terminal or encoding != "utf8", indent=2 if terminal else None)
    with _writing():
        click.echo(text, file=sys.stdout)


def put_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows to stdout: aligned under their heads on a terminal; separated by tabs, without heads, elsewhere."""
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    if not is_terminal(sys.stdout):
        for row in cells:
            put("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, box=None, pad_edge=False)
    for row in cells:
        table.add_row(*(Text(visible(cell)) for cell in row))
    with _writing():
        Console(file=sys.stdout).print(table)


def excerpt(text: str) -> tuple[str, bool]:
    """A passage for the screen, indented; on a terminal its first rows only. And whether something is missing."""
    lines = text.strip("\r\n").splitlines()
    if not is_terminal(sys.stdout):
        return textwrap.indent("\n".join(lines), INDENT), False
    width = max(20, shutil.get_terminal_size().columns - len(INDENT) - 1)
    rows = [row for line in lines if line.strip() for row in textwrap.wrap(line.expandtabs(4), width)]
    return textwrap.indent("\n".join(rows[:EXCERPT_ROWS]), INDENT), len(rows) > EXCERPT_ROWS


def visible(text: str) -> str:
    """The text with every control character (but tab and newline) as a visible escape."""
    return _CONTROLS.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person looks at the stream."""
    return bool(stream and stream.isatty())


def survive_any_encoding() -> None:
    """Let a character that a stream cannot encode be written as an escape; it must not end the program."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutError("cannot write to stdout", why=error.strerror or str(error)) from error


def _write(stream: TextIO | None, parts: Sequence[Part]) -> None:
    if stream is None:  # closed by the parent; click would write to the other one
        return
    terminal = is_terminal(stream)
    coloured = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    pieces = []
    for part in parts:
        text, style = (part, None) if isinstance(part, str) else part
        shown = visible(text) if terminal else text
        pieces.append(click.style(shown, **STYLES[style]) if style and coloured else shown)
    # `color=True` keeps click from deciding again: it would strip from a pipe what belongs to the text.
    click.echo("".join(pieces), file=stream, color=True)
