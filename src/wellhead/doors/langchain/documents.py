"""Hits as LangChain's documents, in a list that still knows how the search went."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document

from wellhead.records import Hit, Hits, Metadata

__all__ = ["Documents", "plain", "retrieved", "stored", "warn"]

log = logging.getLogger("wellhead")


class Documents(list[Document]):
    """A list of documents, and the `hits` that they were made of: an empty one says there why it is empty."""

    def __init__(self, documents: Iterable[Document], hits: Hits) -> None:
        super().__init__(documents)
        self.hits = hits

    @property
    def outcome(self) -> str:
        """`hits`, `no_match`, `filtered_out` or `empty_index`."""
        return self.hits.outcome

    def __repr__(self) -> str:
        worse = "".join(f", without the {part.leg} leg" for part in self.hits.degraded)
        return f"Documents({super().__repr__()}, outcome={self.outcome!r}{worse})"


def retrieved(hits: Hits) -> Documents:
    """One document a passage: its id, its text, its document's metadata, and under "wellhead" what the search said."""
    degraded = [part.leg for part in hits.degraded]
    return Documents((_of_hit(hit, degraded) for hit in hits), hits)


def _of_hit(hit: Hit, degraded: list[Any]) -> Document:
    said: dict[str, Any] = {
        "rank": hit.rank,
        "score": hit.score,
        "verdict": hit.verdict,
        "citation": hit.citation,
        "document_id": hit.passage.document_id,
    }
    if degraded:
        said["degraded"] = degraded
    metadata = plain(hit.metadata, hit.uri or hit.passage.document_id, hit.title)
    return Document(id=hit.id, page_content=hit.text, metadata={**metadata, "wellhead": said})


def stored(hits: Hits) -> Documents:
    """One document a document of the index, under its own id: the text is that of its best passage."""
    made = (
        Document(id=hit.passage.document_id, page_content=hit.text, metadata=plain(hit.metadata, hit.uri, hit.title))
        for hit in hits
    )
    return Documents(made, hits)


def plain(metadata: Metadata, uri: str, title: str) -> dict[str, Any]:
    """Metadata as LangChain's programs expect it: lists as lists, the address under "source"."""
    own = {key: list(value) if isinstance(value, tuple) else value for key, value in metadata.items()}
    named = {name: value for name, value in (("source", uri), ("title", title)) if value}
    return {**named, **own}


def warn(hits: Hits) -> Hits:
    """The same hits; a search that ran worse than asked is logged, for LangChain's callers see documents alone."""
    for part in hits.degraded:
        log.warning("a search ran without its %s leg; to mend it: %s", part.leg, part.fix)
    return hits
