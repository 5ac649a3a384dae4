"""Documents become passages, passages become rows, rows are written: in batches, each one transaction.

What is unchanged costs a hash. What changed is chunked and analysed again, and only texts that have no vector yet are
embedded. A run that is stopped, for whatever reason, keeps its finished batches; the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec
import numpy as np

from wellhead.errors import ConfigError, DocumentError, IngestStopped, WellheadError
from wellhead.events import Sink, emit
from wellhead.ingest.rows import Recipe, document_digest, rows_of
from wellhead.ingest.vectors import embed, fitting
from wellhead.ports import DocumentState, Store
from wellhead.records import Document, DocumentRow, PassageRow, Refusal, SyncReport

if TYPE_CHECKING:
    from wellhead.ports import FloatArray

__all__ = ["Incoming", "Progress", "in_words", "load"]

# A batch ends at whichever comes first.
_BATCH_DOCUMENTS = 64
_BATCH_CHARACTERS = 400_000

_Part = TypeVar("_Part")
Progress: TypeAlias = Callable[[int, int, str], None]


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A document on its way in: under which scope, and from which folder ("" for a program).

    `leaves`: scopes that hold an older copy, which must not be served any more once this one is written.
    """

    document: Document
    scope: str
    origin: str
    leaves: tuple[str, ...] = ()


def load(
    incoming: Iterable[Incoming | Refusal],
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
    for batch in _batches(incoming):
        run.take(batch)
        done += len(batch)
        last = batch[-1]
        if progress is not None:
            progress(done, max(total, done), last.id if isinstance(last, Refusal) else last.document.id)
        emit(sinks, "ingest.batch", done=done, total=total, passages=run.report.passages, embedded=run.report.embedded)
    return run.report


def _batches(incoming: Iterable[Incoming | Refusal]) -> Iterator[list[Incoming | Refusal]]:
    batch: list[Incoming | Refusal] = []
    size = 0
    for item in incoming:
        batch.append(item)
        size += len(item.document.text) if isinstance(item, Incoming) else 0
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Changed(msgspec.Struct, frozen=True):
    """A document that has to be written, with its rows."""

    item: Incoming
    digest: bytes
    rows: tuple[PassageRow, ...]


class _Run:
    """One ingest: what was seen so far, and the report as it grows."""

    def __init__(self, store: Store, recipe: Recipe, dry_run: bool) -> None:
        self.report = SyncReport(dry_run=dry_run)
        self._store = store
        self._recipe = recipe
        self._states: dict[tuple[str, str], DocumentState | None] = {}
        self._seen: set[tuple[str, str]] = set()
        self._counted: set[bytes] = set()

    def take(self, batch: Sequence[Incoming | Refusal]) -> None:
        changed: list[_Changed] = []
        taken: list[Incoming] = []
        for item in batch:
            if isinstance(item, Refusal):
                self._refuse(item)
            elif (refusal := self._collision(item)) is not None:
                self._refuse(refusal)
            elif self._is_unchanged(item):
                taken.append(item)
                self._add(read=1, unchanged=1)
            elif (made := self._made(item)) is not None:
                taken.append(item)
                changed.append(made)
        if changed:
            self._write(changed)
        self._leave(taken)

    def _is_unchanged(self, item: Incoming) -> bool:
        state = self._state(item)
        if state is None or state.incomplete or state.origin != item.origin:
            return False
        return state.digest == document_digest(item.document, self._recipe)

    def _made(self, item: Incoming) -> _Changed | None:
        """The document with its rows; None when it cannot be taken."""
        digest = document_digest(item.document, self._recipe)
        try:
            return _Changed(item, digest, rows_of(item.document, item.scope, self._recipe))
        except DocumentError as error:
            self._refuse(Refusal(id=item.document.id, reason=in_words(error)))
            return None

    def _leave(self, taken: Sequence[Incoming]) -> None:
        """Delete the copies in other scopes: after the write, so that nothing that stops a run can lose a document."""
        for item in taken:
            if item.leaves:
                self._add(moved=1)
            for scope in () if self.report.dry_run else item.leaves:
                self._store.delete(scope, [item.document.id])

    def _refuse(self, refusal: Refusal) -> None:
        self._add(refused=(refusal,))

    def _collision(self, item: Incoming) -> Refusal | None:
        """Two documents of one id would overwrite one another: neither silently wins."""
        key = (item.scope, item.document.id)
        if key in self._seen:
            return Refusal(id=item.document.id, reason="another document of this run has the same id")
        self._seen.add(key)
        state = self._state(item)
        if not item.origin or state is None or state.origin == item.origin:
            return None
        same = state.digest == document_digest(item.document, self._recipe)
        return Refusal(id=item.document.id, reason=_taken(state.origin, item.origin, same=same))

    def _state(self, item: Incoming) -> DocumentState | None:
        document_id = item.document.id
        key = (item.scope, document_id)
        if key not in self._states:
            self._states[key] = self._store.states(item.scope, [document_id]).get(document_id)
        return self._states[key]

    def _write(self, changed: Sequence[_Changed]) -> None:
        texts = {row.vector_key: row.passage.embedded_text for one in changed for row in one.rows}
        vectors, failed = self._vectors(texts)
        documents = [self._document(one, failed) for one in changed]
        if not self.report.dry_run:
            self._store.put(documents, vectors)
        self._count(changed, sum(len(row.passages) for row in documents), len(vectors))
        self._add(without_passages=sum(not one.rows for one in changed))
        self._add(
            failed=tuple(_failure(row, failed) for one in changed for row in one.rows if row.vector_key in failed)
        )

    def _vectors(self, texts: Mapping[bytes, str]) -> tuple[dict[bytes, FloatArray], dict[bytes, str]]:
        """Vectors for the texts that have none (in a dry run, empty ones), and why some cannot have one."""
        vectors: dict[bytes, FloatArray] = {}
        failed: dict[bytes, str] = {}
        while True:
            # Asked again after embedding, which may take long: what was stored may have lost its last document.
            known = self._store.known_vectors(list(texts)) | self._counted | vectors.keys() | failed.keys()
            whole, unfit = self._asked(fitting, {key: text for key, text in texts.items() if key not in known})
            if not whole:
                return vectors, failed | unfit
            if self.report.dry_run:
                self._counted |= whole.keys()
                return dict.fromkeys(whole, np.zeros(0, dtype=np.float32)), unfit
            made, spoiled = self._asked(embed, whole)
            vectors |= made
            failed |= unfit | spoiled

    def _count(self, changed: Sequence[_Changed], passages: int, embedded: int) -> None:
        added = sum(self._state(one.item) is None and not one.item.leaves for one in changed)
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
        )

    def _asked(
        self, ask: Callable[[Mapping[bytes, str], Recipe], tuple[_Part, dict[bytes, str]]], texts: Mapping[bytes, str]
    ) -> tuple[_Part, dict[bytes, str]]:
        """What the embedder says of texts: what is fit or made, and why the others are not."""
        try:
            return ask(texts, self._recipe)
        except Exception as error:  # an embedder is anyone's code; the cause stays chained
            raise self._stopped(error) from error

    def _stopped(self, error: Exception) -> Exception:
        if isinstance(error, ConfigError):
            return error
        report = self.report
        self.report = msgspec.structs.replace(report, stopped=f"the embedder failed with {type(error).__name__}")
        return IngestStopped(
            "the embedder failed, so the ingest stopped",
            where=self._recipe.model,
            why=f"{type(error).__name__}: {error}",
            fix="run it again when the embedder works: what was written is kept and not embedded twice",
            report=self.report,
        )

    def _add(self, **counts: int | tuple[Refusal, ...]) -> None:
        grown = {name: getattr(self.report, name) + count for name, count in counts.items()}
        self.report = msgspec.structs.replace(self.report, **grown)


