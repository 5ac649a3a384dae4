"""What a run did or found: ingest, counts, checks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = ["Finding", "IndexStats", "Refusal", "SyncReport", "VerifyReport"]


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


class IndexStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of one scope (or of an index without scopes), and the files' size.

    Args:
        documents, passages: live ones. with_vectors: passages that the dense leg sees.
        incomplete: documents of which some passage could not be embedded.
        languages, areas: passages by language, documents by area.
        vectors: distinct vectors held (whole index). bytes: size on disk (whole index; 0 in memory).
        fingerprint: what the stored numbers depend on, by name.
        index_version: grows with every write.
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
    """What `verify` checked and what it found; `ok` when nothing is wrong."""

    documents: int
    passages: int
    vectors: int
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_dict(self) -> dict[str, object]:
        """Plain data under a versioned schema (`"schema": 1`)."""
        return {"schema": 1, "ok": self.ok, **msgspec.to_builtins(self)}
