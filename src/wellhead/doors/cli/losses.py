"""`wellhead losses`: which stage lost each relevant document that a search did not deliver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wellhead.doors.cli.handle import open_index
from wellhead.doors.cli.options import PATH, TEXT, json_option
from wellhead.doors.cli.output import command, counted, one_line, put, put_json, put_table, say, warn
from wellhead.doors.cli.progress import progress

if TYPE_CHECKING:
    from wellhead.bench.collection import Collection
    from wellhead.bench.lossmap import Loss, LossMap
    from wellhead.index import Index

__all__ = ["losses"]


@click.command()
@click.argument("collection", type=PATH)
@click.option(
    "--index",
    "place",
    type=PATH,
    default=None,
    metavar="DIR",
    help="The index of the collection; else it is indexed in memory.",
)
@click.option("--embedder", type=TEXT, default=None, metavar="NAME", help="What embeds, where it is indexed in memory.")
@click.option("-k", "--k", type=int, default=10, show_default=True, help="Hits of each search, 1 to 100.")
@json_option
def losses(collection: str, place: str | None, embedder: str | None, k: int, as_json: bool) -> int:
    """Name the stage that lost each relevant document.

    COLLECTION is a folder as for `wellhead eval`. Where its labels quote the words that answer, only passages that
    hold them count.
    """
    from wellhead.bench.collection import read_collection
    from wellhead.bench.labels import read_labels
    from wellhead.bench.lossmap import loss_map

    read, quoted = read_collection(collection), Path(collection) / "labels.jsonl"
    labels = read_labels(quoted) if quoted.is_file() else None
    with _indexed(read, embedder) if place is None else open_index(place, {}) as index:
        found = loss_map(read, index, labels=labels, k=k)
    for name in found.stale:
        warn(
            f"a label is stale: {name}",
            why="any passage of its document counted",
            fix="wellhead labels check tells more",
        )
    if as_json:
        put_json(found.to_dict())
    else:
        _tell(read, found, place)
    return 0


def _indexed(collection: Collection, embedder: str | None) -> Index:
    """The collection in an index that is gone with this command."""
    from wellhead.bench.evaluate import fill
    from wellhead.index import Index

    index = Index.open(":memory:", embedder=embedder)
    with progress() as show:
        heard = (lambda stage, done, total: show(done, total, stage)) if show else None
        for warning in fill(index, collection, heard or (lambda _stage, _done, _total: None)):
            warn(warning)
    return index


def _tell(collection: Collection, found: LossMap, place: str | None) -> None:
    put(
        f"{found.collection}: {counted(found.relevant, 'relevant document')} over {found.queries} queries, "
        f"{found.delivered} among the first {found.k} hits, {len(found.losses)} lost"
    )
    if not found.losses:
        return
    put("")
    put_table(("stage", "lost"), [(stage, count) for stage, count in found.by_stage.items()])
    for loss in found.losses:
        put("")
        _tell_loss(collection, loss, place)
    if place is None:
        say("next: index the collection and give --index DIR, and each line comes with its wellhead explain")


def _tell_loss(collection: Collection, loss: Loss, place: str | None) -> None:
    query = collection.queries[loss.query_id]
    put((loss.stage, "strong"), f"  {one_line(loss.query_id)}: {one_line(query)}")
    put(f"   {one_line(loss.document_id)} (grade {loss.grade}): {one_line(loss.reason)}")
    if place is not None and loss.passage_id:
        put((f"   {command('explain', '--index', place, '--', query, loss.passage_id[:12])}", "dim"))
