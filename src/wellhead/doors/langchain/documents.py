"""Hits as LangChain's documents, in a list that still knows how the search went."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document

from wellhead.errors import UsageError
from wellhead.records import Hit, Hits, Metadata, Passage, Source

__all__ = ["Documents", "of_texts", "one_each", "plain", "retrieved", "scored", "stored", "warn"]

Given = TypeVar("Given")

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
    """One document a passage: its id, its text, its document's metadata, and under "wellhead" what the search said.

    A text that stands in several places is given once; where else it stands is told there, in "also_in".
    """
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
    if hit.also_in:
        said["also_in"] = [_elsewhere(place) for place in hit.also_in]
    if degraded:
        said["degraded"] = degraded
    metadata = plain(hit.metadata, hit.uri or hit.passage.document_id, hit.title)
    return Document(id=hit.id, page_content=hit.text, metadata={**metadata, "wellhead": said})


def _elsewhere(place: Source) -> dict[str, Any]:
    return {
        "id": place.passage_id,
        "document_id": place.document_id,
        "citation": place.citation,
        "metadata": plain(place.metadata, place.uri or place.document_id, place.title),
    }


def stored(hits: Hits, k: int) -> Documents:
    """The k best documents of the index, under their own ids; the text of each is that of its best passage."""
    return Documents((document for document, _ in scored(hits, k)), hits)


def scored(hits: Hits, k: int) -> list[tuple[Document, float | None]]:
    """The same with their scores. Documents of one text are as many documents, which share a score."""
    found: dict[str, tuple[Document, float | None]] = {}
    for hit in hits:
        places: tuple[Passage | Source, ...] = (hit.passage, *hit.also_in)
        for place in places:
            name = place.document_id
            if name not in found:
                metadata = plain(place.metadata, place.uri, place.title)
                found[name] = (Document(id=name, page_content=hit.text, metadata=metadata), hit.score)
    return list(found.values())[:k]


def of_texts(
    texts: Iterable[str], metadatas: Iterable[dict[str, Any]] | None, ids: Iterable[str | None] | None
) -> list[Document]:
    """A document a text. Raises UsageError for not as many metadatas or ids as texts."""
    every = list(texts)
    told: list[dict[str, Any]] = [{} for _ in every] if metadatas is None else one_each(metadatas, every, "metadatas")
    names = [None for _ in every] if ids is None else one_each(ids, every, "ids")
    return [
        Document(id=name, page_content=text, metadata=metadata)
        for text, metadata, name in zip(every, told, names, strict=True)
    ]


def one_each(given: Iterable[Given], of: Sequence[object], what: str) -> list[Given]:
    """As a list. Raises UsageError unless there is one for each: a pair that is not there is a document lost."""
    found = list(given)
    if len(found) != len(of):
        raise UsageError(f"{len(of)} documents and {len(found)} {what}", fix=f"give as many {what} as documents")
    return found


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
