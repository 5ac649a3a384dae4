"""Labels from other forms and into them: TREC, BEIR, simple JSON, CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from wellhead.bench.collection import Collection, read_collection
from wellhead.bench.documents import corpus_rows
from wellhead.bench.exchange.beir import read_beir, write_beir
from wellhead.bench.exchange.left_out import Imported
from wellhead.bench.exchange.pairs import read_json, write_json
from wellhead.bench.exchange.table import read_csv, write_csv
from wellhead.bench.exchange.trec import ImportedRun, read_qrels, read_run, write_qrels, write_run
from wellhead.bench.labels import Label, LabelledQuery, Labels, read_labels, told_where
from wellhead.errors import UsageError
from wellhead.hints import choices

if TYPE_CHECKING:
    from wellhead.index import Index

__all__ = [
    "FORMS",
    "Form",
    "Imported",
    "ImportedRun",
    "collection_labels",
    "export_labels",
    "import_labels",
    "read_beir",
    "read_csv",
    "read_json",
    "read_qrels",
    "read_run",
    "write_beir",
    "write_csv",
    "write_json",
    "write_qrels",
    "write_run",
]

Form: TypeAlias = Literal["trec", "beir", "json", "csv"]
FORMS: tuple[Form, ...] = get_args(Form)


def import_labels(path: str | Path, form: Form, index: Index | None = None) -> Imported:
    """Read labels from another form: a file, or for BEIR a folder.

    Args:
        index: where the ids of the JSON form are looked up; the other forms name documents and need none.

    Raises:
        UsageError: an unknown form; what is not in order there, with its place.
    """
    if form == "trec":
        return read_qrels(path)
    if form == "beir":
        return read_beir(path)
    if form == "json":
        return read_json(path, index)
    if form == "csv":
        return read_csv(path)
    raise UsageError(f"no form named {form!r}", fix=choices(form, FORMS))


def export_labels(folder: str | Path, form: Form, out: str | Path) -> Imported:
    """Write the labels of a collection in another form; what was written, and notes of what the form left out.

    Raises:
        UsageError: an unknown form; a collection that is not in order; what the form cannot hold without being read
            as something else. StoreError: it cannot be written.
    """
    held = collection_labels(folder)
    if form == "trec":
        notes = write_qrels(out, held.labels)
    elif form == "beir":
        notes = write_beir(out, held.labels, corpus_rows(Path(folder)))
    elif form == "json":
        notes = write_json(out, held.labels)
    elif form == "csv":
        notes = write_csv(out, held.labels)
    else:
        raise UsageError(f"no form named {form!r}", fix=choices(form, FORMS))
    return Imported(labels=held.labels, notes=(*held.notes, *notes))


def collection_labels(folder: str | Path) -> Imported:
    """All labels of a collection: those of `labels.jsonl`, and for other queries those of the qrels.

    A query without a text takes that of `queries.jsonl`. Where both files judge a query, `labels.jsonl` counts, and a
    note names the query if they differ.

    Raises:
        UsageError: neither file is there, or one is not in order.
    """
    root = Path(folder)
    file = root / "labels.jsonl"
    given = read_labels(file).queries if file.is_file() else ()
    if not any((root / name).is_file() for name in ("qrels.tsv", "qrels/test.tsv")):
        if not given:
            fix = "a collection holds labels.jsonl, or queries.jsonl and qrels.tsv"
            raise UsageError("no labels here", where=str(root), why="there is no judged query", fix=fix)
        return Imported(labels=Labels(queries=given))
    collection = read_collection(root)
    known = {query.query_id for query in given}
    queries = [_with_text(query, collection) for query in given]
    with told_where(str(root)):
        queries += [_of_qrels(name, collection) for name in collection.qrels if name not in known]
    return Imported(labels=Labels(queries=tuple(queries)), notes=tuple(_differences(given, collection)))


def _with_text(query: LabelledQuery, collection: Collection) -> LabelledQuery:
    return query if query.query else msgspec.structs.replace(query, query=collection.queries[query.query_id])


def _of_qrels(query_id: str, collection: Collection) -> LabelledQuery:
    answers = [Label(document_id=name, grade=grade) for name, grade in collection.qrels[query_id].items()]
    return LabelledQuery(query_id=query_id, query=collection.queries[query_id], answers=tuple(answers))


def _differences(given: tuple[LabelledQuery, ...], collection: Collection) -> list[str]:
    return [
        f"query {query.query_id}: the qrels say otherwise than labels.jsonl, which counts here"
        for query in given
        if query.query_id in collection.qrels and query.grades != collection.qrels[query.query_id]
    ]
