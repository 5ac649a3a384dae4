"""BEIR's form: a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from wellhead.bench.collection import read_collection
from wellhead.bench.exchange.left_out import Imported, left_out, some
from wellhead.bench.files import write_whole
from wellhead.bench.labels import Label, LabelledQuery, Labels, told_where
from wellhead.errors import StoreError, UsageError

__all__ = ["read_beir", "write_beir"]

_BREAKS = ("\t", "\n", "\r")


def read_beir(folder: str | Path) -> Imported:
    """Read queries and qrels as labels that name documents.

    Queries without a row are left out, as BEIR does not say whether they are unanswerable or were never judged; but
    those that a `labels.jsonl` in the folder says are unanswerable come along.

    Raises:
        UsageError: as `read_collection`; a grade outside 0 to 3.
    """
    collection = read_collection(folder)
    queries = [
        _query(query_id, text, collection.qrels.get(query_id, {}), str(folder))
        for query_id, text in collection.queries.items()
        if query_id not in collection.unlabelled
    ]
    notes = []
    if collection.unlabelled:
        count = some(len(collection.unlabelled), "query", "queries")
        notes.append(f"{count} without a judgement left out, first {collection.unlabelled[0]}")
    return Imported(labels=Labels(queries=tuple(queries)), notes=tuple(notes))


def write_beir(folder: str | Path, labels: Labels, corpus: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Write a folder in BEIR's form. Returns what was left out.

    Args:
        corpus: the documents as rows: `_id`, `title`, `text`, and whatever else they have.

    Raises:
        UsageError: a query without a text, a label of a document that the corpus lacks, an id with a tab or a line
            break, a folder with other labels. StoreError: the disk failed.
    """
    root = Path(folder)
    rows = list(corpus)
    _check(labels, {str(row["_id"]) for row in rows})
    for name in ("qrels.tsv", "labels.jsonl"):
        if (root / name).exists():
            why = f"it holds {name}, which would be read beside what is written, or instead of it"
            raise UsageError("the folder has other labels", where=str(root), why=why, fix="give another folder")
    _make(root)
    _make(root / "qrels")
    write_whole(root / "corpus.jsonl", _lines(rows))
    write_whole(root / "queries.jsonl", _lines({"_id": one.query_id, "text": one.query} for one in labels.queries))
    qrels = [f"{query}\t{name}\t{grade}\n" for query, grades in labels.qrels.items() for name, grade in grades.items()]
    write_whole(root / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n" + "".join(qrels))
    return tuple(left_out(labels, {"text"}, "BEIR"))


def _query(query_id: str, text: str, grades: Mapping[str, int], where: str) -> LabelledQuery:
    with told_where(where):
        answers = tuple(Label(document_id=name, grade=grade) for name, grade in grades.items())
        return LabelledQuery(query_id=query_id, query=text, answers=answers)


def _check(labels: Labels, held: set[str]) -> None:
    for query in labels.queries:
        if not query.query.strip():
            raise UsageError(
                f"query {query.query_id!r} has no text, which BEIR needs", fix='give it one: "query": "..." in its line'
            )
        for name in (query.query_id, *query.grades):
            if any(mark in name for mark in _BREAKS):
                raise UsageError(
                    f"{name!r:.80} cannot stand in BEIR's qrels", why="tabs and line breaks separate the fields there"
                )
        missing = next((name for name in query.grades if name not in held), None)
        if missing is not None:
            raise UsageError(
                f"query {query.query_id!r} labels a document that is not in the corpus, {missing!r}",
                why="it could never be found",
                fix="wellhead labels check names all that is stale",
            )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make {folder.name}", where=str(folder), why=error.strerror or str(error)) from error


def _lines(rows: Iterable[Mapping[str, object]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
