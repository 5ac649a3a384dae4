"""What is stored of a document: its passages, their terms, and the rows that hold both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from wellhead.records.document import Document, Metadata

__all__ = ["DocumentRow", "Passage", "PassageRow", "Terms", "cite"]


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """What is embedded, ranked and cited: an exact slice of one document.

    Args:
        id: 64 hex characters, a hash of the scope, the document's id, the text and its occurrence: stable under
            edits elsewhere in the document. The first 12 are shown to people.
        document_id: the document it was cut from.
        ordinal: its place among the passages of its document, from 0.
        text: exactly `document.text[start:end]`; never blank.
        start, end: characters, half open.
        heading: the path of headings in force where the passage begins, outermost first.
        page: from 1, or None where the source has no pages.
        uri, title, metadata, language: of the document.
        content_hash: the first 12 hex characters of sha256(text).
        context: what stands before `text` in what is embedded and analysed: title, heading path (one line and at most
            200 characters each), a table's header.
        flags: marks set on the way in (for example "generated"); empty for ordinary text.
    """

    id: str
    document_id: str
    ordinal: int
    text: str
    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int | None = None
    uri: str = ""
    title: str = ""
    metadata: Metadata = {}
    content_hash: str = ""
    language: str | None = None
    context: str = ""
    flags: tuple[str, ...] = ()

    @property
    def citation(self) -> str:
        """Where a person finds it: `guides/keys.md § Rotation`, with `, p. 4` where there are pages."""
        return cite(self.uri or self.document_id, self.heading, self.page)

    @property
    def embedded_text(self) -> str:
        """What the embedder sees: the context, then the text."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @property
    def analyzed_text(self) -> str:
        """What the analyzer sees: the context twice, then the text. A word of the title or a heading counts twice."""
        return f"{self.context}\n{self.context}\n{self.text}" if self.context else self.text


def cite(place: str, heading: Sequence[str], page: int | None) -> str:
    """The citation of a place: path or address, nearest heading, page."""
    cited = f"{place} § {heading[-1]}" if heading else place
    return f"{cited}, p. {page}" if page is not None else cited


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """A text as the analyzer sees it: counts of stems, and of the exact words."""

    stems: Mapping[str, int]
    words: Mapping[str, int]


class PassageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A passage as a store writes it.

    Args:
        digest: 32 bytes over id, metadata, heading and span: what tells that a row must be written again.
        vector_key: 32 bytes that name the vector of its context and text; b"" for a passage without a vector.
        terms: its analysed terms.
    """

    passage: Passage
    digest: bytes
    vector_key: bytes
    terms: Terms


class DocumentRow(msgspec.Struct, frozen=True, kw_only=True):
    """A document as a store writes it, whole, with its passages.

    Args:
        scope: the value under the index's scope key; "" in an index without scopes.
        origin: the folder it was synced from; "" when a program added it.
        digest: 32 bytes over the document and the fingerprint of chunker and analyzer.
        incomplete: some passage is missing; the next run tries again.
        source: what tells that the file it was read from is the same, without reading it again; b"" for none.
    """

    scope: str
    document: Document
    origin: str
    digest: bytes
    incomplete: bool
    passages: tuple[PassageRow, ...]
    source: bytes = b""
