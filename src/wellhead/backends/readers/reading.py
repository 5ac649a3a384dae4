"""What a reader hands back, and the error by which it says that a file is no text at all."""

from __future__ import annotations

import msgspec

from wellhead.errors import DocumentError
from wellhead.ingest.chunk.markdown import one_line
from wellhead.records import Metadata

__all__ = ["FRONT_MATTER", "REVISION", "FileSkipped", "Reading"]

# The metadata key under which a reader says why front matter was left in the text.
FRONT_MATTER = "front_matter"
# Raise it with every change by which some file becomes another document: of a reader, of `read_file`, or of a library
# that they use. It is part of what tells that a file is unchanged, so the next sync reads every file again.
REVISION = 1


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A file as text.

    Args:
        text: what is stored and cited; all offsets refer to it.
        title: from the file itself (front matter, first heading, `<title>`), clipped to one line of at most 200
            characters; "" for none.
        metadata: what the file says of itself, in the types that can be filtered on. `encoding` is there when the
            encoding was guessed or bytes had to be replaced.
        media_type: of `text`, not of the file: HTML and CSV become "text/markdown".
        language: ISO 639-1 code where the file or its kind says so; "en" for source code.
    """

    text: str
    title: str = ""
    metadata: Metadata = {}
    media_type: str = "text/plain"
    language: str | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "title", one_line(self.title))


class FileSkipped(DocumentError):  # noqa: N818 (named for what happened, like its siblings)
    """A file that holds nothing to index, as its content shows: to be counted as skipped, not as refused.

    `reason` is a counter key: "binary" or "empty".
    """

    def __init__(self, reason: str, *, where: str = "") -> None:
        super().__init__(f"skipped: {reason}", where=where, why=f"the file is {reason}")
        self.reason = reason
