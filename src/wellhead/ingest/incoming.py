"""What is on its way in: documents, files that are still bytes, and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

import msgspec

from wellhead.records import Document, Refusal

__all__ = ["Incoming", "Item", "Unread", "batches"]

_T = TypeVar("_T")


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A document on its way in: under which scope, and from which folder ("" for a program).

    Args:
        source: of the file it was read from (see `Unread`); b"" for a document that no file tells unchanged.
        leaves: scopes that hold an older copy, which must not be served any more once this one is written.
    """

    document: Document
    scope: str
    origin: str
    source: bytes = b""
    leaves: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Of the document."""
        return self.document.id


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """A file on its way in, as bytes. One whose `source` is already stored is never read into a document.

    Args:
        source: 32 bytes over the file's bytes and all that decides what becomes of them.
        size: in bytes.
        read: makes the document, of the very bytes that `source` is over, or says why it is refused; None where there
            is nothing to index.
    """

    id: str
    scope: str
    origin: str
    source: bytes
    size: int
    read: Callable[[], Incoming | Refusal | None]


Item: TypeAlias = Unread | Incoming | Refusal


def batches(items: Iterable[_T], size: Callable[[_T], int], limit: int, most: Callable[[], int]) -> Iterator[list[_T]]:
    """The items in parts of so many at most (asked again and again); one ends with the item that reaches `limit`."""
    batch: list[_T] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if len(batch) >= most() or total >= limit:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch
