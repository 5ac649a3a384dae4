"""What is measured of an index, and how: one function a group of figures. speed_search.py prints them."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from speed_bare import Pace, inserts, nearest, readings, recall, scans
from speed_corpus import ONE_PER_MILLE, ONE_PERCENT, Corpus, Ints, Precomputed, Queries, documents

from wellhead import Document, Hits, Index
from wellhead.analyze import detect
from wellhead.backends.embedders.static import StaticEmbedder

__all__ = ["measure", "resync"]

Figures: TypeAlias = dict[str, float]
Search: TypeAlias = Callable[[str], Hits]

PARTS = {"1pct": ONE_PERCENT, "01pct": ONE_PER_MILLE}
_FRESH_PROCESSES = 3
_SINGLE_ADDS = 20
_TRIES = 100
_INSERTED = 10_000
_STATIC_DOCUMENTS = 2000


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all measures over one corpus share. `truth`: the ten nearest rows of each query, where recall is asked."""

    corpus: Corpus
    queries: Queries
    embedder: Precomputed
    folder: Path
    groups: Collection[str]
    note: Callable[[str], object]
    truth: Ints | None
    pace: Pace

    def paced(self, group: str, measured: Callable[[], Figures]) -> Figures:
        """The figures of a group, and how fast the machine was meanwhile: `GROUP_pace_ms`."""
        before = self.pace.ms()
        figures = measured()
        return {**figures, f"{group}_pace_ms": (before + self.pace.ms()) / 2}


def measure(
    rows: int, *, seed: int, queries: int, folder: Path, groups: Collection[str], note: Callable[[str], object]
) -> Figures:
    """All figures of the groups over a corpus of so many rows, by name, and the bare parts beside them.

    Args:
        folder: where indexes are made; at most one lies there at a time.
        groups: of `speed_search.GROUPS`.
        note: told what is being done.
    """
    note(f"{rows:,} rows: bare parts")
    corpus = Corpus(rows, seed)
    asked = corpus.queries(queries)
    setting = Setting(
        corpus=corpus,
        queries=asked,
        embedder=Precomputed(seed, asked),
        folder=folder,
        groups=groups,
        note=lambda text: note(f"{rows:,} rows: {text}"),
        truth=nearest(corpus, asked, rows) if "recall" in groups else None,
        pace=Pace(),
    )
    figures: Figures = {"rows": rows, **_bare(setting), **_plain(setting)}
    if "scopes" in groups:
        figures |= _scoped(setting)
    if "static" in groups:
        figures |= _static(setting)
    return figures


