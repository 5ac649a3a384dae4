"""Every error of Wellhead, sorted by whose fault it is.

An error says four things: `what` went wrong, `where` it happened, `why`, and how to mend it (`fix`).
Foreign exceptions are translated once, in the backend's own file, and stay chained as the cause.

`exit_code` is what the command line exits with, `http_status` what a server answers, and `retryable`
says whether *ingest* may try the same call again (inside a search nothing is ever retried).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wellhead.records import SyncReport

__all__ = [
    "BackendError",
    "BackendTimeout",
    "ConfigError",
    "CorruptStore",
    "DocumentError",
    "GateFailed",
    "IngestStopped",
    "MissingExtra",
    "RateLimited",
    "ScopeError",
    "StaleIndex",
    "StaleView",
    "StorageFull",
    "StoreError",
    "UsageError",
    "WellheadError",
    "WriterBusy",
]


class WellheadError(Exception):
    """Base of every error that Wellhead raises on purpose."""

    exit_code = 1
    http_status = 500
    retryable = False

    def __init__(self, what: str, *, where: str = "", why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(f"where: {self.where}")
        if self.why:
            parts.append(f"why: {self.why}")
        if self.fix:
            parts.append(f"mend: {self.fix}")
        return "\n  ".join(parts)

    def to_dict(self) -> dict[str, object]:
        """The error as plain data: type, the four parts, and whether a retry may help."""
        return {
            "type": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "why": self.why,
            "fix": self.fix,
            "retryable": self.retryable,
        }

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling of exceptions (process pools).
        return (_rebuild, (type(self), self.__dict__))


def _rebuild(kind: type[WellheadError], state: dict[str, object]) -> WellheadError:
    error = kind.__new__(kind)
    Exception.__init__(error, state.get("what", ""))
    error.__dict__.update(state)
    return error


class UsageError(WellheadError, ValueError):
    """The caller's fault: a blank query, k out of range, an unknown filter operator."""

    exit_code = 2
    http_status = 400


class ScopeError(UsageError):
    """A scoped index was read or written without its scope, or across it."""

    http_status = 403


class DocumentError(UsageError):
    """One document cannot be taken (unreadable, invalid date, blank id): `sync` goes on, `add` takes none."""

    exit_code = 8
    http_status = 422


class ConfigError(WellheadError, RuntimeError):
    """The operator's fault: options that contradict one another, or an unknown name."""

    exit_code = 5
    http_status = 500


class MissingExtra(ConfigError, ImportError):
    """An optional dependency is not installed; `fix` is the pip command."""


class StaleIndex(ConfigError):
    """The index was made with another fingerprint (embedder, analyzer, chunker, format)."""

    exit_code = 6
    http_status = 409


class BackendError(WellheadError, ConnectionError):
    """Someone else's fault: a model or an engine failed. The cause is chained."""

    exit_code = 4
    http_status = 503
    retryable = True


class BackendTimeout(BackendError, TimeoutError):
    """A backend did not answer in time."""

    http_status = 504


class RateLimited(BackendError):
    """A backend asks to slow down. `retry_after_s` is its own word in seconds, or None."""

    http_status = 429

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        why: str = "",
        fix: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(what, where=where, why=why, fix=fix)
        self.retry_after_s = retry_after_s


class IngestStopped(BackendError):
    """The embedder failed in the middle of an ingest. What was written stays; the same call again resumes.

    `report` is the SyncReport of what was done before it stopped.
    """

    exit_code = 8

    def __init__(
        self, what: str, *, where: str = "", why: str = "", fix: str = "", report: SyncReport | None = None
    ) -> None:
        super().__init__(what, where=where, why=why, fix=fix)
        self.report = report


class StoreError(WellheadError, OSError):
    """The disk's fault: the index cannot be read or written."""

    exit_code = 4


class CorruptStore(StoreError):
    """Stored bytes are not the bytes that were written."""


class StorageFull(StoreError):
    """No space left; nothing of the failed write is visible."""

    http_status = 507


class StaleView(StoreError):
    """A passage was deleted between ranking and reading it. A search tries again on a fresh view."""

    http_status = 503
    retryable = True


class WriterBusy(StoreError):
    """Another process holds the writer's lock."""

    http_status = 503
    retryable = True


class GateFailed(WellheadError):
    """Quality fell below the baseline."""

    exit_code = 7