def in_words(error: WellheadError) -> str:
    """A refusal's reason: what and why in one line."""
    return f"{error.what}: {error.why}" if error.why else error.what


def _taken(owner: str, origin: str, *, same: bool) -> str:
    """Why an id of `owner` is not taken over by `origin`, and what to do about it; `same`: so is the content."""
    if not owner:
        return "this id already belongs to a program that added it; remove it there, or index with a prefix"
    if _is_within(origin, owner):
        return f"this id already belongs to the folder {owner!r}, which holds it; index the folder {owner!r} instead"
    if _is_within(owner, origin):
        return f"this id already belongs to {owner!r}, which was indexed by itself; remove its documents first"
    if same or origin.rpartition("/")[2] == owner.rpartition("/")[2]:
        moved = f"pass origin={owner!r} (--origin {owner}) where this is that folder, moved or seen from a moved index"
        return f"this folder seems to have been indexed as {owner!r} before: {moved}; else give it a prefix"
    return f"this id already belongs to the folder {owner!r}; give this folder's documents a prefix of their own"


def _is_within(inner: str, outer: str) -> bool:
    """Whether one origin lies in another: both are paths from the same place, without needless parts."""
    if set(outer.split("/")) <= {".", ".."}:
        return inner != outer and inner.split("/").count("..") <= outer.count("..")
    return inner.startswith(f"{outer}/")


def _failure(row: PassageRow, failed: Mapping[bytes, str]) -> Refusal:
    return Refusal(id=f"{row.passage.document_id}#{row.passage.ordinal}", reason=failed[row.vector_key])
