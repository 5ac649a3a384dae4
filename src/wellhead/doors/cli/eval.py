"""`wellhead eval`: how well the pipelines find what a collection's labels say; `compare`: two such runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wellhead.doors.cli.options import PATH, TEXT, json_option
from wellhead.doors.cli.output import next_command, put, put_json, say
from wellhead.doors.cli.progress import progress
from wellhead.errors import UsageError

if TYPE_CHECKING:
    from wellhead.bench.collection import Collection
    from wellhead.bench.evaluate import Evaluation

__all__ = ["compare", "evaluate"]


@click.command("eval")
@click.argument("collection", type=PATH)
@click.option("--embedder", type=TEXT, default=None, metavar="NAME", help="What embeds (static).")
@click.option("--per-tag", is_flag=True, help="One row a tag too: of which kind are the queries that fail?")
@click.option("--per-query", is_flag=True, help="One row a query too, the worst first.")
@click.option("--save", type=PATH, default=None, metavar="FILE", help="Keep the run, to compare another with it.")
@json_option
def evaluate(
    collection: str, embedder: str | None, per_tag: bool, per_query: bool, save: str | None, as_json: bool
) -> int:
    """Measure every pipeline on a collection.

    COLLECTION is a folder with corpus.jsonl (or documents), queries.jsonl and qrels.tsv.
    """
    from wellhead.bench.collection import read_collection
    from wellhead.bench.questions import read_tags
    from wellhead.bench.report import to_dict
    from wellhead.bench.runs import check_place, save_run

    read, tags = read_collection(collection), read_tags(collection)
    if per_tag and not any(tags.get(query_id) for query_id in read.qrels):
        raise _untagged(collection)
    if save is not None:
        check_place(save)
    evaluation = _measured(read, embedder, tags, terms=save is not None)
    if save is not None:
        save_run(save, evaluation)
    if as_json:
        put_json(to_dict(evaluation, per_tag=per_tag, per_query=per_query))
    else:
        _tell(evaluation, per_tag, per_query)
    if save is not None:
        say(f"the run is kept in {save}")
        next_command("compare", save, "OTHER")
    return 0


def _untagged(collection: str) -> UsageError:
    return UsageError(
        "no labelled query has a tag",
        where=collection,
        why="--per-tag makes a row of each",
        fix='write "tags": ["identifier"] into the lines of labels.jsonl',
    )


def _measured(read: Collection, embedder: str | None, tags: dict[str, tuple[str, ...]], *, terms: bool) -> Evaluation:
    from wellhead.bench.evaluate import evaluate as measure

    with progress() as show:
        heard = (lambda pipeline, done, total: show(done, total, pipeline)) if show else None
        return measure(read, embedder=embedder, tags=tags, terms=terms, progress=heard)


def _tell(evaluation: Evaluation, per_tag: bool, per_query: bool) -> None:
    from wellhead.bench.report import per_query_text, per_tag_text, to_text

    put(to_text(evaluation))
    if per_tag:
        put("\n", per_tag_text(evaluation))
    if per_query:
        put("\n", per_query_text(evaluation))


@click.command()
@click.argument("a", metavar="A", type=PATH)
@click.argument("b", metavar="B", type=PATH)
@click.option("--pipeline", type=TEXT, default="blend", show_default=True, metavar="NAME", help="Which one of both.")
@click.option("--against", type=TEXT, default=None, metavar="NAME", help="Another pipeline of B, if not the same.")
@click.option(
    "--measure",
    type=TEXT,
    default="nDCG@10",
    show_default=True,
    metavar="NAME",
    help="On which a difference is called.",
)
@click.option("--show", type=int, default=5, show_default=True, metavar="N", help="So many queries that differ most.")
@json_option
def compare(a: str, b: str, pipeline: str, against: str | None, measure: str, show: int, as_json: bool) -> int:
    """Compare two runs that `eval --save` kept.

    Differences are B minus A. One is called a difference only when chance does not explain it (p < 0.05).
    """
    from wellhead.bench.compare import compare as hold_against
    from wellhead.bench.compare import to_dict
    from wellhead.bench.runs import load_run
    from wellhead.bench.side_by_side import to_text

    runs = load_run(a), load_run(b)
    comparison = hold_against(*runs, pipeline=pipeline, against=against, measure=measure, show=show)
    if as_json:
        put_json({**to_dict(comparison), "files": [a, b]})
    else:
        put(to_text(comparison, (a, b)))
    return 0
