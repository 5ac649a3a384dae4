"""Gives each document its scope, and refuses what does not belong in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from wellhead.errors import DocumentError, ScopeError, UsageError
from wellhead.index.house import House, Scope
from wellhead.ingest.incoming import Incoming
from wellhead.ingest.load import in_words
from wellhead.records import Document, Refusal
from wellhead.search.filters import instant
from wellhead.search.scope import scope_value

__all__ = ["Stamp", "no_documents"]


class Stamp:
    """What a handle of a scope does to every document on its way in."""

    def __init__(self, house: House, scope: Scope | None) -> None:
        self._house = house
        self._scope = scope
        self._placed: dict[str, str] = {}

    def incoming(self, documents: Iterable[Document]) -> Iterator[Incoming | Refusal]:
        """What a program adds. It may stamp the scope key itself; a stamp for another scope is an error.

        Raises:
            ScopeError: a document outside the handle's scope, or without one where the index has scopes.
            UsageError: something that is no `Document`.
        """
        for document in documents:
            if not isinstance(document, Document):
                raise no_documents(document)
            try:
                self.check_dates(document)
            except DocumentError as error:
                yield Refusal(id=document.id, reason=in_words(error))
            else:
                yield self._stamped(document)

    def _stamped(self, document: Document) -> Incoming | Refusal:
        key = self._house.scope_key
        if self._scope is not None:
            document = self.own(document)
        scope = "" if key is None else scope_value(key, document.metadata.get(key), document.id)
        if key is None or self._scope is not None:
            return Incoming(document=document, scope=scope, origin="")
        # A host program that stamps another scope moves the document.
        if self._placed.setdefault(document.id, scope) != scope:
            why = f"this run stamps it for two values of {key}; write each through a handle of its own {key}"
            return Refusal(id=document.id, reason=why)
        leaves = tuple(other for other in self._house.store.scopes_of(document.id) if other != scope)
        return Incoming(document=document, scope=scope, origin="", leaves=leaves)

    def own(self, document: Document) -> Document:
        """The document with the handle's scope in its metadata.

        Raises:
            ScopeError: it is stamped for another scope, or its id is taken outside this one.
        """
        scope = self._scope
        if scope is None:
            return document
        if document.metadata.get(scope.key, scope.value) != scope.value:
            raise ScopeError(
                f"document {document.id!r} is stamped for another {scope.key}",
                fix=f"write it through a handle of its own {scope.key}, or leave the key out",
            )
        if self._house.scope_key is None and self.is_foreign(document.id):
            raise ScopeError(
                f"the document id {document.id!r} is taken outside this scope",
                why="without a scope key all scopes of an index share one space of ids",
                fix=f"open the index with scope_key={scope.key!r}, so that each {scope.key} has ids of its own",
            )
        return msgspec.structs.replace(document, metadata={**document.metadata, scope.key: scope.value})

    def is_foreign(self, document_id: str) -> bool:
        """In an index without a scope key: whether a document of this id lies outside the handle's scope."""
        if self._scope is None or self._house.scope_key is not None:
            return False
        held = self._house.store.get("", document_id)
        return held is not None and held.metadata.get(self._scope.key) != self._scope.value

    def check_dates(self, document: Document) -> None:
        """Refuse a document that holds no date where the index expects one.

        Raises:
            DocumentError: naming the key and the value.
        """
        for key in self._house.date_keys:
            value = document.metadata.get(key)
            if value is not None and (not isinstance(value, str) or instant(value) is None):
                raise DocumentError(
                    f"metadata {key!r} is no ISO-8601 date",
                    where=document.id,
                    why=f"got {value!r}",
                    fix='write it as "2026-01-31" or "2026-01-31T12:00:00+00:00"',
                )


def no_documents(given: object) -> UsageError:
    """The error for what is no list of documents, or no document in it: its type alone, for it may hold a text."""
    fix = "add([Document(...)])" if isinstance(given, Document) else "make each one a wellhead.Document"
    return UsageError("add takes an iterable of Document", why=f"got a {type(given).__name__}", fix=fix)
