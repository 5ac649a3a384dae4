"""Opening an index that a command only uses, and finding what the user meant in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from wellhead.doors.cli.output import command, counted
from wellhead.errors import UsageError
from wellhead.hints import did_you_mean

if TYPE_CHECKING:
    from wellhead.index import Index
    from wellhead.records import Passage

__all__ = ["find_passage", "open_index", "unknown_document"]


def open_index(path: str, scope: Mapping[str, str], *, write: bool = False) -> Index:
    """The index in folder `path`, bound to `scope` where one is given; never makes a folder.

    Raises:
        UsageError: there is no index.
    """
    from wellhead.index import Index

    opened = Index.open(path, scope_key=next(iter(scope), None), create=False, read_only=not write)
    return opened.scoped(**scope) if scope else opened


def find_passage(index: Index, given: str) -> Passage:
    """A passage by its id, or by the first six or more characters of it.

    Raises:
        UsageError: no passage, or several, begin so.
    """
    return index.passage(given.strip().lower())


def unknown_document(index: Index, given: str) -> UsageError:
    """The error for an id that is neither a document's nor a passage's, with the nearest document ids."""
    known = [document.id for document in index.summaries()]
    return UsageError(
        f"no document has the id {given!r}",
        why=f"the index holds {counted(len(known), 'document')}",
        fix=did_you_mean(given, known) or f"{command('ls')} lists the ids",
    )
