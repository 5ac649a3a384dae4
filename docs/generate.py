"""Write the generated pages of docs/reference, or check with `--check` that they are up to date.

Each page is made from what the code says of itself: errors from their classes, the command line from its commands.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click

from wellhead import errors
from wellhead.doors.cli.group import cli

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py; change what it is made from, then run `make docs`. -->\n"
EXIT_CODES = {
    0: "done",
    1: "an internal error: a fault of Wellhead",
    2: "used wrongly: an unknown option or filter, a blank query, a missing scope",
    3: "no match: nothing was close enough, the filters admit nothing, or nothing is indexed",
    4: "the store, or a backend such as a model, cannot be used now",
    5: "configured wrongly, or an optional dependency is missing",
    6: "the index is stale: made with another embedder, analyzer, chunker or format",
    7: "a quality gate failed",
    8: "partial ingest: something was refused, or is left for the next run",
    130: "interrupted (143 by SIGTERM); what was written before is whole",
}


def errors_page() -> str:
    """Exit codes, then every error class with what a caller can rely on."""
    classes = tree(errors.WellheadError)
    lines = [
        NOTE,
        "# Errors and exit codes\n",
        "Every error that Wellhead raises on purpose is a `WellheadError` and has four parts: `what` went wrong,",
        "`where`, `why`, and how to mend it (`fix`). `str(error)` shows those that are there, `error.to_dict()` gives",
        "them as plain data.\n",
        "## Exit codes\n",
        "| code | means | errors |",
        "|---|---|---|",
        *(code_row(code, classes) for code in sorted({*EXIT_CODES, *(kind.exit_code for kind in classes)})),
        "\n## Classes\n",
        "*Retryable* says whether ingest may try the same call again. Inside a search nothing is retried: a person or",
        "another route is next.\n",
        "| class | is a | exit | HTTP | retryable | raised for |",
        "|---|---|---|---|---|---|",
        *(class_row(kind) for kind in classes),
    ]
    return "\n".join(lines) + "\n"


def tree(kind: type[errors.WellheadError]) -> list[type[errors.WellheadError]]:
    """A public class and all below it, each followed by its own."""
    known = [each for each in kind.__subclasses__() if each.__name__ in errors.__all__]
    below = sorted(known, key=lambda each: (each.exit_code, each.__name__))
    return [kind, *(each for child in below for each in tree(child))]


def code_row(code: int, classes: list[type[errors.WellheadError]]) -> str:
    names = [f"`{kind.__name__}`" for kind in classes if kind.exit_code == code and kind is not errors.WellheadError]
    return f"| {code} | {EXIT_CODES[code]} | {', '.join(names)} |"


def class_row(kind: type[errors.WellheadError]) -> str:
    bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
    retryable = "yes" if kind.retryable else "no"
    meaning = " ".join((inspect.getdoc(kind) or "").split())
    return f"| `{kind.__name__}` | {bases} | {kind.exit_code} | {kind.http_status} | {retryable} | {meaning} |"


def cli_page() -> str:
    """Every command with its help, as `wellhead COMMAND --help` prints it at a width of 100 columns."""
    top = click.Context(cli, info_name="wellhead", terminal_width=100, max_content_width=100, **cli.context_settings)
    parts = [
        NOTE,
        "# Command line\n",
        "Data goes to stdout and talk to stderr. [Exit codes](errors.md) are part of the interface.\n",
        block(top),
    ]
    return "\n".join([*parts, *command_parts(cli, top)])


def command_parts(group: click.Group, top: click.Context) -> list[str]:
    """Heading and help of each command of a group, those of a group within it after its own."""
    parts = []
    for name, command in sorted(group.commands.items()):
        inside = click.Context(command, info_name=name, parent=top, terminal_width=100, max_content_width=100)
        parts += [f"## {inside.command_path}\n", block(inside)]
        if isinstance(command, click.Group):
            parts += command_parts(command, inside)
    return parts


def block(context: click.Context) -> str:
    shown = "\n".join(line.rstrip() for line in context.get_help().splitlines())
    return f"```text\n{shown}\n```\n"


PAGES = {"errors.md": errors_page, "cli.md": cli_page}


def main(arguments: list[str]) -> int:
    """Write what is out of date, or with `--check` only name it; the exit code."""
    stale = []
    for name, page in PAGES.items():
        path, text = REFERENCE / name, page()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"docs/reference is out of date: {', '.join(stale)}; run `make docs` and commit what it writes")
        return 1
    print("docs/reference:", f"wrote {', '.join(stale)}" if stale else "up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
