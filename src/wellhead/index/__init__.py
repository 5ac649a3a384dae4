"""`Index`: the front door. A folder that documents go into and cited passages come out of."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack, cast

import msgspec

from wellhead.errors import ScopeError, StoreError, WellheadError
from wellhead.events import Sink, emit
from wellhead.index.house import House, OnDegrade, Scope, open_house
from wellhead.records import (
    BackupReport,
    CompactReport,
    Document,
    Explanation,
    Hits,
    IndexStats,
    Passage,
    RepairReport,
    Storage,
    SyncReport,
    VerifyReport,
)
from wellhead.search.scope import scope_value

# What searches and what writes (numpy, parsers) is imported by the first call that needs it: see each method.
if TYPE_CHECKING:
    from wellhead.ingest.chunk import Chunker
    from wellhead.ingest.load import Progress
    from wellhead.ports import DocumentSummary, Embedder, View
    from wellhead.search.request import Cut, Fusion, Mode, Options
    from wellhead.search.within import Within

__all__ = ["Index"]


class Index:
    """A searchable index in a folder (or in memory); make one with `Index.open`.

    A handle is safe to use from several threads. Close it when done, or use it as a context manager.
    """

    def __init__(self, house: House, scope: Scope | None = None) -> None:
        self._house = house
        self._scope = scope
        self._within: Within | None = None

    @classmethod
    def open(
        cls,
        path: str | Path = "kb",
        *,
        scope_key: str | None = None,
        embedder: str | Embedder | None = None,
        chunker: str | Chunker | None = None,
        languages: Sequence[str] | None = None,
        date_keys: Sequence[str] | None = None,
        create: bool = True,
        read_only: bool = False,
        sinks: Sequence[Sink] = (),
        capture_content: bool = False,
        on_degrade: OnDegrade = "flag",
    ) -> Index:
        """Open the index in a folder, or make it there. What is left out is as the index was made.

        Args:
            path: the folder; ":memory:" for an index that is gone with the process.
            scope_key: the metadata key that keeps tenants apart. Fixed when the index is made; with one, every read
                and write needs a scope: `index.scoped(tenant="acme")`.
            embedder: a name ("static") or any object with `name`, `dims`, `embed_documents` and `embed_query`.
            chunker: "structure", "fixed", "paragraph", or a function from a document to slices.
            languages: ISO 639-1 codes among which a document's language is detected.
            date_keys: metadata keys that hold ISO-8601 dates; a document with anything else there is refused.
            create: False raises when there is no index yet.
            read_only: never write.
            sinks: callables that are told every `Event`.
            capture_content: put queries and texts into events too.
            on_degrade: when the query cannot be embedded, "flag" answers by words alone and says so; "fail" raises.

        Raises:
            UsageError: no index there and create=False.
            ConfigError: an unknown name, or options that contradict how the index was made.
            StoreError: the folder cannot be read or written, or holds something else.
        """
        return cls(
            open_house(
                path,
                scope_key=scope_key,
                embedder=embedder,
                chunker=chunker,
                languages=languages,
                date_keys=date_keys,
                create=create,
                read_only=read_only,
                sinks=sinks,
                capture_content=capture_content,
                on_degrade=on_degrade,
            )
        )

    @property
    def scope_key(self) -> str | None:
        """The metadata key that keeps tenants apart here: the index's, or else the one this handle is bound by."""
        return self._house.scope_key or (None if self._scope is None else self._scope.key)

    @property
    def scope(self) -> str | None:
        """The value that this handle is bound to, or None."""
        return None if self._scope is None else self._scope.value

    @property
    def index_version(self) -> int:
        """Grows with every write, by whichever process; 0 for an index never written to."""
        return self._house.store.version()

    def scoped(self, **scope: str) -> Index:
        """A handle that can only see and write one scope: `index.scoped(tenant="acme")`.

        It filters before ranking, counts only its own passages in every statistic, and stamps what it writes.

        Raises:
            ScopeError: not exactly one key, another key than the index's own, a blank value, or a handle that is
                already bound to another scope.
        """
        if len(scope) != 1:
            raise ScopeError("a scope is one key and its value", why=f"got {len(scope)}", fix='scoped(tenant="acme")')
        ((key, value),) = scope.items()
        if self._house.scope_key not in (None, key):
            raise ScopeError(f"this index is scoped by {self._house.scope_key!r}, not by {key!r}")
        bound = Scope(key, scope_value(key, value))
        if self._scope not in (None, bound):
            raise ScopeError("this handle is bound to another scope already", fix="bind a fresh handle of the index")
        return Index(self._house, bound)

    # -- writing ----------------------------------------------------------------------------------------------------

    def add(self, documents: Iterable[Document], *, progress: Progress | None = None) -> SyncReport:
        """Add documents, or replace those of the same id; all others stay.

        A document added over one that was synced from a folder belongs to the program from then on.

        Raises:
            UsageError: something that is no `Document`.
            ScopeError: a document outside the handle's scope, or without one where the index has scopes.
            IngestStopped: the embedder failed; its `report` says what was written before.
            StaleIndex: the index was made with another embedder, chunker or analyzer.
            StoreError: the disk failed; nothing of the failing batch is visible.
        """
        from wellhead.index import writing

        started = time.perf_counter()
        return self._finished("add", writing.add(self._house, self._scope, documents, progress), started)

    def sync(
        self,
        path: str | Path,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        prune: bool = True,
        prune_all: bool = False,
        dry_run: bool = False,
        origin: str | None = None,
        prefix: str = "",
        progress: Progress | None = None,
    ) -> SyncReport:
        """Make the documents that came from a folder (or a file) equal to it: add, update and remove them.

        Documents of other origins stay. What cannot be read is refused with a reason, its stored version stays, and
        the run goes on.

        Args:
            path: a folder, walked by the rules of `.gitignore`, or one file.
            include, exclude: patterns as in `.gitignore`; `include` keeps only what matches.
            prune: remove documents whose file is gone (or is left out now).
            prune_all: remove every document of this origin when none is found any more; without it that is an error,
                as a typo in a pattern and an unmounted folder look the same.
            dry_run: write nothing; the report says what would be.
            origin: names the folder; by default its path from where the index lies, so that both can move together.
            prefix: put before every id, where two folders hold files of the same name.
            progress: told (done, total, id) after each batch.

        Raises:
            UsageError: no such path, or a blank one; patterns that are no list; nothing where documents came from.
            ScopeError, IngestStopped, StaleIndex, StoreError: as `add`.
        """
        from wellhead.index import writing

        started = time.perf_counter()
        reading = writing.FolderReading(
            self._house, self._scope, path, include=include, exclude=exclude, prefix=prefix, origin=origin
        )
        report = writing.sync(
            self._house, reading, prune=prune, prune_all=prune_all, dry_run=dry_run, progress=progress
        )
        return self._finished("sync", report, started)

    def remove(self, ids: str | Iterable[str]) -> int:
        """Remove documents by id; how many there were. They are gone from every search at once."""
        from wellhead.index import writing

        return writing.remove(self._house, self._scope, [ids] if isinstance(ids, str) else list(ids))

    def _finished(self, verb: str, report: SyncReport, started: float) -> SyncReport:
        report = msgspec.structs.replace(report, seconds=time.perf_counter() - started)
        emit(
            self._house.sinks,
            "ingest.finished",
            verb=verb,
            read=report.read,
            removed=report.removed,
            refused=len(report.refused),
            failed=len(report.failed),
            passages=report.passages,
            embedded=report.embedded,
            seconds=report.seconds,
        )
        return report

    # -- searching --------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        filters: Mapping[str, object] | None = None,
        mode: Mode = "hybrid",
        fusion: Fusion = "blend",
        weight: float | None = None,
        per_document: int | None = None,
        max_tokens: int | None = None,
        cut: Cut = "query",
        threshold: float | Mapping[str, float] | None = None,
        language: str | None = None,
    ) -> Hits:
        """The passages that answer a query, best first; or a typed reason why there are none.

        Args:
            query: 1 to 8,000 characters; data, never a query language.
            k: 1 to 100.
            filters: as in `wellhead.search.filters`; applied before ranking.
            mode: both legs, or one of them.
            fusion: how the legs become one score (`wellhead.search.fuse`).
            weight: of the lexical leg, 0 to 1, in `blend` and `convex`; None for the embedder's own.
            per_document: the most passages of one document.
            max_tokens: the most tokens of all texts together; what does not fit is skipped, smaller ones are tried.
            cut: "query" decides once whether anything is close enough; "hit" drops each hit below; "off" judges none.
            threshold: explicit cuts by signal (`{"cosine": 0.6}`; a plain number is a cosine); drops hits below.
            language: of the query, ISO 639-1; None detects it where the index holds several.

        Raises:
            UsageError: an option out of range, a blank query, an unknown filter operator.
            ScopeError: the index has scopes and this handle has none.
            BackendError, StaleIndex: the dense leg is gone, in mode "dense" or with on_degrade="fail".
            CorruptStore: a passage is not what was written.
        """
        options: Options = {
            "k": k,
            "filters": filters,
            "mode": mode,
            "fusion": fusion,
            "weight": weight,
            "per_document": per_document,
            "max_tokens": max_tokens,
            "cut": cut,
            "threshold": threshold,
            "language": language,
        }
        started = time.perf_counter()
        try:
            hits = self._bound(filters)._searched(query, options)  # noqa: SLF001 (another handle of this index)
        except WellheadError as error:
            emit(self._house.sinks, "retrieval.failed", retriever="index", error_kind=type(error).__name__)
            raise
        latency = (time.perf_counter() - started) * 1e3
        self._tell(query, k, hits, latency)
        return msgspec.structs.replace(hits, timings={**hits.timings, "total": latency})

    async def asearch(self, query: str, **options: Unpack[Options]) -> Hits:
        """`search` in a worker thread, with the same options, so that the event loop goes on."""
        import asyncio  # late: it costs a third of the whole import

        return await asyncio.to_thread(self.search, query, **options)

    def explain(self, query: str, passage: str | Passage, **options: Unpack[Options]) -> Explanation:
        """Why a passage ranks where it does for a query, or why it is not returned: same options as `search`.

        Args:
            passage: a passage, its id, or the first characters of its id (6 at least).

        Raises:
            UsageError: no such passage in this scope; otherwise as `search`.
        """
        bound = self._bound(options.get("filters"))
        if bound is not self:
            return bound.explain(query, passage, **options)
        from wellhead.index import asking

        passage_id = passage.id if isinstance(passage, Passage) else passage
        return asking.explain(self._house, self._view, query, [passage_id], options)[0]

    def explain_all(self, query: str, passages: Sequence[Passage], **options: Unpack[Options]) -> list[Explanation]:
        """As `explain`, for several passages of one query: it is searched once for all of them."""
        bound = self._bound(options.get("filters"))
        if bound is not self:
            return bound.explain_all(query, passages, **options)
        from wellhead.index import asking

        return asking.explain(self._house, self._view, query, [passage.id for passage in passages], options)

    def _bound(self, filters: Mapping[str, object] | None) -> Index:
        """The handle to search with: in an index with scopes, a filter on the scope key binds it for this call."""
        key = self._house.scope_key
        if key is None or self._scope is not None or not isinstance(filters, Mapping) or key not in filters:
            return self
        value = filters[key]
        if isinstance(value, dict):
            value = cast("dict[str, object]", value).get("$eq")
        return self.scoped(**{key: scope_value(key, value)})

    def _searched(self, query: str, options: Options) -> Hits:
        from wellhead.index import asking

        return asking.search(self._house, lambda: self._view("searched"), query, options)

    def _view(self, verb: str = "read") -> View:
        from wellhead.index import asking

        view = self._house.store.view(self._house.store_scope(self._scope, verb))
        if self._scope is None or self._house.scope_key is not None:
            return view
        within = self._within
        if within is None or within.whole is not view:
            within = self._within = asking.within(view, self._scope)
        return within

    def _tell(self, query: str, k: int, hits: Hits, latency: float) -> None:
        content = {"query": query, "texts": [hit.text for hit in hits]} if self._house.capture_content else {}
        emit(
            self._house.sinks,
            "retrieval.searched",
            retriever="index",
            backend=type(self._house.store).__name__,
            k=k,
            count=len(hits),
            ids=[hit.id for hit in hits],
            dropped=hits.dropped,
            outcome=hits.outcome,
            degraded=[part.leg for part in hits.degraded],
            latency_ms=latency,
            **content,
        )

    # -- looking ----------------------------------------------------------------------------------------------------

    def get(self, document_id: str) -> Document | None:
        """The document of this id in this scope, or None."""
        document = self._house.store.get(self._house.store_scope(self._scope, "read"), document_id)
        return document if document is not None and self._is_mine(document) else None

    def documents(self) -> Iterator[Document]:
        """All documents of this scope, by id."""
        return filter(self._is_mine, self._house.store.documents(self._house.store_scope(self._scope, "read")))

    def summaries(self) -> list[DocumentSummary]:
        """All documents of this scope, by id, without their texts; a damaged one is named and marked."""
        held = self._house.store.summaries(self._house.store_scope(self._scope, "read"))
        return [one for one in held if self._is_mine(one)]

    def passage(self, passage_id: str) -> Passage:
        """The passage of this id, or of an id that begins so (6 characters at least).

        Raises:
            UsageError: no such passage in this scope, or several.
        """
        from wellhead.index import asking

        return asking.steady(self._view, lambda view: view.passages([asking.row_of(view, passage_id)])[0])

    def passages(self, document_id: str) -> list[Passage]:
        """The passages of a document in their order; none for a document that is not in this scope."""
        from wellhead.index import asking

        return asking.steady(self._view, lambda view: view.passages(view.rows_of(document_id)))

    def stats(self) -> IndexStats:
        """What this scope holds; without a scope, also how it lies on the disk."""
        view = self._view()
        store = self._house.store
        documents = self.summaries()
        areas = Counter(str(document.metadata.get("area", "")) for document in documents)
        storage, bound = store.storage(), self._scope is not None
        return IndexStats(
            documents=len(documents),
            passages=len(view),
            with_vectors=view.with_vectors,
            incomplete=sum(document.incomplete for document in documents),
            languages=dict(view.languages),
            areas=dict(sorted(areas.items())),
            vectors=0 if bound else store.counts()[0],
            bytes=0 if bound else storage.bytes,
            fingerprint=store.settings(),
            index_version=view.version,
            storage=None if bound or store.folder is None else storage,
        )

    # -- upkeep of the whole index, whatever the scope --------------------------------------------------------------

    def storage(self) -> Storage:
        """How the whole index lies on the disk: segments, dead rows, sizes. In memory all of it is 0.

        Raises:
            ScopeError: the handle is bound to a scope.
        """
        from wellhead.index import upkeep

        upkeep.refuse_bound(self._scope, "measured")
        return self._house.store.storage()

    def verify(self) -> VerifyReport:
        """Check the whole index: every checksum, count and reference, the segments row by row, sampled searches.

        Raises:
            ScopeError: the handle is bound to a scope; what is found names documents of all of them.
        """
        from wellhead.index import upkeep

        upkeep.refuse_bound(self._scope, "verified")
        documents, passages, vectors, findings = self._house.store.verify()
        try:
            notes = upkeep.notes(self.storage())
        except StoreError:  # what stands in the way is among the findings
            notes = ()
        return VerifyReport(
            documents=documents, passages=passages, vectors=vectors, findings=tuple(findings), notes=notes
        )

    def repair(self, *, progress: Progress | None = None) -> RepairReport:
        """Make anew what `verify` finds wrong, as far as that can be, and say what is lost.

        Where only segments are wrong they are made from the tables. Where the tables are damaged, every document whose
        row and text are whole is ingested again from its stored text, with the vectors that are still sound, into a new
        file; the old one is kept beside it. Nobody else may have the index open then. What is lost comes back when its
        folder is indexed again. An index that cannot be opened is repaired with `repair_at`.

        Args:
            progress: told (done, total, id) after each batch.

        Raises:
            ScopeError: the handle is bound to a scope.
            WriterBusy: the tables have to be replaced, and somebody else has the index open.
            CorruptStore: nothing can be saved. IngestStopped: vectors are lost, and the embedder failed.
            StaleIndex: the index was made with another embedder, chunker or analyzer.
            StoreError: open read-only, or the disk failed. The index is as it was, after each of these.
        """
        from wellhead.index import upkeep

        upkeep.refuse_bound(self._scope, "repaired")
        return upkeep.repair(self._house, progress)

    @classmethod
    def repair_at(
        cls,
        path: str | Path,
        *,
        scope_key: str | None = None,
        embedder: str | Embedder | None = None,
        chunker: str | Chunker | None = None,
        languages: Sequence[str] | None = None,
        date_keys: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> RepairReport:
        """Repair the index in a folder, also one that cannot be opened any more (see `repair`).

        Args:
            path: the folder.
            scope_key, embedder, chunker, languages, date_keys: as the index was made; needed where that is damaged too
                (`scope_key=""` and `date_keys=[]` for none, `languages=[]` for all), and for objects of your own.

        Raises:
            ConfigError: what the index was made with is lost and not given, or given otherwise than it was.
            WriterBusy, CorruptStore, IngestStopped, StaleIndex, StoreError: as `repair`.
        """
        from wellhead.index import upkeep

        given = upkeep.Given(
            scope_key=scope_key, embedder=embedder, chunker=chunker, languages=languages, date_keys=date_keys
        )
        return upkeep.repair_at(path, given, progress)

    def compact(self) -> CompactReport:
        """Take what was deleted from the disk for good: texts, vectors, words, names.

        Readers go on meanwhile, writers wait; the tables need their own size again for a moment, twice.

        Raises:
            ScopeError: the handle is bound to a scope.
            WriterBusy: somebody reads an older state for longer than the timeout, or others write without a pause.
            StorageFull, StoreError: nothing is lost; run it again.
        """
        from wellhead.index import upkeep

        upkeep.refuse_bound(self._scope, "compacted")
        return self._house.store.compact()

    def backup(self, dest: str | Path) -> BackupReport:
        """Copy the index, as it is at one moment, into a new folder, while others go on reading and writing.

        The folder is an index like any other: to restore it, copy it (all of it, into an empty place).

        Raises:
            UsageError: `dest` is there and not empty, or lies within the index; an index in memory.
            ScopeError: the handle is bound to a scope.
            StorageFull, StoreError: it cannot be written, or the index cannot be read; nothing of it is left then.
        """
        from wellhead.index import upkeep

        upkeep.refuse_bound(self._scope, "backed up")
        return self._house.store.backup(upkeep.folder(dest, "a backup"))

    def _is_mine(self, document: Document | DocumentSummary) -> bool:
        if self._scope is None or self._house.scope_key is not None:
            return True
        return document.metadata.get(self._scope.key) == self._scope.value

    def close(self) -> None:
        """Release the files. All handles of this index are closed with it."""
        self._house.store.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
