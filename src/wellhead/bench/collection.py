"""A test collection: documents, queries, and qrels (which document answers which query, and how well).

A collection is a folder:

    corpus.jsonl          one document a line: `_id`, `text`, optional `title`; other fields become metadata
    queries.jsonl         one query a line: `_id`, `text`
    qrels.tsv             `query-id <tab> corpus-id <tab> score`, with or without that header (or qrels/test.tsv)
    labels.jsonl          optional; says which queries are unanswerable (all of it: `wellhead.bench.labels`)

In place of `corpus.jsonl` there may be documents in files: those in `docs/`, or else those in the folder itself.
Their ids are their paths relative to that place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import msgspec

from wellhead.bench.files import json_objects, text_lines
from wellhead.bench.labels import labelled_lines
from wellhead.bench.measures import Qrels
from wellhead.errors import DocumentError, UsageError
from wellhead.records import Document, MetadataValue

__all__ = ["LABEL_FILES", "Collection", "read_collection"]

# What stands in the folder beside the documents and is none itself (patterns as in .gitignore).
LABEL_FILES = ("/queries.jsonl", "/qrels.tsv", "/qrels/", "/labels.jsonl")


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """Documents with labelled queries.

    Args:
        name: of the folder.
        queries: text by query id.
        qrels: for each labelled query, grade by document id: 1 or more is relevant, 0 was judged and is not.
        documents: in the order of `corpus.jsonl`; empty when they are files.
        folder: where the files are; None when `documents` holds them.
        unanswerable: queries that no document answers, as `labels.jsonl` says.
    """

    name: str
    queries: Mapping[str, str]
    qrels: Qrels
    documents: tuple[Document, ...] = ()
    folder: Path | None = None
    unanswerable: frozenset[str] = frozenset()

    @property
    def unlabelled(self) -> tuple[str, ...]:
        """Queries of which nothing is known: no row in the qrels, and not said to be unanswerable."""
        return tuple(query for query in self.queries if query not in self.qrels and query not in self.unanswerable)

    @property
    def without_relevant(self) -> tuple[str, ...]:
        """Labelled queries of which every judged document has grade 0: no ranking can score on them."""
        return tuple(query for query, grades in self.qrels.items() if max(grades.values()) < 1)


def read_collection(path: str | Path) -> Collection:
    """Read the collection in a folder.

    Raises:
        UsageError: with file and line: a missing or malformed file, a duplicate id, qrels or labels that name a
            document or a query which the collection does not have, or no labelled query at all.
    """
    root = Path(path)
    if not root.is_dir():
        raise UsageError("no collection here", where=str(root), why="it is not a folder", fix=_LAYOUT)
    queries = _read_queries(root / "queries.jsonl")
    corpus = root / "corpus.jsonl"
    documents = _read_corpus(corpus) if corpus.is_file() else {}
    folder = None if documents else _documents_folder(root)
    unanswerable = _read_unanswerable(root / "labels.jsonl", queries)
    qrels = _read_qrels(_qrels_file(root), queries, _Documents(documents, folder), unanswerable)
    return Collection(
        name=root.resolve().name,
        queries=queries,
        qrels=qrels,
        documents=tuple(documents.values()),
        folder=folder,
        unanswerable=unanswerable,
    )


_LAYOUT = "a collection is a folder with corpus.jsonl (or documents in docs/), queries.jsonl and qrels.tsv"


def _documents_folder(root: Path) -> Path:
    return root / "docs" if (root / "docs").is_dir() else root


def _qrels_file(root: Path) -> Path:
    files = [root / "qrels.tsv", root / "qrels" / "test.tsv"]
    return next((file for file in files if file.is_file()), files[0])


class _Documents:
    """Tells whether an id names a document, in either kind of collection."""

    def __init__(self, documents: Mapping[str, Document], folder: Path | None) -> None:
        self._documents = documents
        self._folder = folder

    def __contains__(self, document_id: str) -> bool:
        if self._folder is None:
            return document_id in self._documents
        path = PurePosixPath(document_id)
        # An id is a path below the folder in its plainest form, and nothing that leads out of it.
        plain = str(path) == document_id and not path.is_absolute() and ".." not in path.parts
        return plain and "\0" not in document_id and (self._folder / path).is_file()


def _read_corpus(file: Path) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for where, fields in json_objects(file, fix=_LAYOUT):
        document_id = _id(fields, "_id", where)
        if document_id in documents:
            raise _duplicate("document", document_id, where)
        documents[document_id] = _document(document_id, fields, where)
    if not documents:
        raise UsageError("the corpus holds no document", where=str(file), fix=_LAYOUT)
    return documents


def _document(document_id: str, fields: Mapping[str, object], where: str) -> Document:
    title = fields.get("title") or ""
    if not isinstance(title, str):
        raise UsageError("a document's title must be text", where=where, why=f"got {title!r:.80}")
    try:
        return Document(id=document_id, text=_text(fields, where), title=title, metadata=_metadata(fields))
    except DocumentError as error:
        raise UsageError(error.what, where=where, why=error.why, fix=error.fix) from error


def _metadata(fields: Mapping[str, object]) -> dict[str, MetadataValue]:
    """The other scalar fields, and those of a `metadata` object; what is nested or null is left out."""
    nested = fields.get("metadata")
    others = {key: value for key, value in fields.items() if key not in {"_id", "title", "text", "metadata"}}
    merged = {**(nested if isinstance(nested, dict) else {}), **others}
    return {key: value for key, value in merged.items() if isinstance(value, (str, int, float))}


def _read_queries(file: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    for where, fields in json_objects(file, fix=_LAYOUT):
        query_id, text = _id(fields, "_id", where), _text(fields, where)
        if query_id in queries:
            raise _duplicate("query", query_id, where)
        if not text.strip():
            raise UsageError(f"query {query_id!r} is blank", where=where, fix="give it a text or take it out")
        queries[query_id] = text
    return queries


def _read_unanswerable(file: Path, queries: Mapping[str, str]) -> frozenset[str]:
    unanswerable = set()
    for where, labelled in labelled_lines(file) if file.is_file() else ():
        if labelled.query_id not in queries:
            raise _unknown("query", labelled.query_id, where)
        if labelled.unanswerable:
            unanswerable.add(labelled.query_id)
    return frozenset(unanswerable)


def _read_qrels(
    file: Path, queries: Mapping[str, str], documents: _Documents, unanswerable: frozenset[str]
) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for where, query_id, document_id, grade in _qrels_rows(file):
        if query_id not in queries:
            raise _unknown("query", query_id, where)
        if document_id not in documents:
            raise _unknown("document", document_id, where)
        if document_id in qrels.setdefault(query_id, {}):
            raise _duplicate("judgement", f"{query_id} {document_id}", where)
        if query_id in unanswerable and grade > 0:
            raise UsageError(
                f"query {query_id!r} has a relevant document here and none in labels.jsonl",
                where=where,
                fix="make qrels.tsv and labels.jsonl say the same",
            )
        qrels[query_id][document_id] = grade
    labelled = {query_id: grades for query_id, grades in qrels.items() if query_id not in unanswerable}
    if not labelled:
        raise UsageError("no query has a label", where=str(file), fix="judge at least one document for one query")
    return labelled


def _qrels_rows(file: Path) -> Iterator[tuple[str, str, str, int]]:
    for place, (where, line) in enumerate(text_lines(file, fix=_LAYOUT)):
        fields = line.split("\t")
        if place == 0 and fields[0] == "query-id":
            continue
        if len(fields) != 3 or not re.fullmatch(r"-?[0-9]+", fields[2].strip()):
            raise UsageError(
                "a row of the qrels must be query id, document id and a whole number, with tabs between",
                where=where,
                why=f"got {line!r:.120}",
                fix="write it as BEIR does, for example q1<tab>d7<tab>1",
            )
        yield where, fields[0], fields[1], int(fields[2])


def _id(fields: Mapping[str, object], key: str, where: str) -> str:
    value = fields.get(key)
    # Numbers serve as ids in some collections; the qrels write them as text.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        fix = f'write {{"{key}": "q1", "text": "..."}}'
        raise UsageError(f"{key!r} must be a non-blank id", where=where, why=f"got {value!r:.80}", fix=fix)
    return value


def _text(fields: Mapping[str, object], where: str) -> str:
    value = fields.get("text")
    if not isinstance(value, str):
        raise UsageError("'text' must be text", where=where, why=f"got {value!r:.80}")
    return value


def _duplicate(kind: str, name: str, where: str) -> UsageError:
    return UsageError(f"{kind} {name!r} stands there twice", where=where, fix="keep one of them")


def _unknown(kind: str, name: str, where: str) -> UsageError:
    return UsageError(
        f"{kind} {name!r} is not in the collection",
        where=where,
        why="measured like this, it could never be found and would count as a miss",
        fix=f"take the row out, or add the {kind}",
    )
