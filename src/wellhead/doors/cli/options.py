"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from wellhead.errors import UsageError
from wellhead.hints import did_you_mean

__all__ = [
    "PATH",
    "TEXT",
    "Choice",
    "debug_option",
    "index_option",
    "json_option",
    "json_or_text",
    "read_scope",
    "scope_option",
    "search_options",
]

Command = TypeVar("Command", bound=Callable[..., Any])


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
        multiple=True,
        metavar="KEY=VALUE",
        callback=lambda _ctx, _param, values: read_scope(values),
        help="See and write this scope only. An index that is made with one keeps its scopes apart for good.",
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
        click.option(
            "--mode",
            type=Choice(["hybrid", "lexical", "dense"]),
            default="hybrid",
            show_default=True,
            help="Search by words (lexical), by meaning (dense), or by both (hybrid).",
        ),
        click.option(
            "--fusion",
            type=Choice(["blend", "rrf", "convex"]),
            default="blend",
            show_default=True,
            help="How hybrid makes one order of two: a weighted sum of both scores (blend), the ranks (rrf), "
            "a weighted sum of the scores stretched to 0..1 (convex).",
        ),
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
            help="Leave out hits below a cut of your own. A plain number is the least cosine (-1 to 1); for another "
            "signal write coverage=0.3 or probability=0.5. With several, one reached is enough.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_filters(pairs: Sequence[str]) -> dict[str, object] | None:
    """`key=value` pairs as the filters of a search; None for no pair.

    Raises:
        UsageError: no `=`, a blank key, a comparison written as in a formula, the same key twice, broken JSON.
    """
    filters: dict[str, object] = {}
    for pair in pairs:
        key, value = _pair(pair, "--filter", "area=guides")
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
        filters[key] = _filter_value(key, value)
    return filters or None


def read_scope(pairs: Sequence[str]) -> dict[str, str]:
    """`key=value` as a mapping; empty for no pair.

    Raises:
        UsageError: no `=`, a blank key, or more than one: the last one must not win over whoever wrote the first.
    """
    if len(pairs) > 1:
        raise UsageError(
            "--scope is given twice",
            why=f"got {' and '.join(map(repr, pairs))}; one search sees one scope",
            fix="give one of them",
        )
    return dict(_pair(pair, "--scope", f"tenant={pair.strip(' =') or 'acme'}") for pair in pairs)


def read_threshold(values: Sequence[str]) -> float | dict[str, float] | None:
    """A number (a cosine), or `signal=number` pairs by signal; None for nothing.

    Raises:
        UsageError: something that is no number, the same signal twice.
    """
    cuts: dict[str, float] = {}
    for value in values:
        signal, text = _pair(value, "--threshold", "coverage=0.3") if "=" in value else ("cosine", value)
        if signal in cuts:
            raise UsageError(
                f"--threshold names {signal!r} twice", why="a plain number is a cosine", fix="keep one of them"
            )
        try:
            cuts[signal] = float(text)
        except ValueError as error:
            raise UsageError(f"--threshold {value!r} is no number", fix="write 0.4, or coverage=0.3") from error
    return cuts["cosine"] if list(cuts) == ["cosine"] else cuts or None


def json_or_text(value: str) -> object:
    """What JSON text says; a value that is none as it stands."""
    try:
        return _json(value)
    except (ValueError, RecursionError):
        return value


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"{option} {text!r} is not KEY=VALUE", fix=f"write {option} {shlex.quote(example)}")
    return key.strip(), value


def _filter_value(key: str, value: str) -> object:
    """JSON or text; what opens a bracket is meant as JSON, and as a text it would match nothing without a word."""
    if not value.lstrip().startswith(("{", "[")):
        return json_or_text(value)
    try:
        return _json(value)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}"
        raise UsageError(
            f"--filter {key}={value:.80} begins like JSON and is none",
            why=why,
            fix=f"write JSON, as in '{key}={{\"$gt\": 5}}'; a text that begins so goes in quotes: '{key}=\"[x]\"'",
        ) from error


def _json(text: str) -> object:
    # NaN and Infinity are no JSON; Python would take them.
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
