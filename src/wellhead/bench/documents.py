"""The documents of a collection's folder, for labels: in BEIR's rows, and as texts by id."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from wellhead.backends.readers.folder import Folder, read_folder
from wellhead.backends.readers.reading import FileSkipped
from wellhead.backends.readers.walk import Found
from wellhead.bench.collection import LABEL_FILES
from wellhead.bench.files import json_objects
from wellhead.errors import DocumentError, UsageError
from wellhead.records import Document

__all__ = ["corpus_rows", "document_texts"]


def corpus_rows(folder: Path) -> Iterator[dict[str, object]]:
    """The documents as rows of a `corpus.jsonl`: `_id`, `title`, `text`, and metadata.

    Those of `corpus.jsonl` as they stand there; else the files in `docs/`, or in the folder itself, as they are read.

    Raises:
        UsageError: no such folder, a malformed row. DocumentError: a file that cannot be read.
    """
    corpus = folder / "corpus.jsonl"
    if corpus.is_file():
        yield from _rows(corpus)
        return
    listed = _listed(folder)
    for found in listed.found:
        document = _read(listed, found)
        if document is not None:
            yield _row(document)


def document_texts(folder: Path, ids: Collection[str]) -> dict[str, str | None]:
    """Text by id of these documents; None for one that is not there, or has no text.

    Raises:
        UsageError: no such folder, a malformed row. DocumentError: one of them cannot be read.
    """
    texts: dict[str, str | None] = dict.fromkeys(ids)
    corpus = folder / "corpus.jsonl"
    if corpus.is_file():
        texts |= {str(row["_id"]): str(row["text"]) for row in _rows(corpus) if row["_id"] in texts}
        return texts
    listed = _listed(folder)
    for refused in listed.refused:
        if refused.id in texts:
            raise DocumentError("a labelled document cannot be read", where=refused.id, why=refused.reason)
    for found in listed.found:
        if found.id in texts:
            document = _read(listed, found)
            texts[found.id] = None if document is None else document.text
    return texts


def _rows(corpus: Path) -> Iterator[dict[str, object]]:
    seen: set[str] = set()
    for where, row in json_objects(corpus):
        given = row.get("_id")
        document_id = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if not isinstance(document_id, str) or not document_id.strip() or not isinstance(row.get("text"), str):
            raise UsageError(
                "a row of the corpus needs an id and a text",
                where=where,
                fix='write {"_id": "d1", "title": "...", "text": "..."}',
            )
        if document_id in seen:
            raise UsageError(f"document {document_id!r} stands there twice", where=where, fix="keep one of them")
        seen.add(document_id)
        yield {**row, "_id": document_id}


def _listed(folder: Path) -> Folder:
    if not folder.is_dir():
        raise UsageError("no collection here", where=str(folder), why="it is not a folder")
    docs = folder / "docs"
    return read_folder(docs if docs.is_dir() else folder, exclude=LABEL_FILES)


def _read(listed: Folder, found: Found) -> Document | None:
    """The document of a file; None for a blank or binary one, which no index holds either."""
    try:
        return listed.read(found)
    except FileSkipped:
        return None


def _row(document: Document) -> dict[str, object]:
    return {
        "_id": document.id,
        "title": document.title,
        "text": document.text,
        "metadata": dict(document.metadata),
    }
