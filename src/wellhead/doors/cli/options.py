"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from wellhead.errors import UsageError

__all__ = [
    "PATH",
    "TEXT",
    "Choice",
    "debug_option",
    "did_you_mean",
    "index_option",
    "json_option",
    "read_scope",
    "scope_option",
    "search_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """`did you mean 'x' or 'y'?`, or "" when nothing is near."""
    near = difflib.get_close_matches(given, list(known), n=3)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


class _Text(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic since click 8.2
    """An argument that is text: bytes that are no UTF-8 arrive as half surrogates and are refused."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            self.fail(f"{text.encode('utf-8', 'backslashreplace').decode()!r} is not valid UTF-8", param, ctx)
        return text


class _Path(_Text):
    name = "directory"


TEXT = _Text()
PATH = _Path()


class Choice(click.Choice):  # type: ignore[type-arg, unused-ignore]  # generic since click 8.2
    """A choice that suggests the nearest value."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ARG002
        known = [str(choice) for choice in self.choices]
        hint = did_you_mean(str(value), known)
        return f"{value!r} is not one of {', '.join(known)}" + (f"; {hint}" if hint else "")


def debug_option(command: Command) -> Command:
    """`--debug` after the command's name (what it does is decided where errors are told)."""
    return click.option("--debug", is_flag=True, expose_value=False, hidden=True)(command)


def json_option(command: Command) -> Command:
    """`--json` as `as_json`, and `--debug`: every command has both."""
    flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else on stdout.")
    return flag(debug_option(command))


def index_option(command: Command) -> Command:
    """`--index DIR`, default `kb`."""
    return click.option(
        "--index",
        type=PATH,
        default="kb",
        envvar="WELLHEAD_INDEX",
        show_default=True,
        show_envvar=True,
        help="The index folder.",
    )(command)


def scope_option(command: Command) -> Command:
    """`--scope key=value` as a mapping of at most one pair."""
    return click.option(
        "--scope",
        type=TEXT,
        default=None,
        metavar="KEY=VALUE",
        callback=lambda _ctx, _param, value: read_scope(value),
        help="See and write this scope only.",
    )(command)


def search_options(command: Command) -> Command:
    """What shapes a search; the parameters have the names that `Index.search` gives them."""
    options = (
        click.option("-k", "k", type=int, default=10, show_default=True, help="How many hits, 1 to 100."),
        click.option(
            "--filter",
            "filters",
            type=TEXT,
            multiple=True,
            metavar="KEY=VALUE",
            callback=lambda _ctx, _param, values: read_filters(values),
            help="Only passages with this metadata; VALUE is read as JSON where it parses, else as text "
            "(area=guides, year=2026, 'price={\"$gt\": 5}'). Several are all to hold.",
        ),
        click.option("--mode", type=Choice(["hybrid", "lexical", "dense"]), default="hybrid", show_default=True),
        click.option("--fusion", type=Choice(["blend", "rrf", "convex"]), default="blend", show_default=True),
        click.option("--per-document", type=int, default=None, help="At most so many hits of one document."),
        click.option("--max-tokens", type=int, default=None, help="Only hits that fit together in so many tokens."),
        click.option(
            "--cut",
            type=Choice(["query", "hit", "off"]),
            default="query",
            show_default=True,
            help="What the threshold cuts: the whole query, each hit, nothing.",
        ),
        click.option(
            "--threshold",
            type=TEXT,
            multiple=True,
            metavar="X",
            callback=lambda _ctx, _param, values: read_threshold(values),
            help="A cut of your own: a cosine, or signal=X (cosine=0.4, coverage=0.3).",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_filters(pairs: Sequence[str]) -> dict[str, object] | None:
    """`key=value` pairs as the filters of a search; None for no pair.

    Raises:
        UsageError: no `=`, a blank key, a comparison written as in a formula, the same key twice.
    """
    filters: dict[str, object] = {}
    for pair in pairs:
        key, value = _pair(pair, "--filter")
        if key[-1] in "<>!":
            raise UsageError(
                f"--filter {pair!r} is not a comparison that is known",
                why="a filter is key=value",
                fix="write 'key={\"$gte\": 5}'; there are $eq, $in, $gt, $gte, $lt, $lte, $and, $or and $not",
            )
        if key in filters:
            raise UsageError(
                f"--filter names {key!r} twice",
                why="all filters are to hold, and one value cannot equal two",
                fix=f"for either of them write '{key}={{\"$in\": [..., ...]}}'",
            )
        filters[key] = _json_or_text(value)
    return filters or None


def read_scope(pair: str | None) -> dict[str, str]:
    """`key=value` as a mapping; empty for None."""
    return dict([_pair(pair, "--scope")]) if pair is not None else {}


def read_threshold(values: Sequence[str]) -> float | dict[str, float] | None:
    """A number (a cosine), or `signal=number` pairs by signal; None for nothing.

    Raises:
        UsageError: something that is no number.
    """
    cuts: dict[str, float] = {}
    for value in values:
        signal, text = _pair(value, "--threshold") if "=" in value else ("cosine", value)
        try:
            cuts[signal] = float(text)
        except ValueError as error:
            raise UsageError(f"--threshold {value!r} is no number", fix="write 0.4, or coverage=0.3") from error
    return cuts["cosine"] if list(cuts) == ["cosine"] else cuts or None


def _pair(text: str, option: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text!r} is not KEY=VALUE", fix=f"write {option} area=guides")
    return key.strip(), value


def _json_or_text(value: str) -> object:
    try:
        # NaN and Infinity are no JSON; Python would take them.
        return json.loads(value, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return value


def _refuse_constant(name: str) -> object:
    raise ValueError(name)
