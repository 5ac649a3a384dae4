"""How damage is mended: one advice for each table, with a command that works."""

from __future__ import annotations

import shlex

__all__ = ["REBUILD", "REMAKE", "SWEEP", "advice", "again"]

# For what is derived from the tables; for what no document owns; for what is only left over.
REMAKE = "`wellhead repair` makes it anew from the tables; nothing is lost"
REBUILD = (
    "`wellhead repair` saves every document that is still whole; or restore a backup, or delete the folder of the "
    "index and index the documents again"
)
SWEEP = "harmless; `wellhead compact` removes it"
_AGAIN = "index it again (`wellhead index FOLDER`, or `add` in a program), or remove it (`wellhead rm {}`)"
_FROM_ITS_TEXT = ", or let `wellhead repair` make it anew from its stored text"
_OF_A_DOCUMENT = ("documents", "texts", "passages", "vectors")
_DERIVED = ("segments", "gone")
_SETTING = (
    "restore a backup, or run `wellhead repair` and give it what the index was made with: --embedder, --chunker, "
    "--language, --scope-key, --date-key"
)


def again(document: object = None) -> str:
    """What to do about one damaged document; `document` is its id as stored, where it is known."""
    if isinstance(document, bytes):
        document = document.decode("utf-8", "replace")
    return _AGAIN.format("ID" if document is None else shlex.quote(str(document)))


def _or_repaired(table: str, document: object) -> str:
    """A damaged text cannot be made anew from itself: a repair would drop the document."""
    return again(document) + ("" if table == "texts" else _FROM_ITS_TEXT)


def advice(table: str, document: object = None) -> str:
    """What to do about a damaged row of a table. Terms and counts belong to no one document."""
    if table in _OF_A_DOCUMENT:
        return _or_repaired(table, document)
    if table in _DERIVED:
        return REMAKE
    return _SETTING if table == "settings" else REBUILD
