"""From an exception to what a person reads on stderr, and the exit code."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence

import click

from wellhead.doors.cli import interrupt
from wellhead.doors.cli.output import StdoutError, put_json, say
from wellhead.errors import ScopeError, UsageError, WellheadError

__all__ = ["report"]

BROKEN_PIPE = 141  # 128 + SIGPIPE: what any other program says when its reader has gone
_PYTHON_SCOPE = re.compile(r'index\.scoped\((.+)="\.\.\."\)')


def report(error: BaseException, arguments: Sequence[str]) -> int:
    """Tell of `error` on stderr (with `--json` as an object on stdout too); the code to exit with."""
    if isinstance(error, click.Abort) or interrupt.happened(error):
        interrupt.goodbye()
        return interrupt.exit_code()
    if isinstance(error, (BrokenPipeError, StdoutError)):
        return _let_go(error)
    if _debugging(arguments):
        say("".join(traceback.format_exception(error)).rstrip())
    try:
        return _tell(error, arguments)
    except (BrokenPipeError, StdoutError) as lost:
        return _let_go(lost)


def _tell(error: BaseException, arguments: Sequence[str]) -> int:
    known = _in_our_words(error, arguments)
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


def _in_our_words(error: BaseException, arguments: Sequence[str]) -> WellheadError | None:
    if isinstance(error, WellheadError):
        return _for_the_command_line(error)
    if isinstance(error, click.UsageError):
        place = error.ctx.command_path if error.ctx else "wellhead"
        return UsageError(
            error.format_message().rstrip("."),
            where=place,
            why=_usage_line(error.ctx),
            fix=_quoting(error, arguments) or f"{place} --help lists what it takes",
        )
    if isinstance(error, click.ClickException):
        return UsageError(error.format_message(), fix="wellhead --help")
    return None


def _for_the_command_line(error: WellheadError) -> WellheadError:
    """The same error; where the library's advice is a line of Python, with the option that does it here."""
    unbound = _PYTHON_SCOPE.search(error.fix)
    if not isinstance(error, ScopeError) or not unbound:
        return error
    return ScopeError(error.what, where=error.where, why=error.why, fix=f"add --scope {unbound[1]}=...")


def _quoting(error: click.UsageError, arguments: Sequence[str]) -> str:
    """How to write what was meant as an argument and taken for an option, or for several; "" for all else."""
    if error.ctx is None:
        return ""
    names = [one.make_metavar(error.ctx) for one in error.ctx.command.params if isinstance(one, click.Argument)]
    if not names:
        return ""
    place, others = error.ctx.command_path, "".join(f" {name}" for name in names[1:])
    if isinstance(error, click.NoSuchOption):
        given = next((word for word in arguments if word.startswith(error.option_name)), error.option_name)
        return f"{place} --help lists the options; to look for it put -- before it: {place} -- {_quoted(given)}{others}"
    question = error.ctx.params.get("query")
    if question is not None and error.message.startswith("Got unexpected extra argument"):
        return f"put the question in quotes: {place} {_quoted(f'{question} ...')}{others}"
    return ""


def _quoted(word: str) -> str:
    """In quotes for the shell, always: it shows what belongs together."""
    safe = shlex.quote(word)
    return safe if safe != word else f'"{word}"'


def _usage_line(context: click.Context | None) -> str:
    if context is None:
        return ""
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f"it is used as {context.command_path} {pieces}"


def _debugging(arguments: Sequence[str]) -> bool:
    return "--debug" in arguments or os.environ.get("WELLHEAD_DEBUG", "") not in ("", "0")


def _let_go(error: BrokenPipeError | StdoutError) -> int:
    """Point stdout at nothing, so that the interpreter's last flush is quiet; the code to exit with."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        descriptor = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    say(("error: ", "error"), f"{error.what}: {error.why}")
    return error.exit_code
