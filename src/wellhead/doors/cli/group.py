"""The group of commands: what runs them, and what turns every error into a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import wellhead
from wellhead.doors.cli import failure
from wellhead.doors.cli.eval import compare, evaluate
from wellhead.doors.cli.index import index
from wellhead.doors.cli.inspect import ls, rm, show, stats, verify
from wellhead.doors.cli.labels import check_labels, export_command, import_command
from wellhead.doors.cli.losses import losses
from wellhead.doors.cli.mcp import mcp
from wellhead.doors.cli.search import explain, search
from wellhead.doors.cli.upkeep import backup, compact, repair
from wellhead.errors import UsageError
from wellhead.hints import did_you_mean

__all__ = ["Commands", "cli"]


def _help_as_option(arguments: list[str]) -> list[str]:
    """`help` and `help search` as `--help` and `search --help`."""
    return [*arguments[1:], "--help"] if arguments[:1] == ["help"] else arguments


class Commands(click.Group):
    """A click group with our errors, exit codes and suggestions; its commands are listed as they were added."""

    def main(  # type: ignore[override]  # click offers to return; this one always exits
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_options: Any
    ) -> NoReturn:
        """Run one command line and exit; never returns, never shows a traceback without `--debug`."""
        arguments = _help_as_option(list(sys.argv[1:] if args is None else args))
        name = prog_name or "wellhead"
        try:
            self._main_shell_completion({}, name)
            code = self._run(arguments, name)
        except Exception as error:  # noqa: BLE001 (the last line of defence: everything becomes a message)
            code = failure.report(error, arguments)
        except KeyboardInterrupt as error:
            code = failure.report(error, arguments)
        sys.exit(code)

    def _run(self, arguments: list[str], name: str) -> int:
        try:
            with self.make_context(name, list(arguments)) as context:
                return self.invoke(context) or 0
        except click.exceptions.Exit as finished:
            return finished.exit_code

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UsageError(
                f"no command named {args[0]!r}",
                where=ctx.command_path,
                why=f"the commands are {', '.join(self.commands)}",
                fix=did_you_mean(args[0], self.commands) or f"{ctx.command_path} --help",
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 internal error, 2 usage, 3 no match, 4 store or backend, 5 configuration, "
    "6 stale index, 7 gate failed, 8 partial ingest, 130 interrupted.",
)
@click.option(
    "--debug", is_flag=True, expose_value=False, help="Show tracebacks; after the command too, or WELLHEAD_DEBUG=1."
)
@click.version_option(wellhead.__version__, prog_name="wellhead")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn a folder into a searchable index, and search it.

    \b
      wellhead index docs/
      wellhead search "how do I rotate a key?"
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@click.group(cls=Commands, invoke_without_command=True)
@click.pass_context
def labels(ctx: click.Context) -> None:
    """Check, export and import the labels of a collection."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (check_labels, export_command, import_command):
    labels.add_command(_command)

_COMMANDS = (
    index,
    search,
    explain,
    show,
    ls,
    rm,
    stats,
    verify,
    repair,
    compact,
    backup,
    evaluate,
    compare,
    labels,
    losses,
    mcp,
)
for _command in _COMMANDS:
    cli.add_command(_command)
