"""`Index`: the front door. A folder that documents go into and cited passages come out of."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec

from wellhead import wiring
from wellhead.analyze import ANALYZER, LANGUAGES, analyze, identifiers, query_language, stems_of
from wellhead.backends.readers.folder import Folder, read_folder
from wellhead.backends.readers.reading import FileSkipped
from wellhead.backends.readers.walk import Found
from wellhead.backends.stores.arrays import StaleView
from wellhead.errors import (
    BackendError,
    ConfigError,
    DocumentError,
    ScopeError,
    StaleIndex,
    UsageError,
    WellheadError,
)
from wellhead.events import Sink, emit
from wellhead.ingest.chunk import Chunker
from wellhead.ingest.load import Incoming, Progress, Recipe, load, unit
from wellhead.ports import Embedder, Store, View
from wellhead.records import (
    Degraded,
    Document,
    Explanation,
    Hits,
    IndexStats,
    Passage,
    Refusal,
    SyncReport,
    VerifyReport,
)
from wellhead.search import hybrid
from wellhead.search.explain import explain
from wellhead.search.filters import Compare, instant, select
from wellhead.search.request import Asked, Cut, Fusion, Mode, check
from wellhead.search.within import Within

if TYPE_CHECKING:
    from wellhead.ports import FloatArray

__all__ = ["Index"]

OnDegrade = Literal["flag", "fail"]


class _Scope(msgspec.Struct, frozen=True):
    """What a handle is bound to: `metadata[key] == value`."""

    key: str
    value: str


class _House(msgspec.Struct):
    """What all handles of one index share."""

    store: Store
    recipe: Recipe
    scope_key: str | None
    date_keys: tuple[str, ...]
    stale: dict[str, tuple[str, str]]
    sinks: tuple[Sink, ...]
    capture_content: bool
    on_degrade: OnDegrade


class Index:
    """A searchable index in a folder (or in memory); make one with `Index.open`.

    A handle is safe to use from several threads. Close it when done, or use it as a context manager.
    """

    def __init__(self, house: _House, scope: _Scope | None = None) -> None:
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
        if not create and str(path) != ":memory:" and not (Path(path) / "wellhead.sqlite").is_file():
            raise UsageError(
                f"there is no index in {str(path)!r}", fix=f"make one: wellhead index FOLDER --into {str(path)}"
            )
        store = wiring.store(path, read_only=read_only, create=create)
        try:
            made = store.settings()
            recipe, names = _recipe(made, embedder, chunker, languages)
            key = _settled(made, "scope_key", scope_key or "") or None
            dates = tuple(date_keys) if date_keys is not None else tuple(made.get("date_keys", "").split())
            wanted = {**names, "scope_key": key or "", "date_keys": " ".join(dates)}
            stale = {name: (made[name], now) for name, now in names.items() if made and made.get(name) != now}
            if wanted != made and not stale and not store.read_only:
                store.set_settings(wanted)
        except BaseException:
            store.close()
            raise
        return cls(
            _House(
                store=store,
                recipe=recipe,
                scope_key=key,
                date_keys=dates,
                stale=stale,
                sinks=tuple(sinks),
                capture_content=capture_content,
                on_degrade=on_degrade,
            )
        )

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
        bound = _Scope(key, _scope_value(key, value))
        if self._scope not in (None, bound):
            raise ScopeError("this handle is bound to another scope already", fix="bind a fresh handle of the index")
        return Index(self._house, bound)

    # -- writing ----------------------------------------------------------------------------------------------------

    def add(self, documents: Iterable[Document], *, progress: Progress | None = None) -> SyncReport:
        """Add documents, or replace those of the same id; all others stay.

        Raises:
            ScopeError: a document outside the handle's scope, or without one where the index has scopes.
            IngestStopped: the embedder failed; its `report` says what was written before.
            StaleIndex: the index was made with another embedder, chunker or analyzer.
            StoreError: the disk failed; nothing of the failing batch is visible.
        """
        self._writable()
        started = time.perf_counter()
        moved = Counter[str]()
        incoming = (self._incoming(document, moved) for document in documents)
        report = self._load(incoming, progress=progress)
        report = msgspec.structs.replace(report, moved=moved["moved"], seconds=time.perf_counter() - started)
        self._finished("add", report)
        return report

    def sync(
        self,
        path: str | Path,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        prune: bool = True,
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
            dry_run: write nothing; the report says what would be.
            origin: names the folder; by default its path from where the index lies, so that both can move together.
            prefix: put before every id, where two folders hold files of the same name.
            progress: told (done, total, id) after each batch.

        Raises:
            UsageError: no such path. ScopeError, IngestStopped, StaleIndex, StoreError: as `add`.
        """
        self._writable()
        started = time.perf_counter()
        root = Path(path)
        if not root.exists():
            raise UsageError(f"there is nothing at {str(path)!r}", fix="name a folder or a file that exists")
        scope = self._writing_scope()
        named = origin if origin is not None else self._origin(root)
        folder = read_folder(root, include=include, exclude=exclude, prefix=prefix, skip=self._own_folder())
        reading = _Reading(self, folder, named, scope)
        report = self._load(reading.stream(), dry_run=dry_run, total=reading.total, progress=progress)
        removed = self._prune(reading, dry_run) if prune else 0
        report = msgspec.structs.replace(
            report,
            removed=removed,
            skipped=dict(sorted(reading.skipped.items())),
            seconds=time.perf_counter() - started,
        )
        self._finished("sync", report)
        return report

    def remove(self, ids: str | Iterable[str]) -> int:
        """Remove documents by id; how many there were. They are gone from every search at once."""
        self._writable()
        scope = self._writing_scope()
        wanted = [ids] if isinstance(ids, str) else list(ids)
        return self._house.store.delete(scope, [one for one in wanted if self._owns(one)])

    def _load(
        self,
        incoming: Iterable[Incoming | Refusal],
        *,
        dry_run: bool = False,
        total: int = 0,
        progress: Progress | None = None,
    ) -> SyncReport:
        house = self._house
        return load(
            incoming, house.store, house.recipe, dry_run=dry_run, total=total, progress=progress, sinks=house.sinks
        )

    def _finished(self, verb: str, report: SyncReport) -> None:
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

    def _writable(self) -> None:
        if self._house.stale:
            raise _stale_error(self._house.stale, self._house.store.where)

    def _writing_scope(self) -> str:
        """The store's scope for what this handle writes."""
        if self._house.scope_key is None:
            return ""
        if self._scope is None:
            raise self._unscoped("written")
        return self._scope.value

    def _incoming(self, document: Document, moved: Counter[str]) -> Incoming | Refusal:
        """One document of `add`, with its scope; a host program may stamp the scope key itself."""
        try:
            self._check_dates(document)
        except DocumentError as error:
            return Refusal(id=document.id, reason=_in_words(error))
        key = self._house.scope_key
        if self._scope is not None:
            document = self._stamped(document, self._scope)
            return Incoming(document=document, scope=self._scope.value if key else "", origin="")
        if key is None:
            return Incoming(document=document, scope="", origin="")
        scope = _scope_value(key, document.metadata.get(key), document.id)
        self._move(document.id, scope, moved)
        return Incoming(document=document, scope=scope, origin="")

    def _stamped(self, document: Document, scope: _Scope) -> Document:
        held = document.metadata.get(scope.key, scope.value)
        if held != scope.value:
            raise ScopeError(
                f"document {document.id!r} is stamped for another {scope.key}",
                fix=f"write it through a handle of its own {scope.key}, or leave the key out",
            )
        if self._house.scope_key is None and not self._owns(document.id) and self._taken(document.id):
            raise ScopeError(
                f"the document id {document.id!r} is taken outside this scope",
                why="without a scope key all scopes of an index share one space of ids",
                fix=f"open the index with scope_key={scope.key!r}, so that each {scope.key} has ids of its own",
            )
        return msgspec.structs.replace(document, metadata={**document.metadata, scope.key: scope.value})

    def _move(self, document_id: str, scope: str, moved: Counter[str]) -> None:
        """A host program that stamps another scope moves the document: its old copy must not be served any more."""
        for other in self._house.store.scopes_of(document_id):
            if other != scope:
                self._house.store.delete(other, [document_id])
                moved["moved"] += 1

    def _taken(self, document_id: str) -> bool:
        return self._house.store.get("", document_id) is not None

    def _check_dates(self, document: Document) -> None:
        for key in self._house.date_keys:
            value = document.metadata.get(key)
            if value is not None and (not isinstance(value, str) or instant(value) is None):
                raise DocumentError(
                    f"metadata {key!r} is no ISO-8601 date",
                    where=document.id,
                    why=f"got {value!r}",
                    fix='write it as "2026-01-31" or "2026-01-31T12:00:00+00:00"',
                )

    def _prune(self, reading: _Reading, dry_run: bool) -> int:
        """Remove what came from this origin and is not there any more; what could not be looked at stays."""
        states = self._house.store.states(reading.scope)
        held = [one for one, state in states.items() if state.origin == reading.origin]
        gone = [one for one in held if one not in reading.kept and not reading.folder.is_unknown(one)]
        return len(gone) if dry_run or not gone else self._house.store.delete(reading.scope, gone)

    def _origin(self, root: Path) -> str:
        """The folder's path from where the index lies: no absolute path, so that both can move together."""
        base = Path.cwd() if self._house.store.where == "memory" else Path(self._house.store.where).resolve().parent
        return Path(os.path.relpath(root.resolve(), base)).as_posix()

    def _own_folder(self) -> tuple[Path, ...]:
        return () if self._house.store.where == "memory" else (Path(self._house.store.where),)

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
        started = time.perf_counter()
        try:
            asked, handle = self._asked(
                query,
                k=k,
                filters=filters,
                mode=mode,
                fusion=fusion,
                weight=weight,
                per_document=per_document,
                max_tokens=max_tokens,
                cut=cut,
                threshold=threshold,
                language=language,
            )
            hits = handle._searched(asked)
        except WellheadError as error:
            emit(self._house.sinks, "retrieval.failed", retriever="index", error_kind=type(error).__name__)
            raise
        latency = (time.perf_counter() - started) * 1e3
        self._tell(query, k, hits, latency)
        return msgspec.structs.replace(hits, timings={**hits.timings, "total": latency})

    async def asearch(
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
        """`search` in a worker thread, so that the event loop goes on."""
        return await asyncio.to_thread(
            self.search,
            query,
            k=k,
            filters=filters,
            mode=mode,
            fusion=fusion,
            weight=weight,
            per_document=per_document,
            max_tokens=max_tokens,
            cut=cut,
            threshold=threshold,
            language=language,
        )

    def explain(
        self,
        query: str,
        passage: str | Passage,
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
    ) -> Explanation:
        """Why a passage ranks where it does for a query, or why it is not returned: same options as `search`.

        Args:
            passage: a passage, its id, or the first characters of its id (6 at least).

        Raises:
            UsageError: no such passage in this scope; otherwise as `search`.
        """
        asked, handle = self._asked(
            query,
            k=k,
            filters=filters,
            mode=mode,
            fusion=fusion,
            weight=weight,
            per_document=per_document,
            max_tokens=max_tokens,
            cut=cut,
            threshold=threshold,
            language=language,
        )
        view = handle._view()
        row = _row(view, passage.id if isinstance(passage, Passage) else passage)
        return explain(view, handle._request(asked, view), asked.query, row)

    def _asked(self, query: str, *, filters: Mapping[str, object] | None, **options: object) -> tuple[Asked, Index]:
        """The checked options and the handle to search with: a filter on the scope key binds it for this call."""
        asked = check(query, filters=filters, **options)  # type: ignore[arg-type]
        key = self._house.scope_key
        if key is None or not isinstance(filters, Mapping) or key not in filters:
            return asked, self
        value = filters[key]
        if isinstance(value, Mapping) and set(value) == {"$eq"}:
            value = value["$eq"]
        handle = self.scoped(**{key: _scope_value(key, value)}) if self._scope is None else self
        return asked, handle

    def _searched(self, asked: Asked) -> Hits:
        view = self._view()
        try:
            return hybrid.search(view, self._request(asked, view))
        except StaleView:
            # Somebody deleted a passage between ranking and reading it: once more, on the index as it is now.
            view = self._view()
            return hybrid.search(view, self._request(asked, view))

    def _view(self) -> View:
        house = self._house
        if house.scope_key is not None:
            if self._scope is None:
                raise self._unscoped("searched")
            return house.store.view(self._scope.value)
        view = house.store.view("")
        if self._scope is None:
            return view
        if self._within is None or self._within.version != view.version:
            mine = Compare(key=self._scope.key, operator="$eq", operand=self._scope.value)
            admits = select(mine, view.column, len(view))
            assert admits is not None
            self._within = Within(view, admits)
        return self._within

    def _unscoped(self, verb: str) -> ScopeError:
        key = self._house.scope_key
        return ScopeError(
            f"this index cannot be {verb} without its scope",
            why=f"it keeps every {key} apart",
            fix=f'bind one first: index.scoped({key}="...")',
        )

    def _request(self, asked: Asked, view: View) -> hybrid.Request:
        if self._house.stale.get("analyzer"):
            raise _stale_error(self._house.stale, self._house.store.where)
        language = asked.language or query_language(asked.query, view.languages)
        vector, degraded = self._vector(asked, view)
        profile = wiring.profile(self._house.recipe.embedder)
        return hybrid.Request(
            terms=analyze(asked.query, language),
            stem_of=stems_of(asked.query, language),
            identifiers=tuple(identifiers(asked.query)),
            vector=vector,
            legs=asked.mode if vector is not None else "lexical",
            k=asked.k,
            fusion=asked.fusion,
            weight=profile.weight if asked.weight is None else asked.weight,
            condition=asked.condition,
            cuts=profile.cuts,
            cut=asked.cut,
            thresholds=asked.thresholds,
            per_document=asked.per_document,
            max_tokens=asked.max_tokens,
            count_tokens=self._count_tokens,
            degraded=() if degraded is None else (degraded,),
        )

    def _count_tokens(self, text: str) -> int:
        from wellhead.ingest.chunk import word_starts
        from wellhead.ports import Tokenized

        embedder = self._house.recipe.embedder
        return len(embedder.token_starts(text) if isinstance(embedder, Tokenized) else word_starts(text))

    def _vector(self, asked: Asked, view: View) -> tuple[FloatArray | None, Degraded | None]:
        """The query's vector, or what is said when there is none."""
        if asked.mode == "lexical" or not len(view):
            return None, None
        try:
            return self._embedded(asked.query, view), None
        except (BackendError, StaleIndex) as error:
            if asked.mode == "dense" or self._house.on_degrade == "fail":
                raise
            return None, Degraded(leg="dense", why=error.why or error.what, fix=error.fix)

    def _embedded(self, query: str, view: View) -> FloatArray:
        house = self._house
        if house.stale:
            raise _stale_error(house.stale, house.store.where)
        if not (view.vectors.of >= 0).any():
            raise BackendError(
                "the dense leg has nothing to search",
                why="no passage of this scope has a vector",
                fix="index the documents again with a working embedder",
            )
        try:
            made = house.recipe.embedder.embed_query(query)
        except Exception as error:
            raise BackendError(
                "the query could not be embedded",
                where=house.recipe.model,
                why=f"the embedder raised {type(error).__name__}",
                fix="see the chained error; search again when the embedder works",
            ) from error
        return self._checked_vector(made, view.vectors.matrix.shape[1])

    def _checked_vector(self, made: object, dims: int) -> FloatArray:
        import numpy as np

        vector: FloatArray = np.asarray(made, dtype=np.float32)
        if vector.shape != (dims,):
            raise BackendError(
                "the query's vector does not fit the index",
                where=self._house.recipe.model,
                why=f"it has shape {vector.shape}, the index holds vectors of {dims}",
                fix="use the embedder that the index was made with",
            )
        scaled = unit(vector)
        if scaled is None:
            raise BackendError(
                "the query has no usable vector",
                where=self._house.recipe.model,
                why="it is all zeros, or not finite",
                fix="ask in other words, or search with mode='lexical'",
            )
        return scaled

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
        return self._house.store.get(self._reading_scope(), document_id) if self._owns(document_id) else None

    def documents(self) -> Iterator[Document]:
        """All documents of this scope, by id."""
        for document in self._house.store.documents(self._reading_scope()):
            if self._mine(document):
                yield document

    def passage(self, passage_id: str) -> Passage:
        """The passage of this id, or of an id that begins so (6 characters at least).

        Raises:
            UsageError: no such passage in this scope, or several.
        """
        view = self._view()
        return view.passages([_row(view, passage_id)])[0]

    def passages(self, document_id: str) -> list[Passage]:
        """The passages of a document in their order; none for a document that is not in this scope."""
        view = self._view()
        return view.passages(view.rows_of(document_id))

    def stats(self) -> IndexStats:
        """What this scope holds."""
        view = self._view()
        store = self._house.store
        vectors, size = store.counts()
        documents = list(self.documents())
        areas = Counter(str(document.metadata.get("area", "")) for document in documents)
        states = store.states(self._reading_scope())
        return IndexStats(
            documents=len(documents),
            passages=len(view),
            with_vectors=int((view.vectors.of >= 0).sum()) if len(view) else 0,
            incomplete=sum(states[document.id].incomplete for document in documents if document.id in states),
            languages=dict(view.languages),
            areas=dict(sorted(areas.items())),
            vectors=vectors,
            bytes=size,
            fingerprint=store.settings(),
            index_version=view.version,
        )

    def verify(self) -> VerifyReport:
        """Check every checksum and reference of the whole index."""
        documents, passages, vectors, findings = self._house.store.verify()
        return VerifyReport(documents=documents, passages=passages, vectors=vectors, findings=tuple(findings))

    def _reading_scope(self) -> str:
        if self._house.scope_key is None:
            return ""
        if self._scope is None:
            raise self._unscoped("read")
        return self._scope.value

    def _mine(self, document: Document) -> bool:
        return self._scope is None or document.metadata.get(self._scope.key) == self._scope.value

    def _owns(self, document_id: str) -> bool:
        if self._scope is None or self._house.scope_key is not None:
            return True
        document = self._house.store.get("", document_id)
        return document is not None and self._mine(document)

    def close(self) -> None:
        """Release the files. All handles of this index are closed with it."""
        self._house.store.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Reading:
    """Reads the files of one sync into documents, and remembers which are there and what was skipped."""

    def __init__(self, index: Index, folder: Folder, origin: str, scope: str) -> None:
        self._index = index
        self.folder = folder
        self.origin = origin
        self.scope = scope
        self.skipped = Counter(entry.reason for entry in folder.skipped)
        self.kept: set[str] = set()
        self.total = len(folder.found) + len(folder.refused)

    def stream(self) -> Iterator[Incoming | Refusal]:
        for entry in self.folder.refused:
            yield Refusal(id=self.folder.prefix + entry.id, reason=entry.reason)
        for found in self.folder.found:
            item = self._read(found)
            if item is not None:
                self.kept.add(self.folder.prefix + found.id)
                yield item

    def _read(self, found: Found) -> Incoming | Refusal | None:
        try:
            document = self._owned(self.folder.read(found))
            self._index._check_dates(document)
            return Incoming(document=document, scope=self.scope, origin=self.origin)
        except FileSkipped as skip:
            self.skipped[skip.reason] += 1
            return None
        except DocumentError as error:
            return Refusal(id=self.folder.prefix + found.id, reason=_in_words(error))

    def _owned(self, document: Document) -> Document:
        """What a file says of its own scope never counts: a reader cannot stamp it."""
        scope = self._index._scope
        key = scope.key if scope is not None else self._index._house.scope_key
        metadata = {name: value for name, value in document.metadata.items() if name != key}
        document = msgspec.structs.replace(document, metadata=metadata)
        return document if scope is None else self._index._stamped(document, scope)


def _in_words(error: WellheadError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what


def _recipe(
    made: Mapping[str, str],
    embedder: str | Embedder | None,
    chunker: str | Chunker | None,
    languages: Sequence[str] | None,
) -> tuple[Recipe, dict[str, str]]:
    """How rows are made, and the names of it all for the settings."""
    chosen = embedder if embedder is not None else made.get("embedder", "static")
    model = wiring.embedder(chosen) if isinstance(chosen, str) else chosen
    cutter = chunker if chunker is not None else made.get("chunker", "structure-").partition("-")[0]
    chunk, name = wiring.chunker(cutter, model) if isinstance(cutter, str) else (cutter, _name_of(cutter))
    spoken = tuple(languages) if languages is not None else tuple(made.get("languages", " ".join(LANGUAGES)).split())
    unknown = [code for code in spoken if code not in LANGUAGES]
    if unknown or not spoken:
        raise ConfigError(f"no analyzer for the languages {unknown}", fix=f"known: {', '.join(LANGUAGES)}")
    recipe = Recipe(
        chunk=chunk,
        chunker=name,
        embedder=model,
        model=wiring.model_name(model),
        analyzer=ANALYZER,
        languages=spoken,
    )
    return recipe, {
        "embedder": model.name,
        "model": recipe.model,
        "chunker": name,
        "analyzer": ANALYZER,
        "languages": " ".join(spoken),
    }


def _name_of(chunk: Chunker) -> str:
    return str(getattr(chunk, "__qualname__", type(chunk).__qualname__))


def _settled(made: Mapping[str, str], name: str, wanted: str) -> str:
    """A setting that is fixed when the index is made."""
    held = made.get(name, "")
    if made and wanted and wanted != held:
        raise ConfigError(
            f"this index was made with {name}={held or None!r}, not {wanted!r}",
            fix="open it as it was made, or index into another folder",
        )
    return held if made else wanted


def _scope_value(key: str, value: object, where: str = "") -> str:
    if not isinstance(value, str) or not value.strip():
        raise ScopeError(
            f"a scope needs a non-blank {key}",
            where=where,
            why=f"got {value!r}",
            fix=f"pass the {key} of the one who asks or writes",
        )
    return value


def _row(view: View, passage_id: str) -> int:
    row = view.row(passage_id)
    if row is not None:
        return row
    near = view.starting(passage_id) if len(passage_id) >= 6 else []
    if len(near) == 1:
        return near[0]
    if near:
        raise UsageError(f"{len(near)} passages begin with {passage_id!r}", fix="give more characters of the id")
    raise UsageError(
        f"no passage {passage_id!r} here",
        fix="give a passage id, or its first 6 characters or more, as a search shows it",
    )


def _stale_error(stale: Mapping[str, tuple[str, str]], where: str) -> StaleIndex:
    differ = "; ".join(f"{name} was {was!r}, is {now!r}" for name, (was, now) in sorted(stale.items()))
    return StaleIndex(
        "the index was made with other settings",
        where=where,
        why=differ,
        fix="open it with the settings it was made with, or index into a new folder: wellhead index FOLDER --into NEW",
    )
