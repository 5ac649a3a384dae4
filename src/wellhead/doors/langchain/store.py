"""`WellheadVectorStore`: an index, as LangChain's vector store."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from wellhead import records
from wellhead.backends.retrievers.embedding import embedder_of
from wellhead.doors.langchain.documents import of_texts, one_each, plain, scored, stored, warn
from wellhead.errors import BackendError, UsageError
from wellhead.index import Index
from wellhead.ingest.chunk import Slice
from wellhead.records import Hits
from wellhead.search.request import Mode

__all__ = ["WellheadVectorStore", "whole"]


def whole(document: records.Document) -> list[Slice]:
    """The chunker of a vector store: one passage a document, as LangChain's own splitters have cut it already."""
    return [Slice(start=0, end=len(document.text))] if document.text.strip() else []


class WellheadVectorStore(VectorStore):
    """An index as a vector store: the k nearest documents, each with the text of its best passage.

    Documents of the same text are as many documents, and each counts as one of the k.

    A vector store has no word for "nothing is close enough", so nothing is cut here; `WellheadRetriever` says it. The
    list that a search returns has `hits` all the same. Errors are raised, never an empty list.

    Args:
        index: searched and written; a scoped handle sees and writes its scope alone.
        embedding: only for `embeddings`, for those who ask; the index embeds by itself.
        mode: "hybrid", or one leg.
    """

    def __init__(self, index: Index, *, embedding: Embeddings | None = None, mode: Mode = "hybrid") -> None:
        self.index = index
        self._embedding = embedding
        self._mode: Mode = mode

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embeddings | None,
        metadatas: Iterable[dict[str, Any]] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        path: str = ":memory:",
        mode: Mode = "hybrid",
        **kwargs: Any,
    ) -> WellheadVectorStore:
        """A store over a new index of these texts, each one passage; `embedding` None for the shipped embedder.

        Args:
            path: the folder of the index; what else is given goes to `Index.open`.

        Raises:
            UsageError: as of `add_texts`; not as many metadatas or ids as texts is told before there is an index.
        """
        documents = of_texts(texts, metadatas, ids)
        model = None if embedding is None else embedder_of(embedding)
        index = Index.open(path, embedder=model, chunker=kwargs.pop("chunker", whole), **kwargs)
        store = cls(index, embedding=embedding, mode=mode)
        store.add_documents(documents)
        return store

    @property
    def embeddings(self) -> Embeddings | None:
        return self._embedding

    # -- writing ----------------------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Iterable[dict[str, Any]] | None = None,
        *,
        ids: Iterable[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Add texts as `add_documents` adds documents. None of them is left over.

        Raises:
            UsageError: not as many metadatas or ids as texts (nothing is written), or as of `add_documents`.
        """
        _refuse(unknown)
        return self.add_documents(of_texts(texts, metadatas, ids))

    def add_documents(
        self, documents: Iterable[Document], *, ids: Iterable[str | None] | None = None, **unknown: Any
    ) -> list[str]:
        """Add documents, or replace those of the same id; their ids, in order. One without an id gets a random one.

        Raises:
            UsageError: not as many ids as documents (nothing is written), or a document that cannot be taken, as the
                second of one id. BackendError: one could not be embedded. Others were written.
        """
        _refuse(unknown)
        documents = list(documents)
        wanted = [document.id for document in documents] if ids is None else one_each(ids, documents, "ids")
        named = [name or str(uuid.uuid4()) for name in wanted]
        report = self.index.add([_own(document, name) for document, name in zip(documents, named, strict=True)])
        for kind, refusals in ((UsageError, report.refused), (BackendError, report.failed)):
            if refusals:
                first = refusals[0]
                raise kind(f"{len(refusals)} of the documents cannot be taken", where=repr(first.id), why=first.reason)
        return named

    def delete(self, ids: list[str] | None = None, **unknown: Any) -> bool:
        """Remove documents by id; those that are not there are not missed.

        Raises:
            UsageError: no ids: "everything" has to be said in other words.
        """
        _refuse(unknown)
        if ids is None:
            raise UsageError("name the documents to delete", why="got no ids", fix="delete(ids=[...])")
        self.index.remove(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of these ids, whole; those that are not there are left out."""
        found = [self.index.get(name) for name in ids]
        return [
            Document(id=each.id, page_content=each.text, metadata=plain(each.metadata, each.uri, each.title))
            for each in found
            if each is not None
        ]

    # -- searching --------------------------------------------------------------------------------------------------

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, object] | None = None,  # noqa: A002 (LangChain's word)
        **unknown: Any,
    ) -> list[Document]:
        """The k best documents; `filter` as in `wellhead.search.filters`."""
        _refuse(unknown)
        return stored(self._hits(query, k, filter, self._mode), k)

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, object] | None = None,  # noqa: A002 (LangChain's word)
        **unknown: Any,
    ) -> list[tuple[Document, float]]:
        """The same with the score that orders them, higher for better; in hybrid mode it is no cosine."""
        _refuse(unknown)
        return _measured(self._hits(query, k, filter, self._mode), k)

    def _similarity_search_with_relevance_scores(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, object] | None = None,  # noqa: A002 (LangChain's word)
        **unknown: Any,
    ) -> list[tuple[Document, float]]:
        _refuse(unknown)
        # LangChain wants 0 to 1, of one meaning for all queries: the cosine, nothing below 0 being like anything.
        hits = self._hits(query, k, filter, "dense")
        return [(each, max(0.0, min(1.0, score))) for each, score in _measured(hits, k)]

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return await run_in_executor(None, self._similarity_search_with_relevance_scores, query, k, **kwargs)

    def _hits(self, query: str, k: int, filters: Mapping[str, object] | None, mode: Mode) -> Hits:
        return warn(self.index.search(query, k=k, filters=filters, mode=mode, cut="off", per_document=1))


def _refuse(unknown: Mapping[str, object]) -> None:
    """Raises UsageError for options that would otherwise be dropped without a word: `filters=` for `filter=`."""
    if unknown:
        raise UsageError(f"this vector store knows no {', '.join(sorted(unknown))}", fix="known: k, filter, ids")


def _own(document: Document, name: str) -> records.Document:
    """A LangChain document in our words; its "source" and "title" are where a citation finds it."""
    metadata = document.metadata
    told = {field: metadata.get(key) for field, key in (("uri", "source"), ("title", "title"))}
    return records.Document(
        id=name,
        text=document.page_content,
        metadata=metadata,
        **{field: value for field, value in told.items() if isinstance(value, str)},
    )


def _measured(hits: Hits, k: int) -> list[tuple[Document, float]]:
    return [(document, score) for document, score in scored(hits, k) if score is not None]
