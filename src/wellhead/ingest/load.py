"""Documents become passages, passages become rows, rows are written: in batches, each one transaction.

What is unchanged costs a hash: of a file's bytes, or of a document. What changed is chunked and analysed again, and
only passages that have no vector yet are embedded. A run that is stopped, for whatever reason, keeps its finished
batches; the next one goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec
import numpy as np

from wellhead.errors import ConfigError, DocumentError, IngestStopped, UsageError, WellheadError
from wellhead.events import Sink, emit
from wellhead.ingest.incoming import Incoming, Item, Unread, batches
from wellhead.ingest.owners import taken
from wellhead.ingest.rows import Recipe, document_digest, rows_of
from wellhead.ingest.vectors import embed, fitting
from wellhead.ports import DocumentState, Store
from wellhead.records import DocumentRow, Passage, PassageRow, Refusal, SyncReport

if TYPE_CHECKING:
    from wellhead.ports import FloatArray

__all__ = ["Progress", "in_words", "load"]

# A batch ends at 64 documents, or at so many characters of text that may have to be written. After one that took less
# than half a second the next may be larger: that is quicker, and a run that is killed loses no more than a moment.
_BATCH_DOCUMENTS, _BATCH_CHARACTERS = 64, 400_000
_QUICK_DOCUMENTS, _QUICK_S = 256, 0.5
# So much is held while the states of as many documents are asked for together.
_HELD_BYTES = 4_000_000
_EMBED_AT_ONCE = 64

_Part = TypeVar("_Part")
Progress: TypeAlias = Callable[[int, int, str], None]


def load(
    incoming: Iterable[Item],
    store: Store,
    recipe: Recipe,
    *,
    dry_run: bool = False,
    total: int = 0,
    progress: Progress | None = None,
    sinks: Sequence[Sink] = (),
) -> SyncReport:
    """Write what is new or changed; refusals in the stream are reported, the run goes on.

    Raises:
        IngestStopped: the embedder failed; its `report` says what was written before.
        StoreError: the disk failed; nothing of the failing batch is visible.
    """
    run = _Run(store, recipe, dry_run)
    done = 0
    for batch in batches(run.looked_up(incoming), _characters, _BATCH_CHARACTERS, lambda: run.at_once):
        began = time.monotonic()
        run.take(batch)
        run.at_once = _QUICK_DOCUMENTS if time.monotonic() - began < _QUICK_S else _BATCH_DOCUMENTS
        done += len(batch)
        if progress is not None:
            progress(done, max(total, done), batch[-1].id)
        emit(sinks, "ingest.batch", done=done, total=total, passages=run.report.passages, embedded=run.report.embedded)
    return run.report


class _Pair(msgspec.Struct, frozen=True):
    """A document beside what the store remembers of it."""

    item: Incoming
    state: DocumentState | None

    @property
    def id(self) -> str:
        return self.item.id


class _Changed(msgspec.Struct, frozen=True):
    """A document that has to be written, with its rows."""

    item: Incoming
    is_new: bool
    digest: bytes
    rows: tuple[PassageRow, ...]


class _Same(msgspec.Struct, frozen=True):
    """A file that proved unchanged; its bytes are let go."""

    id: str
    scope: str


_Looked: TypeAlias = _Same | _Pair | Refusal


def _characters(one: _Looked) -> int:
    return len(one.item.document.text) if isinstance(one, _Pair) else 0


def _held(item: Item) -> int:
    if isinstance(item, Refusal):
        return 0
    return item.size if isinstance(item, Unread) else len(item.document.text)


class _Run:
    """One ingest: what was seen so far, and the report as it grows; `at_once`: documents that one batch may hold."""

    def __init__(self, store: Store, recipe: Recipe, dry_run: bool) -> None:
        self.report = SyncReport(dry_run=dry_run)
        self.at_once = _BATCH_DOCUMENTS
        self._raised: Exception | None = None  # by the embedder
        self._store = store
        self._recipe = recipe
        self._seen: set[tuple[str, str]] = set()
        self._counted: set[bytes] = set()

    def looked_up(self, items: Iterable[Item]) -> Iterator[_Looked]:
        """Each item with what is stored of it. A file is read only where that does not prove it unchanged."""
        for some in batches(items, _held, _HELD_BYTES, lambda: self.at_once):
            states = self._states(some)
            for item in some:
                one = item if isinstance(item, Refusal) else _looked(item, states.get((item.scope, item.id)))
                if one is not None:
                    yield one

    def _states(self, items: Sequence[Item]) -> dict[tuple[str, str], DocumentState]:
        ids: dict[str, list[str]] = {}
        for item in items:
            if not isinstance(item, Refusal):
                ids.setdefault(item.scope, []).append(item.id)
        held = {scope: self._store.states(scope, some) for scope, some in ids.items()}
        return {(scope, name): state for scope, states in held.items() for name, state in states.items()}

    def take(self, batch: Sequence[_Looked]) -> None:
        files = [one for one in batch if isinstance(one, _Same)]
        self._seen.update((one.scope, one.id) for one in files)
        same: list[_Pair] = []
        changed: list[_Changed] = []
        for one in batch:
            if isinstance(one, Refusal):
                self._refuse(one)
            elif isinstance(one, _Same):
                continue
            elif (refusal := self._collision(one)) is not None:
                self._refuse(refusal)
            elif self._is_unchanged(one):
                same.append(one)
            elif (made := self._made(one)) is not None:
                changed.append(made)
        self._add(read=len(files) + len(same), unchanged=len(files) + len(same))
        if changed:
            self._write(changed)
        self._remember(same)
        self._leave([one.item for one in same] + [one.item for one in changed])

    def _is_unchanged(self, one: _Pair) -> bool:
        state = one.state
        if state is None or state.incomplete or state.origin != one.item.origin:
            return False
        return state.digest == document_digest(one.item.document, self._recipe)

    def _remember(self, unchanged: Sequence[_Pair]) -> None:
        """The sources of files that were edited, or are read in another way, and yet hold the same document."""
        if self.report.dry_run or self._store.read_only:
            return
        sources: dict[str, dict[str, DocumentState]] = {}
        for one in unchanged:
            if one.state is not None and one.item.source not in (b"", one.state.source):
                state = one.state._replace(source=one.item.source)
                sources.setdefault(one.item.scope, {})[one.id] = state
        for scope, states in sources.items():
            self._store.set_sources(scope, states)

    def _made(self, one: _Pair) -> _Changed | None:
        """The document with its rows; None when it cannot be taken."""
        item = one.item
        digest = document_digest(item.document, self._recipe)
        try:
            rows = rows_of(item.document, item.scope, self._recipe)
            return _Changed(item, one.state is None, digest, rows)
        except DocumentError as error:
            self._refuse(Refusal(id=item.document.id, reason=in_words(error)))
            return None

    def _leave(self, items: Sequence[Incoming]) -> None:
        """Delete the copies in other scopes: after the write, so that nothing that stops a run can lose a document."""
        for item in items:
            if item.leaves:
                self._add(moved=1)
            for scope in () if self.report.dry_run else item.leaves:
                self._store.delete(scope, [item.document.id])

    def _refuse(self, refusal: Refusal) -> None:
        self._add(refused=(refusal,))

    def _collision(self, one: _Pair) -> Refusal | None:
        """Two documents of one id would overwrite one another: neither silently wins."""
        item, state = one.item, one.state
        if (item.scope, item.id) in self._seen:
            return Refusal(id=item.id, reason="another document of this run has the same id")
        self._seen.add((item.scope, item.id))
        if not item.origin or state is None or state.origin == item.origin:
            return None
        same = state.digest == document_digest(item.document, self._recipe)
        return Refusal(id=item.id, reason=taken(state.origin, item.origin, same=same))

    def _write(self, changed: Sequence[_Changed]) -> None:
        vectors: dict[bytes, FloatArray] = {}
        failed: dict[bytes, str] = {}
        try:
            self._put(changed, vectors, failed)
        except Exception as error:
            if error is not self._raised:
                raise
            # What the embedder gave before is paid for, so what that is enough for is kept.
            if whole := self._covered(changed, vectors, failed):
                self._put(whole, vectors, failed)
            raise self._stopped(error) from error

    def _covered(
        self, changed: Sequence[_Changed], vectors: Mapping[bytes, FloatArray], failed: Mapping[bytes, str]
    ) -> list[_Changed]:
        """The documents of which nothing is left to be embedded."""
        keys = [row.vector_key for one in changed for row in one.rows]
        known = self._store.known_vectors(keys) | vectors.keys() | failed.keys()
        return [one for one in changed if known.issuperset(row.vector_key for row in one.rows)]

    def _put(self, changed: Sequence[_Changed], vectors: dict[bytes, FloatArray], failed: dict[bytes, str]) -> None:
        """Write documents, and add to the report.

        Args:
            vectors, failed: vectors that were made, and why some passages have none; what is made here is added.
        """
        passages = {row.vector_key: row.passage for one in changed for row in one.rows}
        while True:
            self._embed(passages, vectors, failed)
            documents = [self._document(one, failed) for one in changed]
            own = {key: vectors[key] for key in passages if key in vectors}
            if self._written(documents, own, [key for key in passages if key not in own and key not in failed]):
                break
        self._count(changed, sum(len(row.passages) for row in documents), len(own))
        self._add(without_passages=sum(not one.rows for one in changed))
        self._add(
            failed=tuple(_failure(row, failed) for one in changed for row in one.rows if row.vector_key in failed)
        )

    def _written(
        self, documents: Sequence[DocumentRow], vectors: Mapping[bytes, FloatArray], needed: Sequence[bytes]
    ) -> bool:
        """Write rows; False where one of the stored vectors that they need is gone."""
        if self.report.dry_run:
            return True
        try:
            self._store.put(documents, vectors)
        except UsageError:
            # Another process may have deleted the last document of a vector since it was asked for.
            if len(self._store.known_vectors(needed)) == len(needed):
                raise
            return False
        return True

    def _embed(
        self, passages: Mapping[bytes, Passage], vectors: dict[bytes, FloatArray], failed: dict[bytes, str]
    ) -> None:
        """Add vectors for the passages that have none (in a dry run, empty ones), and why some cannot have one."""
        while True:
            # Asked again after embedding, which may take long: what was stored may have lost its last document.
            known = self._store.known_vectors(list(passages)) | self._counted | vectors.keys() | failed.keys()
            whole, unfit = self._asked(fitting, {key: one for key, one in passages.items() if key not in known})
            failed |= unfit
            if not whole:
                return
            if self.report.dry_run:
                self._counted |= whole.keys()
                vectors |= dict.fromkeys(whole, np.zeros(0, dtype=np.float32))
                return
            keys = list(whole)
            for start in range(0, len(keys), _EMBED_AT_ONCE):
                made, spoiled = self._asked(embed, {key: whole[key] for key in keys[start : start + _EMBED_AT_ONCE]})
                vectors |= made
                failed |= spoiled

    def _count(self, changed: Sequence[_Changed], passages: int, embedded: int) -> None:
        added = sum(one.is_new and not one.item.leaves for one in changed)
        self._add(read=len(changed), added=added, updated=len(changed) - added)
        self._add(passages=passages, embedded=embedded, reused=passages - embedded)

    def _document(self, one: _Changed, failed: Mapping[bytes, str]) -> DocumentRow:
        kept = tuple(row for row in one.rows if row.vector_key not in failed)
        return DocumentRow(
            scope=one.item.scope,
            document=one.item.document,
            origin=one.item.origin,
            digest=one.digest,
            incomplete=len(kept) < len(one.rows),
            passages=kept,
            source=one.item.source,
        )

    def _asked(
        self,
        ask: Callable[[Mapping[bytes, Passage], Recipe], tuple[_Part, dict[bytes, str]]],
        passages: Mapping[bytes, Passage],
    ) -> tuple[_Part, dict[bytes, str]]:
        """What the embedder says of passages: what is fit or made, and why the others are not."""
        try:
            return ask(passages, self._recipe)
        except Exception as error:  # an embedder is anyone's code
            self._raised = error
            raise

    def _stopped(self, error: Exception) -> Exception:
        if isinstance(error, ConfigError):
            return error
        report = self.report
        self.report = msgspec.structs.replace(report, stopped=f"the embedder failed with {type(error).__name__}")
        return IngestStopped(
            "the embedder failed, so the ingest stopped",
            where=self._recipe.model,
            # Of a foreign exception its type alone: its text may hold a key, or what was to be embedded.
            why=f"{type(error).__name__}{f': {in_words(error)}' if isinstance(error, WellheadError) else ''}",
            fix="run it again when the embedder works: what was written is kept and not embedded twice",
            report=self.report,
        )

    def _add(self, **counts: int | tuple[Refusal, ...]) -> None:
        grown = {name: getattr(self.report, name) + count for name, count in counts.items()}
        self.report = msgspec.structs.replace(self.report, **grown)


def _looked(item: Unread | Incoming, state: DocumentState | None) -> _Looked | None:
    """What becomes of an item beside its state; None for a file that holds nothing to index."""
    if isinstance(item, Incoming):
        return _Pair(item, state)
    if state is not None and not state.incomplete and (state.source, state.origin) == (item.source, item.origin):
        return _Same(item.id, item.scope)
    read = item.read()
    return _Pair(read, state) if isinstance(read, Incoming) else read


def in_words(error: WellheadError) -> str:
    """A refusal's reason: what and why in one line."""
    return f"{error.what}: {error.why}" if error.why else error.what


def _failure(row: PassageRow, failed: Mapping[bytes, str]) -> Refusal:
    return Refusal(id=f"{row.passage.document_id}#{row.passage.ordinal}", reason=failed[row.vector_key])
