"""`wellhead eval`: how well the pipelines find what a collection's labels say."""

from __future__ import annotations

import click

from wellhead.doors.cli.options import PATH, TEXT, json_option
from wellhead.doors.cli.output import put, put_json
from wellhead.doors.cli.progress import progress

__all__ = ["evaluate"]


@click.command("eval")
@click.argument("collection", type=PATH)
@click.option("--embedder", type=TEXT, default=None, metavar="NAME", help="What embeds (static).")
@json_option
def evaluate(collection: str, embedder: str | None, as_json: bool) -> int:
    """Measure every pipeline on a collection.

    COLLECTION is a folder with corpus.jsonl (or documents), queries.jsonl and qrels.tsv.
    """
    from wellhead.bench.collection import read_collection
    from wellhead.bench.evaluate import evaluate as measure
    from wellhead.bench.report import to_dict, to_text

    read = read_collection(collection)
    with progress() as show:
        heard = (lambda pipeline, done, total: show(done, total, pipeline)) if show else None
        evaluation = measure(read, embedder=embedder, progress=heard)
    if as_json:
        put_json(to_dict(evaluation))
    else:
        put(to_text(evaluation))
    return 0
