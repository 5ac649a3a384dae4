"""From an exception to what a person reads on stderr, and the exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from wellhead.doors.cli import interrupt
from wellhead.doors.cli.output import put_json, say
from wellhead.errors import UsageError, WellheadError

__all__ = ["report"]

BROKEN_PIPE = 141  # 128 + SIGPIPE: what any other program says when its reader has gone


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Tell of `error` on stderr (with `--json` as an object on stdout too); the code to exit with."""
    if isinstance(error, click.Abort) or interrupt.happened(error):
        interrupt.goodbye()
        return interrupt.exit_code()
    if isinstance(error, BrokenPipeError):
        _let_go(sys.stdout)
        return BROKEN_PIPE
    if _debugging(arguments):
        say("".join(traceback.format_exception(error)).rstrip())
    try:
        return _tell(error, arguments)
    except BrokenPipeError:
        _let_go(sys.stdout)
        return BROKEN_PIPE


def _tell(error: BaseException, arguments: Sequence[str]) -> int:
    known = _in_our_words(error)
    if known is None:
        name, message = type(error).__name__, " ".join(str(error).split())
        hint = "" if _debugging(arguments) else " (for the traceback: WELLHEAD_DEBUG=1, or --debug)"
        say(("internal error: ", "error"), f"{name}: {message}{hint}")
        known = WellheadError(f"{name}: {message}")
    else:
        say(("error: ", "error"), str(known))
    if "--json" in arguments:
        put_json({"schema": 1, "error": known.to_dict(), "exit_code": known.exit_code})
    return known.exit_code


def _in_our_words(error: BaseException) -> WellheadError | None:
    if isinstance(error, WellheadError):
        return error
    if isinstance(error, click.UsageError):
        place = error.ctx.command_path if error.ctx else "wellhead"
        return UsageError(
            error.format_message().rstrip("."),
            where=place,
            why=_usage_line(error.ctx),
            fix=f"{place} --help lists what it takes",
        )
    if isinstance(error, click.ClickException):
        return UsageError(error.format_message(), fix="wellhead --help")
    return None


def _usage_line(context: click.Context | None) -> str:
    if context is None:
        return ""
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"it is used as {context.command_path} {pieces}"


def _debugging(arguments: Sequence[str]) -> bool:
    return "--debug" in arguments or os.environ.get("WELLHEAD_DEBUG", "") not in ("", "0")


def _let_go(stream: object) -> None:
    """Point a stream whose reader has gone at nothing, so that the interpreter's last flush is quiet."""
    try:
        descriptor = stream.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
