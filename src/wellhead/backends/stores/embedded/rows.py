"""Records into rows and back. A row is checked against its checksum before anything is made of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import NoReturn

import msgspec

from wellhead.backends.stores.embedded.advice import advice
from wellhead.backends.stores.embedded.checksum import Value, checksum, checksum_as_read
from wellhead.backends.stores.embedded.schema import StoredDocument, StoredPassage
from wellhead.backends.stores.postings import pack_terms
from wellhead.backends.stores.rules import text_hash
from wellhead.errors import CorruptStore
from wellhead.records import Document, DocumentRow, Metadata, Passage, PassageRow, Scalar

__all__ = [
    "check_document",
    "check_passage",
    "check_text",
    "damaged",
    "document_values",
    "is_sound",
    "metadata_of",
    "passage_values",
    "short",
    "shown",
    "to_document",
    "to_passage",
]


def document_values(doc: int, row: DocumentRow) -> tuple[Value, ...]:
    """The values of a row of `documents`."""
    document = row.document
    values = (
        doc,
        row.scope,
        document.id,
        row.origin,
        document.uri,
        document.title,
        document.media_type,
        document.language,
        _json(document.metadata),
        row.digest,
        row.source,
        int(row.incomplete),
        len(row.passages),
    )
    return (*values, checksum("documents", *values))


def passage_values(
    number: int, doc: int, row: PassageRow, term_ids: Mapping[str, int], first_byte: int
) -> tuple[Value, ...]:
    """The values of a row of `passages`; `first_byte` is where its slice begins in the UTF-8 form of the text."""
    passage = row.passage
    values = (
        number,
        passage.id,
        doc,
        passage.ordinal,
        passage.start,
        passage.end,
        first_byte,
        first_byte + len(passage.text.encode()),
        _json(passage.heading),
        passage.page,
        passage.context,
        _json(passage.flags),
        passage.language,
        text_hash(passage.text),
        row.digest,
        row.vector_key or None,
        pack_terms(row.terms.stems, term_ids),
        pack_terms(row.terms.words, term_ids),
    )
    return (*values, checksum("passages", *values))


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _json(value: object) -> str:
    # The standard library's, for it takes every subclass of str, int and float that metadata may hold.
    return "[]" if value == () else _encode(value)


def is_sound(row: StoredDocument | StoredPassage) -> bool:
    """Whether a row is as it was written."""
    table = "documents" if isinstance(row, StoredDocument) else "passages"
    return checksum_as_read(table, row[:-1]) == row.checksum


def check_document(row: StoredDocument, where: str) -> None:
    """Raise CorruptStore, naming the document, unless the row is as it was written."""
    if not is_sound(row):
        damaged("documents", f"document {shown(row.id)}", where, document=row.id)


def check_text(row: StoredDocument, text: bytes | None, stored: bytes | None, where: str) -> bytes:
    """The text of a document, or CorruptStore unless it is as it was written."""
    if text is None or checksum("texts", row.doc, text) != stored:
        damaged("texts", f"the text of document {shown(row.id)}", where, document=row.id)
    return text


def check_passage(row: StoredPassage, document: object, where: str) -> None:
    """Raise CorruptStore, naming the passage and its document (by id), unless the row is as it was written."""
    if not is_sound(row):
        what = f"passage {short(row.id)} of document {shown(document)}"
        damaged("passages", what, where, document=document)


def to_document(row: StoredDocument, text: bytes) -> Document:
    """The document of checked rows."""
    return Document(
        id=row.id.decode(),
        text=text.decode(),
        uri=row.uri.decode(),
        title=row.title.decode(),
        metadata=metadata_of(row),
        media_type=row.media_type.decode(),
        language=_optional(row.language),
    )


def to_passage(row: StoredPassage, head: StoredDocument, metadata: Metadata, text: bytes, where: str) -> Passage:
    """The passage of checked rows, and of the bytes at its place in its document's text.

    Raises:
        CorruptStore: they are not the text that was indexed.
    """
    if hashlib.sha256(text).digest() != row.text_hash:
        why = "the document's text no longer holds what was indexed"
        damaged("passages", f"passage {short(row.id)} of document {shown(head.id)}", where, why, head.id)
    return Passage(
        id=row.id.decode(),
        document_id=head.id.decode(),
        ordinal=row.ordinal,
        text=text.decode(),
        start=row.start,
        end=row.stop,
        heading=tuple(msgspec.json.decode(row.heading)),
        page=row.page,
        uri=head.uri.decode(),
        title=head.title.decode(),
        metadata=metadata,
        content_hash=row.text_hash.hex()[:12],
        language=_optional(row.language),
        context=row.context.decode(),
        flags=tuple(msgspec.json.decode(row.flags)),
    )


def metadata_of(row: StoredDocument) -> Metadata:
    """The metadata of a checked row."""
    values: dict[str, Scalar | list[Scalar]] = msgspec.json.decode(row.metadata)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


def _optional(text: bytes | None) -> str | None:
    return None if text is None else text.decode()


def short(passage_id: object) -> str:
    """A passage id as people see it: its first 12 characters."""
    return shown(passage_id)[1:13]


def shown(value: object) -> str:
    """A stored text for a message, whatever its bytes have become."""
    return repr(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)


def damaged(
    table: str,
    what: str,
    where: str,
    why: str = "its bytes do not fit its checksum",
    document: object = None,
) -> NoReturn:
    """Raise CorruptStore for a row of `table`; `document` is the id of the document that it belongs to, if known."""
    raise CorruptStore(f"{what} is damaged", where=f"{where}, table {table}", why=why, fix=advice(table, document))
