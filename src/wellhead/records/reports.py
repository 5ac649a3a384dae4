"""What a run did or found: ingest, counts, checks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = [
    "BackupReport",
    "CompactReport",
    "Finding",
    "IndexStats",
    "Refusal",
    "RepairReport",
    "Storage",
    "SyncReport",
    "VerifyReport",
]


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not taken: which document (or file), and why."""

    id: str
    reason: str


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of `add` or `sync` did. Documents: `read == added + updated + unchanged`.

    Args:
        read: documents that were read. added, updated, unchanged: how they compare with what was stored.
        removed: documents deleted because their file is gone (`sync` only).
        moved: of `updated`, those that changed their scope.
        refused: files or documents that could not be read or taken, with reasons. Not in `read`.
        skipped: files left out by the walking rules, by reason; they are no failure.
        notes: documents that were read, but not as they are written (front matter that does not parse), with reasons.
        without_passages: of `added` and `updated`, those that gave no passage (a blank text, only paragraphs that the
            chunker drops): nothing of them can be found. They are no failure.
        failed: passages that the embedder could not take, with reasons; tried again on the next run.
        passages: passages written. embedded: texts sent to the embedder. reused: passages whose vector was there.
        stopped: "" or why the run ended early; the next run resumes.
        dry_run: nothing was written; the numbers say what would be.
        seconds: wall time.
    """

    read: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    moved: int = 0
    refused: tuple[Refusal, ...] = ()
    skipped: Mapping[str, int] = {}
    notes: tuple[Refusal, ...] = ()
    without_passages: int = 0
    failed: tuple[Refusal, ...] = ()
    passages: int = 0
    embedded: int = 0
    reused: int = 0
    stopped: str = ""
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """True when everything that was found is searchable now."""
        return not (self.refused or self.failed or self.stopped)

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "complete": self.complete, **msgspec.to_builtins(self)}

    def __str__(self) -> str:
        lines = [
            (
                f"{'would read' if self.dry_run else 'read'} {self.read} documents: {self.added} added, "
                f"{self.updated} updated, {self.unchanged} unchanged; {self.removed} removed"
            ),
            (
                f"{self.passages} passages {'would be ' if self.dry_run else ''}written: "
                f"{self.embedded} texts embedded, {self.reused} vectors reused"
            ),
        ]
        if self.moved:
            lines.append(f"{self.moved} documents moved to another scope")
        if self.without_passages:
            lines.append(f"{self.without_passages} documents hold no passage: nothing of them can be found")
        if self.skipped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.skipped.items()))
            lines.append(f"skipped by the walking rules (a folder counts once): {reasons}")
        lines += [f"note {item.id}: {item.reason}" for item in self.notes]
        lines += [f"refused {item.id}: {item.reason}" for item in self.refused]
        lines += [f"not indexed {item.id}: {item.reason}" for item in self.failed]
        if self.stopped:
            lines.append(f"stopped early: {self.stopped}; run it again to resume")
        return "\n".join(lines)


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """How a whole index lies on the disk, whatever the scope. In memory all of it is 0 or empty.

    Args:
        segments: how many there are. segment_rows: live passages in them. newest_rows: live passages that are in none
            yet; they are searched all the same. dead_rows: of deleted passages, still in segments until those are
            merged.
        unusable: names of segments whose file is missing or damaged, as far as this handle has come upon it; their
            rows are read from the tables, so that answers are right but the first one is slow.
        unlisted: files beside the segments that belong to none, left by a run that was stopped; harmless.
        tables_bytes, log_bytes, segments_bytes: sizes of the tables, of SQLite's log, and of the segments' folder.
        failure: why this handle could not keep the segments in shape, in one line; "" when it could.
    """

    segments: int = 0
    segment_rows: int = 0
    newest_rows: int = 0
    dead_rows: int = 0
    unusable: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    tables_bytes: int = 0
    log_bytes: int = 0
    segments_bytes: int = 0
    failure: str = ""

    @property
    def bytes(self) -> int:
        """All of it on disk."""
        return self.tables_bytes + self.log_bytes + self.segments_bytes

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "bytes": self.bytes, **msgspec.to_builtins(self)}


class IndexStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one scope (or of an index without scopes), and the files' size.

    Args:
        documents, passages: live ones. with_vectors: passages that the dense leg sees.
        incomplete: documents of which some passage could not be embedded.
        languages, areas: passages by language, documents by area.
        vectors: distinct vectors held, bytes: size on disk (0 in memory), both of the whole index; 0 for a handle that
            is bound to a scope.
        fingerprint: what the stored numbers depend on, by name.
        index_version: grows with every write.
        storage: how the whole index lies on the disk; None for a handle that is bound to a scope, which tells only
            its own counts, and for an index in memory.
    """

    documents: int
    passages: int
    with_vectors: int
    incomplete: int
    languages: Mapping[str, int]
    areas: Mapping[str, int]
    vectors: int
    bytes: int
    fingerprint: Mapping[str, str]
    index_version: int
    storage: Storage | None = None

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, **msgspec.to_builtins(self)}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that `verify` found wrong: the kind, the place, what it means, how to mend it."""

    kind: str
    where: str
    why: str
    fix: str


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify` checked and what it found; `ok` when nothing is wrong. `notes` are harmless."""

    documents: int
    passages: int
    vectors: int
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "ok": self.ok, **msgspec.to_builtins(self)}


class RepairReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `repair` found, what it made anew, and what is lost.

    Args:
        findings: what was wrong; nothing was done when there is none.
        segments: made anew from the tables. When only they were wrong, nothing else was touched.
        documents: made anew from their stored text, all of them when anything in the tables was wrong. passages: of
            these. embedded: texts whose vector was lost, and had to be embedded again.
        lost: documents that could not be saved, by id as far as it can be read, with reasons.
        unnamed: how many more documents are lost, of which not even the id can be told. uncounted: the counts are lost
            too, so that there may be others.
        failed: passages that the embedder could not take, with reasons; tried again when they are indexed.
        kept_as: the name of the damaged file, kept beside the new one; "" where none was replaced.
        seconds: wall time.
    """

    findings: tuple[Finding, ...] = ()
    segments: int = 0
    documents: int = 0
    passages: int = 0
    embedded: int = 0
    lost: tuple[Refusal, ...] = ()
    unnamed: int = 0
    uncounted: bool = False
    failed: tuple[Refusal, ...] = ()
    kept_as: str = ""
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """True when nothing was lost."""
        return not (self.lost or self.unnamed or self.uncounted or self.failed)

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "complete": self.complete, **msgspec.to_builtins(self)}

    def __str__(self) -> str:
        if not self.findings:
            return "nothing is wrong, and nothing was done"
        lines: list[str] = []
        if self.segments:
            lines.append(f"{self.segments} segments made anew from the tables")
        if self.kept_as:
            lines.append(
                f"{self.documents} documents made anew from their stored text: {self.passages} passages, "
                f"{self.embedded} texts embedded"
            )
        lines += [f"lost {item.id}: {item.reason}" for item in self.lost]
        if self.unnamed:
            lines.append(f"lost {self.unnamed} more documents, whose ids cannot be told")
        if self.uncounted:
            lines.append("how many documents there were cannot be told: others may be lost too")
        lines += [f"not indexed {item.id}: {item.reason}" for item in self.failed]
        if self.kept_as:
            lines.append(f"the damaged file is kept as {self.kept_as}")
        return "\n".join(lines)


class CompactReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `compact` took from the disk for good.

    Args:
        rows: of deleted passages, in segments. terms: that no passage uses. vectors: likewise. files: beside the
            segments, that belong to none.
        before, after: bytes on disk.
        left: files in the index's folder that may hold deleted text and are not Wellhead's to delete.
        seconds: wall time.
    """

    rows: int = 0
    terms: int = 0
    vectors: int = 0
    files: int = 0
    before: int = 0
    after: int = 0
    left: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, **msgspec.to_builtins(self)}

    def __str__(self) -> str:
        lines = [
            f"removed: {self.rows} dead rows, {self.terms} terms, {self.vectors} vectors, {self.files} files",
            f"{self.before:,} bytes before, {self.after:,} after",
        ]
        lines += [f"{name} is not ours to delete, and may hold deleted text" for name in self.left]
        return "\n".join(lines)


class BackupReport(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was made: an index in a folder of its own, as it was at one moment.

    Args:
        path: the folder. index_version: that of the index at that moment.
        documents, passages: in it, of all scopes. segments: copied too. bytes: on disk.
        seconds: wall time.
    """

    path: str
    index_version: int
    documents: int
    passages: int
    segments: int
    bytes: int
    seconds: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, **msgspec.to_builtins(self)}