def _bare(setting: Setting) -> Figures:
    corpus, queries = setting.corpus, setting.queries
    figures = scans(corpus, queries, corpus.rows, setting.truth)
    for name, share in (("1pct", 100), ("01pct", 1000)):
        part = scans(corpus, queries, max(1, corpus.rows // share))
        figures |= {f"{key.removesuffix('_ms')}_{name}_ms": ms for key, ms in part.items() if key.endswith("_ms")}
    batches = list(corpus.batches(0, min(corpus.rows, _INSERTED)))
    texts = [document for batch in batches for document in batch.documents()]
    figures |= inserts(setting.folder / "bare.sqlite", texts, np.concatenate([batch.vectors for batch in batches]))
    figures["bare_disk_mb"] = figures.pop("bare_bytes_per_row") * corpus.rows / 1e6
    return figures


# -- an index without scopes ------------------------------------------------------------------------------------------


def _plain(setting: Setting) -> Figures:
    setting.note("ingest")
    place = setting.folder / "plain"
    opened = Index.open(place, embedder=setting.embedder)
    figures = setting.paced("ingest", lambda: {"ingest_rows_per_s": _ingested(setting, opened)})
    figures["disk_mb"] = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6
    if "open" in setting.groups:
        figures |= setting.paced("open", lambda: _opened(setting, place))
    with Index.open(place, embedder=setting.embedder) as index:
        for group, measured in (("search", _searched), ("filters", _filtered), ("recall", _recalled), ("adds", _added)):
            if group in setting.groups:
                setting.note(group)
                figures |= setting.paced(group, partial(measured, setting, index))
    shutil.rmtree(place)
    return figures


def _ingested(setting: Setting, index: Index) -> float:
    """Rows a second until the index is closed again, without the making of texts and vectors."""
    rows, aside = setting.corpus.rows, setting.embedder.aside
    with Index.open(":memory:", embedder=setting.embedder) as warm:  # loads the parser and the language detector
        warm.add(documents(setting.corpus, setting.embedder, 0, 1))
    detect("Ein Satz, der nicht englisch ist.")
    before, began = aside.seconds, time.perf_counter()
    report = index.add(documents(setting.corpus, setting.embedder, 0, rows))
    index.close()
    taken = time.perf_counter() - began - (aside.seconds - before)
    _require(report.passages == rows, f"{rows} documents became {report.passages} passages, not one each")
    return rows / taken


def _opened(setting: Setting, place: Path) -> Figures:
    """The medians of a few fresh processes, and what it takes to read the files."""
    setting.note("open in fresh processes")
    asked = setting.folder / "queries.npz"
    setting.queries.save(asked)
    program = Path(__file__).with_name("speed_open.py")
    command = [sys.executable, str(program), str(place), str(asked), str(setting.corpus.seed)]
    printed = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(_FRESH_PROCESSES)
    ]
    figures = {name: float(np.median([one[name] for one in printed])) for name in printed[0]}
    return {**figures, "bare_read_ms": readings(place, hashed=False)}


def _searched(setting: Setting, index: Index) -> Figures:
    cpu, began = time.process_time(), time.perf_counter()
    figures = _latencies("", setting, index.search)
    figures["core_share"] = (time.process_time() - cpu) / (time.perf_counter() - began)
    return figures


def _filtered(setting: Setting, index: Index) -> Figures:
    figures: Figures = {}
    for name, value in PARTS.items():
        search = partial(index.search, filters={"topic": value})
        figures |= _latencies(f"metadata_filter_{name}_", setting, search)
    return figures


def _recalled(setting: Setting, index: Index) -> Figures:
    assert setting.truth is not None
    found = [
        [int(hit.passage.document_id.removeprefix("doc-")) for hit in index.search(text, mode="dense", cut="off")]
        for text in setting.queries.texts
    ]
    return {"dense_recall_at_10": recall(found, setting.truth)}


def _added(setting: Setting, index: Index) -> Figures:
    """How soon a document is found, and what searches cost once 1 % and 10 % more rows have come."""
    rows = setting.corpus.rows
    taken = np.array([_found(setting, index, row) for row in range(rows, rows + _SINGLE_ADDS)])
    figures = dict(zip(("add_ms", "search_after_add_ms", "added_found_ms"), np.median(taken, axis=0), strict=True))
    position = rows + _SINGLE_ADDS
    for name, share in (("1pct", 100), ("10pct", 10)):
        stop = rows + _SINGLE_ADDS + max(1, rows // share)
        index.add(documents(setting.corpus, setting.embedder, position, stop))
        position = stop
        figures |= _latencies(f"after_{name}_adds_", setting, index.search)
    return {key: float(value) for key, value in figures.items()}


def _found(setting: Setting, index: Index, row: int) -> tuple[float, float, float]:
    """Milliseconds of `add` for one document, of the first search after it, and until a search has found it."""
    (batch,) = setting.corpus.batches(row, row + 1)
    (document,) = batch.documents()
    query = " ".join(document.text.split()[:8])
    setting.embedder.tell([document.text], batch.vectors)
    setting.embedder.tell_queries([query], batch.vectors)
    began = time.perf_counter()
    index.add([document])
    added = time.perf_counter()
    moments = []
    for _ in range(_TRIES):
        hits = index.search(query)
        moments.append(time.perf_counter())
        if any(hit.passage.document_id == document.id for hit in hits):
            return (added - began) * 1e3, (moments[0] - added) * 1e3, (moments[-1] - began) * 1e3
    raise RuntimeError(f"{document.id} was not found in {_TRIES} searches after it was added")


# -- others -----------------------------------------------------------------------------------------------------------


def _scoped(setting: Setting) -> Figures:
    """Searches in small scopes, in an index that keeps tenants apart."""
    setting.note("scopes")
    place = setting.folder / "scoped"
    _ingested(setting, Index.open(place, embedder=setting.embedder, scope_key="tenant"))
    figures: Figures = {}
    with Index.open(place, embedder=setting.embedder) as index:
        for name, tenant in PARTS.items():
            search = index.scoped(tenant=tenant).search
            figures |= setting.paced(f"scope_{name}", partial(_latencies, f"filter_{name}_", setting, search))
    shutil.rmtree(place)
    return figures


def _static(setting: Setting) -> Figures:
    """Passages a second into an index with the default embedder and chunker, over a part of the rows.

    The words are none of English, so they fall into more tokens than real ones, and some texts into two passages.
    """
    setting.note("ingest with static")
    place = setting.folder / "static"
    batches = setting.corpus.batches(0, min(setting.corpus.rows, _STATIC_DOCUMENTS))
    first, *rest = itertools.chain.from_iterable(batch.documents() for batch in batches)
    index = Index.open(place)
    index.add([first])  # loads the model
    began = time.perf_counter()
    report = index.add(rest)
    index.close()
    taken = time.perf_counter() - began
    shutil.rmtree(place)
    return {"ingest_static_rows_per_s": report.passages / taken, "bare_static_rows_per_s": _embedded(rest)}


def _embedded(some: Sequence[Document]) -> float:
    """Texts a second that `static` turns into vectors."""
    embedder = StaticEmbedder()
    embedder.embed_query("loads the model")
    began = time.perf_counter()
    embedder.embed_documents([document.text for document in some])
    return len(some) / (time.perf_counter() - began)


def resync(count: int, *, seed: int, folder: Path, note: Callable[[str], object]) -> Figures:
    """Seconds to sync a folder of so many documents again when nothing has changed."""
    note(f"sync of {count:,} files")
    files = folder / "files"
    _write(Corpus(count, seed), files)
    with Index.open(folder / "synced") as index:
        index.sync(files)
        pace = Pace()
        before, began = pace.ms(), time.perf_counter()
        report = index.sync(files)
        taken = time.perf_counter() - began
    _require(report.unchanged == count, f"{report.unchanged} of {count} files were taken for unchanged")
    bare = readings(files, hashed=True) / 1e3
    shutil.rmtree(files)
    shutil.rmtree(folder / "synced")
    now = (before + pace.ms()) / 2
    return {"resync_s": taken, "resync_documents": count, "bare_read_and_hash_s": bare, "resync_pace_ms": now}


def _write(corpus: Corpus, files: Path) -> None:
    for batch in corpus.batches(0, corpus.rows):
        for row, text in zip(batch.rows, batch.texts(), strict=True):
            path = files / f"{row // 100:04}" / f"{row:06}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")


# -- how ---------------------------------------------------------------------------------------------------------------


def _latencies(prefix: str, setting: Setting, search: Search) -> Figures:
    """The median and the 95th percentile of a search with its texts and metadata, warm, without the embedding."""
    for text in setting.queries.rehearsed():
        hits = search(text)
        _require(bool(hits) and not hits.degraded, f"{prefix or 'search'}: a query was not answered by both legs")
    taken = [_latency(setting.embedder, search, text) for text in setting.queries.texts]
    median, high = np.percentile(taken, [50, 95])
    return {f"{prefix}p50_ms": float(median), f"{prefix}p95_ms": float(high)}


def _latency(embedder: Precomputed, search: Search, text: str) -> float:
    before, began = embedder.aside.seconds, time.perf_counter()
    _read(search(text))
    return (time.perf_counter() - began - (embedder.aside.seconds - before)) * 1e3


def _read(hits: Hits) -> list[tuple[str, object]]:
    return [(hit.text, dict(hit.metadata)) for hit in hits]


def _require(holds: bool, otherwise: str) -> None:
    """Stop where a figure would mean something else than it says."""
    if not holds:
        raise RuntimeError(otherwise)
