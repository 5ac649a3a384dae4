"""The records that travel through Wellhead: documents in, passages stored, hits out, reports beside.

All are frozen and keyword-only. Spans are offsets in characters (Python `str` indices), half open:
`document.text[passage.start:passage.end] == passage.text`, always.
"""

from __future__ import annotations

from wellhead.records.document import Document, Metadata, MetadataValue, Scalar, clean_metadata, of_numpy
from wellhead.records.hits import (
    Coverage,
    Degraded,
    Explanation,
    Hit,
    Hits,
    Outcome,
    Signals,
    Source,
    Stage,
    TermMatch,
    Threshold,
    Verdict,
)
from wellhead.records.passage import DocumentRow, Passage, PassageRow, Terms
from wellhead.records.reports import (
    BackupReport,
    CompactReport,
    Finding,
    IndexStats,
    Refusal,
    RepairReport,
    Storage,
    SyncReport,
    VerifyReport,
)

__all__ = [
    "BackupReport",
    "CompactReport",
    "Coverage",
    "Degraded",
    "Document",
    "DocumentRow",
    "Explanation",
    "Finding",
    "Hit",
    "Hits",
    "IndexStats",
    "Metadata",
    "MetadataValue",
    "Outcome",
    "Passage",
    "PassageRow",
    "Refusal",
    "RepairReport",
    "Scalar",
    "Signals",
    "Source",
    "Stage",
    "Storage",
    "SyncReport",
    "TermMatch",
    "Terms",
    "Threshold",
    "Verdict",
    "VerifyReport",
    "clean_metadata",
    "of_numpy",
]
