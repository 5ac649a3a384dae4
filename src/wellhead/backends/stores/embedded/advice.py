"""How damage is mended: one advice for each table, with a command that works."""

from __future__ import annotations

import shlex

__all__ = ["REBUILD", "advice", "again"]

REBUILD = "restore a backup, or delete the folder of the index and index the documents again"
_AGAIN = "index it again (`wellhead index FOLDER`, or `add` in a program), or remove it: `wellhead rm {}`"
_OF_A_DOCUMENT = ("documents", "texts", "passages", "vectors")
_SETTING = "what the index was made with cannot be told any more: " + REBUILD


def again(document: object = None) -> str:
    """What to do about one damaged document; `document` is its id as stored, where it is known."""
    if isinstance(document, bytes):
        document = document.decode("utf-8", "replace")
    return _AGAIN.format("ID" if document is None else shlex.quote(str(document)))


def advice(table: str, document: object = None) -> str:
    """What to do about a damaged row of a table. Terms and counts belong to no one document."""
    if table in _OF_A_DOCUMENT:
        return again(document)
    return _SETTING if table == "settings" else REBUILD
