"""The documents behind the door: one by id, and all of them page by page. Absent and "not yours" are one answer."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable
from urllib.parse import quote, unquote

from wellhead.ports import DocumentSummary
from wellhead.records import Document
from wellhead.search.guard.call import Caller
from wellhead.trust.render import Reference, reference_text
from wellhead.trust.visible import one_line

__all__ = ["SCHEME", "Library", "Shelf", "address", "handle", "id_in", "id_of", "link", "metadata_of", "shown"]

SCHEME = "wellhead://documents/"
PAGE = 200
# About 50,000 tokens: more than that, no host takes as one answer.
MOST_CHARACTERS = 200_000
_LONGEST_LINE = 300

Page: TypeAlias = tuple[list[DocumentSummary], str | None]


@runtime_checkable
class Shelf(Protocol):
    """What documents can be taken from; an index, or a scoped handle of one."""

    def get(self, document_id: str) -> Document | None: ...
    def summaries(self) -> Iterable[DocumentSummary]: ...


class Library:
    """Reads documents in a thread, so that a slow disk holds up nobody."""

    def __init__(self, shelf: Shelf, timeout: float | None) -> None:
        self._shelf = shelf
        self._timeout = timeout
        self._caller = Caller("documents")

    async def get(self, document_id: str) -> Document | None:
        """The document of this id in this scope, or None."""
        if not document_id.strip() or any("\ud800" <= character <= "\udfff" for character in document_id):
            return None  # no document can be called that
        return await self._caller.waiting(lambda: self._shelf.get(document_id), self._timeout, native=False)

    async def page(self, cursor: str | None) -> Page | None:
        """Documents by id, from the cursor on, and the next cursor; None for a cursor that is none of ours."""
        after = "" if cursor is None else _after(cursor)
        if after is None:
            return None
        found = await self._caller.waiting(lambda: list(self._shelf.summaries()), self._timeout, native=False)
        rest = sorted((each for each in found if each.id > after), key=lambda each: each.id)
        return rest[:PAGE], _cursor(rest[PAGE - 1].id) if len(rest) > PAGE else None


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode()).decode()


def _after(cursor: str) -> str | None:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def address(document_id: str) -> str:
    """The URI under which a document is a resource here."""
    return SCHEME + quote(document_id, safe="")


def id_in(uri: str) -> str | None:
    """The document's id in such a URI, or None."""
    return (unquote(uri.removeprefix(SCHEME)) or None) if uri.startswith(SCHEME) else None


def handle(document_id: str) -> str:
    """What `fetch` takes for a document: its id, or where that holds what nobody could see or type, its address."""
    is_plain = document_id == one_line(document_id, _LONGEST_LINE) and not document_id.startswith(SCHEME)
    return document_id if is_plain else address(document_id)


def id_of(given: str) -> str:
    """The document's id behind a handle."""
    return id_in(given) or given


def link(uri: str, document_id: str) -> str:
    """Where a person can look: the document's own address where it has one on the web, else its resource."""
    line = one_line(uri, 2_000)
    return line if line.startswith(("https://", "http://")) else address(document_id)


def shown(document: Document) -> str:
    """A document as a model may read it: whole, up to a length, with its source, inside a boundary."""
    text = document.text[:MOST_CHARACTERS]
    remark = "" if len(text) == len(document.text) else "only its beginning"
    source = document.uri or document.id
    return reference_text([Reference(source=source, text=text, remark=remark)])


def metadata_of(document: Document) -> Mapping[str, Any]:
    """Metadata as plain data; texts are the document's word too, so each becomes one visible line."""
    return {_line(key): _value(value) for key, value in document.metadata.items()}


def _value(value: object) -> object:
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return _line(value) if isinstance(value, str) else value


def _line(text: str) -> str:
    return one_line(text, _LONGEST_LINE)
