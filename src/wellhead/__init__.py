"""Wellhead: the retrieval layer behind an agent's `search_docs` tool."""

from __future__ import annotations

import importlib

# Type checkers take this name for true; importing it from `typing` would cost more than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from wellhead.errors import (
        BackendError,
        BackendTimeout,
        ConfigError,
        CorruptStore,
        DocumentError,
        GateFailed,
        IngestStopped,
        MissingExtra,
        RateLimited,
        ScopeError,
        StaleIndex,
        StaleView,
        StorageFull,
        StoreError,
        UsageError,
        WellheadError,
        WriterBusy,
    )
    from wellhead.events import Event, EventLog
    from wellhead.index import Index
    from wellhead.records import (
        BackupReport,
        CompactReport,
        Document,
        Explanation,
        Hit,
        Hits,
        IndexStats,
        Passage,
        RepairReport,
        Signals,
        Storage,
        SyncReport,
        Threshold,
        VerifyReport,
    )

__version__ = "0.1.0"

# Public names are imported on first use, so that `import wellhead` costs next to nothing.
_HOMES = {
    "wellhead.errors": (
        "BackendError BackendTimeout ConfigError CorruptStore DocumentError GateFailed IngestStopped MissingExtra "
        "RateLimited ScopeError StaleIndex StaleView StorageFull StoreError UsageError WellheadError WriterBusy"
    ),
    "wellhead.events": "Event EventLog",
    "wellhead.index": "Index",
    "wellhead.records": (
        "BackupReport CompactReport Document Explanation Hit Hits IndexStats Passage RepairReport Signals Storage "
        "SyncReport Threshold VerifyReport"
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [  # noqa: RUF022 (by home, as above)
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
    "Event",
    "EventLog",
    "Index",
    "BackupReport",
    "CompactReport",
    "Document",
    "Explanation",
    "Hit",
    "Hits",
    "IndexStats",
    "Passage",
    "RepairReport",
    "Signals",
    "Storage",
    "SyncReport",
    "Threshold",
    "VerifyReport",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'wellhead' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
