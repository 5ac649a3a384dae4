"""`wellhead labels`: whether labels still stand where they stood, and their way from and to other forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wellhead.doors.cli.handle import open_index
from wellhead.doors.cli.options import PATH, TEXT, Choice, json_option, scope_option
from wellhead.doors.cli.output import counted, put, put_json, say
from wellhead.errors import UsageError

if TYPE_CHECKING:
    from wellhead.bench.labels import Labels
    from wellhead.bench.resolve import Resolved, Standing

__all__ = ["check_labels", "export_command", "import_command"]

Command = TypeVar("Command", bound=Callable[..., Any])

# Written out, for what holds them is not imported for a help text.
FORMS = ("trec", "beir", "json", "csv")


def _overwrite_option(command: Command) -> Command:
    return click.option("--overwrite", is_flag=True, help="Write over what is there.")(command)


def _optional_index(help_text: str) -> Callable[[Command], Command]:
    return click.option("--index", type=PATH, default=None, metavar="DIR", help=help_text)


@click.command("check")
@click.argument("collection", type=PATH)
@_optional_index("Look in this index rather than in the collection's own documents.")
@scope_option
@click.option(
    "--allow-stale",
    "allowed",
    type=TEXT,
    multiple=True,
    metavar="ID",
    help="Let the labels of this query be stale (q7), or only its label of one document (q7:keys.md).",
)
@json_option
def check_labels(
    collection: str, index: str | None, scope: dict[str, str], allowed: tuple[str, ...], as_json: bool
) -> int:
    """Look whether labels stand where they stood.

    COLLECTION is a folder with labels.jsonl and documents. A label is in place, moved or stale; exits with 2 where
    one is stale and not allowed.
    """
    from wellhead.bench.labels import read_labels
    from wellhead.bench.resolve import check_fresh

    file = Path(collection) / "labels.jsonl"
    labels = read_labels(file)
    resolved = _resolved(collection, labels, index, scope)
    try:
        unneeded, refusal = check_fresh(resolved, allow=allowed, where=str(file)), None
    except UsageError as error:
        unneeded, refusal = (), error
    if as_json:
        put_json(_told(labels, resolved, refusal))
    else:
        _tell(labels, resolved)
    for name in unneeded:
        say(f"nothing of {name} is stale: --allow-stale {name} can go")
    if refusal is None:
        return 0
    say(("error: ", "error"), str(refusal))
    return refusal.exit_code


@click.command("export")
@click.argument("collection", type=PATH)
@click.option("--to", "form", type=Choice(FORMS), required=True, help="The form to write.")
@click.option("--out", type=PATH, required=True, metavar="PATH", help="The file to write; for beir a folder.")
@_overwrite_option
@json_option
def export_command(collection: str, form: Any, out: str, overwrite: bool, as_json: bool) -> int:
    """Write the labels in another form.

    COLLECTION is a folder with labels.jsonl or qrels. What the form cannot hold is said.
    """
    from wellhead.bench.exchange import export_labels

    _refuse_existing(out, overwrite)
    written = export_labels(collection, form, out)
    return _tell_written(out, written.labels, written.notes, as_json)


@click.command("import")
@click.argument("source", metavar="FILE", type=PATH)
@click.option("--from", "form", type=Choice(FORMS), required=True, help="The form that FILE has; for beir a folder.")
@click.option("--out", type=PATH, default="labels.jsonl", show_default=True, metavar="PATH", help="The file to write.")
@_optional_index("Where the ids of passages and content hashes in a json file are looked up.")
@scope_option
@_overwrite_option
@json_option
def import_command(
    source: str, form: Any, out: str, index: str | None, scope: dict[str, str], overwrite: bool, as_json: bool
) -> int:
    """Make labels.jsonl of judgements in another form."""
    from wellhead.bench.exchange import import_labels
    from wellhead.bench.labels import write_labels

    _refuse_existing(out, overwrite)
    if index is None:
        imported = import_labels(source, form)
    else:
        with open_index(index, scope) as opened:
            imported = import_labels(source, form, opened)
    write_labels(out, imported.labels)
    return _tell_written(out, imported.labels, imported.notes, as_json)


def _resolved(collection: str, labels: Labels, index: str | None, scope: dict[str, str]) -> Resolved:
    from wellhead.bench.resolve import resolve, resolve_in

    if index is not None:
        with open_index(index, scope) as opened:
            return resolve_in(opened, labels)
    from wellhead.bench.documents import document_texts

    named = {label.document_id for _query_id, label in labels}
    return resolve(labels, document_texts(Path(collection), named))


def _refuse_existing(out: str, overwrite: bool) -> None:
    from wellhead.bench.files import refuse_existing

    if not overwrite:
        refuse_existing(Path(out), fix="give another path, or add --overwrite")


def _tell_written(out: str, labels: Labels, notes: Sequence[str], as_json: bool) -> int:
    if as_json:
        counts = {"queries": len(labels.queries), "labels": len(labels)}
        put_json({"schema": 1, "written": out, **counts, "notes": list(notes)})
        return 0
    put(f"wrote {out}: {_queries(labels)}, {counted(len(labels), 'label')}")
    for note in notes:
        say(("note: ", "dim"), note)
    return 0


def _queries(labels: Labels) -> str:
    return f"{len(labels.queries)} {'query' if len(labels.queries) == 1 else 'queries'}"


def _tell(labels: Labels, resolved: Resolved) -> None:
    counts = (
        f"{len(found)} {word}"
        for word, found in (("in place", resolved.in_place), ("moved", resolved.moved), ("stale", resolved.stale))
    )
    put(f"{_queries(labels)}, {counted(len(labels), 'label')}: {', '.join(counts)}")
    for standing in resolved.moved:
        put(f"moved: {standing.name}: {_where(standing)}")
    for standing in resolved.stale:
        put(f"stale: {standing.name}: {standing.note}")
    for standing in resolved.in_place:
        if standing.note:
            put(f"note: {standing.name}: {standing.note}")


def _where(standing: Standing) -> str:
    old, new = standing.label.span, standing.span
    moved = f"from {old[0]} to {new[0]}" if old and new else ""
    return f"{moved}; {standing.note}" if standing.note else moved


def _told(labels: Labels, resolved: Resolved, refusal: UsageError | None) -> dict[str, object]:
    return {
        "schema": 1,
        "queries": len(labels.queries),
        "labels": len(labels),
        "in_place": len(resolved.in_place),
        "moved": [_plain(standing) for standing in resolved.moved],
        "stale": [_plain(standing) for standing in resolved.stale],
        "error": None if refusal is None else refusal.to_dict(),
    }


def _plain(standing: Standing) -> dict[str, object]:
    return {
        "query_id": standing.query_id,
        "document_id": standing.label.document_id,
        "quote": standing.label.quote,
        "span": standing.span,
        "note": standing.note,
    }
