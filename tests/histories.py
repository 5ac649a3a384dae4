"""Random histories of a store: what is put and deleted, how it comes to lie in segments, and what is asked of it.

A `History` drives an embedded store by hand, without its thread, beside a store in memory that lives through the same.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st

from wellhead.backends.stores.embedded import failpoint, keeper
from wellhead.backends.stores.embedded.counters import read_counter
from wellhead.backends.stores.embedded.generation import read_segments
from wellhead.backends.stores.embedded.keeper import Job, carry_out, plan
from wellhead.backends.stores.embedded.schema import StoredSegment
from wellhead.backends.stores.embedded.segment import FOLDER, SUFFIX
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import StaleView
from wellhead.ports import Store, View
from wellhead.records import Document, DocumentRow, Hits, Metadata, Passage, PassageRow
from wellhead.search import hybrid
from wellhead.search.filters import parse
from wellhead.search.rank import Request, rank
from wellhead.search.threshold import Cuts
from wellhead.testing.contracts import assert_same_view, live_rows
from wellhead.testing.fakes import HashEmbedder, document_row, vectors_of

EMBEDDER = HashEmbedder()
# Hundreds of small stores are made and synced: in memory where the system has a place for it.
RAM = next((place for place in ("/dev/shm",) if Path(place).is_dir()), None)

WORDS = (
    *("cat", "cats", "dog", "dogs", "mouse", "gliders", "glider", "rule", "rules", "state"),
    *(
        "café",
        "cafe",
        "cafes",
        "CAFÉ",
        "résumé",
        "Resume",
        "Ärger",
        "naïve",
        "e\u0301te\u0301",
        "日本",
        "食べ物",
        "日本語",
    ),
    *("getUserName", "user_name", "x_y", "FRY-4012", "v2.0.1", "C++", "zyzzyva"),
)
_dice = random.Random(7)
# Few lines, so that texts repeat within and across documents; some have a word of their own, which comes and goes.
LINES = (
    *("the same text", "日本", "café"),
    *(" ".join(_dice.choices(WORDS, k=_dice.randint(1, 7))) for _ in range(20)),
    *(" ".join([*_dice.choices(WORDS, k=_dice.randint(0, 5)), f"own{n}"]) for n in range(20)),
)
TERMS = sorted(
    {form for line in LINES for word in line.casefold().split() for form in (word, word.rstrip("s"))} | {"nothing"}
)
METADATA: tuple[Metadata, ...] = (
    {},
    {"tenant": "acme", "year": 2024, "flag": True},
    {"tenant": "globex", "year": 2024.0, "flag": 1, "tags": ("a", "b")},
    {"tenant": "acme", "year": 2023.5, "flag": "1", "tags": ("b", 1, True)},
    {"year": "2024-05-01", "ключ": "значение", "flag": False},
    {"tenant": ("acme", "globex"), "year": 0, "flag": 0.0, "empty": ""},
)
FILTERS: tuple[Mapping[str, object] | None, ...] = (
    None,
    None,
    {"tenant": "acme"},
    {"flag": 1},
    {"year": {"$gte": 2023.5, "$lt": 2025}},
    {"$not": {"flag": {"$in": [True, "1"]}}},
    {"$or": [{"tags": "b"}, {"ключ": "значение"}]},
    {"tenant": "nobody"},
)
SCOPES = ("", "acme", "zürich")
IDS = tuple(f"d{n}" for n in range(8))


# --- what is drawn ---------------------------------------------------------------------------------------------------


def _row(
    scope: str, name: str, lines: Sequence[str], metadata: Metadata, language: str | None, look: str
) -> DocumentRow:
    """A document as a store takes it. `look`: which passages lack a vector, and whether all ids begin alike."""
    title = "Title" if len(lines) == 2 else ""
    document = Document(id=name, text="\r\n".join(lines), title=title, metadata=metadata, language=language)
    row = document_row(document, scope=scope, with_vectors=look != "blind", incomplete=look == "blind")
    passages = row.passages
    if look == "half blind":
        passages = tuple(
            msgspec.structs.replace(one, vector_key=b"") if one.passage.ordinal % 2 else one for one in passages
        )
    if look == "alike":
        passages = tuple(_renamed(one) for one in passages)
    return msgspec.structs.replace(row, passages=passages)


def _renamed(row: PassageRow) -> PassageRow:
    # The first 8 bytes of an id are what rows are sorted by; these are equal in all of them.
    return msgspec.structs.replace(row, passage=msgspec.structs.replace(row.passage, id=f"passage-{row.passage.id}"))


scopes = st.sampled_from(["", "", "", "acme", "acme", "zürich"])
_documents = st.tuples(
    st.sampled_from(IDS),
    st.one_of(st.lists(st.sampled_from(LINES), min_size=2, max_size=5), st.just([])),
    st.sampled_from(METADATA),
    st.sampled_from([None, "en", "de", "ja"]),
    st.sampled_from(["", "", "", "alike", "blind", "half blind"]),
)
batches = st.lists(_documents, min_size=3, max_size=8, unique_by=lambda drawn: drawn[0])
_ids = st.lists(st.sampled_from([*IDS, "nobody"]), min_size=1, max_size=3)
_jobs = st.tuples(st.integers(0, 5), st.integers(1, 4))
_moments = st.sampled_from(["segment.written", "segment.synced", "segment.folder_synced", "swap.before"])
KINDS: Mapping[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "put": st.tuples(st.just("put"), scopes, batches),
    "delete": st.tuples(st.just("delete"), scopes, _ids),
    "empty": st.tuples(st.just("empty"), scopes),
    "flush": st.tuples(st.just("flush"), st.sampled_from([0, 0, 1, 3])),
    "merge": st.tuples(st.just("merge"), _jobs),
    "keep": st.tuples(st.just("keep"), st.integers(1, 8), st.sampled_from([1, 8])),
    "write_during": st.tuples(st.just("write_during"), _moments, _jobs, scopes, batches, _ids),
    "compact_during": st.tuples(st.just("compact_during"), _moments, _jobs, scopes, batches, _ids),
    "overtake": st.tuples(st.just("overtake"), _moments, _jobs),
    "compact": st.tuples(st.just("compact")),
    "compact_beside": st.tuples(st.just("compact_beside"), scopes, batches, batches),
    "reopen": st.tuples(st.just("reopen")),
    "hold": st.tuples(st.just("hold"), scopes),
}


def steps(kinds: str, least: int, most: int) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Steps of these kinds; one that is named twice comes twice as often."""
    drawn = st.sampled_from([KINDS[kind] for kind in kinds.split()]).flatmap(lambda kind: kind)
    return st.lists(drawn, min_size=least, max_size=most)


def histories(kinds: str, first: str = "put put flush") -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """These steps first, then two to six of these kinds."""
    begun = st.tuples(*(KINDS[kind] for kind in first.split()))
    return st.tuples(begun, steps(kinds, 2, 6)).map(lambda drawn: [*drawn[0], *drawn[1]])


_CUTS = Cuts(
    hybrid={"cosine": (0.3, 0.01), "coverage": (0.5, 0.0)},
    dense={"cosine": (0.35, 0.01)},
    lexical={"coverage": (0.4, 0.02)},
    fit=(-2.0, 3.0, 2.0, 0.1),
)


def request_of(
    query: str,
    legs: Any,
    fusion: str,
    weight: float,
    k: int,
    filters: Mapping[str, object] | None,
    cut: Any,
    thresholds: Mapping[str, float] | None,
    caps: tuple[int | None, int | None],
) -> Request:
    """What is asked of a view, analysed as `document_row` analyses."""
    plain = document_row(Document(id="query", text=query)).passages[0].terms
    return Request(
        terms=plain,
        stem_of={word: word.rstrip("s") or word for word in plain.words},
        identifiers=tuple(word for word in plain.words if any(sign in word for sign in "-_.+")),
        vector=None if legs == "lexical" else EMBEDDER.embed_query(query),
        legs=legs,
        k=k,
        fusion=fusion,
        weight=weight,
        condition=parse(filters),
        cuts=_CUTS,
        cut=cut,
        thresholds=thresholds,
        per_document=caps[0],
        max_tokens=caps[1],
        count_tokens=lambda text: len(text.split()),
    )


queries = st.one_of(st.sampled_from(LINES), st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join))
modes = st.sampled_from(["hybrid", "hybrid", "lexical", "dense"])
fusions = st.sampled_from(["blend", "rrf", "convex"])
weights = st.sampled_from([0.0, 0.3, 0.5, 1.0])
sizes = st.sampled_from([1, 3, 10, 100])
filters = st.sampled_from(FILTERS)
cuts = st.sampled_from(["query", "hit", "off"])
caps = st.tuples(st.sampled_from([None, None, 1, 2]), st.sampled_from([None, None, 6, 40]))
_thresholds = st.sampled_from([None, None, None, {"cosine": 0.3}, {"cosine": 0.2, "coverage": 0.6}])
requests = st.builds(request_of, queries, modes, fusions, weights, sizes, filters, cuts, _thresholds, caps)


# --- what must agree -------------------------------------------------------------------------------------------------


def assert_same_hits(left: Hits, right: Hits, *, same_index: bool = True) -> None:
    """Everything that a search answers, scores and signals within 1e-9; `same_index`: its version too."""
    left, right = (msgspec.structs.replace(hits, timings={}) for hits in (left, right))
    if not same_index:
        right = msgspec.structs.replace(right, index_version=left.index_version)
    if left != right:
        _assert_close(left.to_dict(), right.to_dict(), "hits")


def _assert_close(left: Any, right: Any, where: str) -> None:
    assert type(left) is type(right), (where, left, right)
    if isinstance(left, float):
        assert abs(left - right) <= 1e-9, (where, left, right)
    elif isinstance(left, dict):
        assert left.keys() == right.keys(), (where, left, right)
        for key, value in left.items():
            _assert_close(value, right[key], f"{where}.{key}")
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right), (where, left, right)
        for place, (one, other) in enumerate(zip(left, right, strict=True)):
            _assert_close(one, other, f"{where}[{place}]")
    else:
        assert left == right, (where, left, right)


def assert_same_ranking(left: View, right: View, request: Request) -> None:
    """Both views put the same rows into the same order, with the same signals; without reading a passage."""
    mine, other = rank(left, request), rank(right, request)
    names = [{row: place for place, row in enumerate(live_rows(view))} for view in (left, right)]
    assert [names[0][row] for row in mine.rows.tolist()] == [names[1][row] for row in other.rows.tolist()]
    for name in ("scores", "bm25", "coverage", "cosine", "lexical_rank", "dense_rank"):
        np.testing.assert_allclose(getattr(mine, name), getattr(other, name), rtol=0, atol=1e-9, err_msg=name)
    assert mine.rare == other.rare
    assert {names[0][row] for row in mine.rare_rows} == {names[1][row] for row in other.rare_rows}
    _assert_close(dict(mine.evidence), dict(other.evidence), "evidence")


def assert_same_lookups(left: View, right: View) -> None:
    """Passages are found by id, by what an id begins with, and by document; ties are settled alike."""
    for one, other in ((left, right), (right, left)):
        rows = np.array(live_rows(one), dtype=np.intp)
        assert one.by_id(rows[::-1]).tolist() == list(range(len(rows)))[::-1]
        for row, passage in zip(rows.tolist(), one.passages(rows.tolist()), strict=True):
            found = other.row(passage.id)
            assert one.row(passage.id) == row
            assert found is not None
            assert other.row(passage.id + "0") is None
            for prefix in (passage.id[:1], passage.id[:8], passage.id[:11]):
                assert _places(one, one.starting(prefix)) == _places(other, other.starting(prefix))
            assert _places(one, one.rows_of(passage.document_id)) == _places(other, other.rows_of(passage.document_id))
    assert left.starting("nothing") == left.rows_of("nobody") == []


def _places(view: View, rows: Sequence[int]) -> list[int]:
    """Where rows stand among the live ones, by id."""
    live = live_rows(view)
    return [live.index(row) for row in rows]


class Still:
    """A view that was taken at some time, with the passages that it showed then."""

    def __init__(self, view: View) -> None:
        self._view = view
        rows = live_rows(view)
        self.shown: dict[int, Passage] = dict(zip(rows, view.passages(rows), strict=True))
        self.touched: set[str] = set()

    def __len__(self) -> int:
        return len(self._view)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def passages(self, rows: Sequence[int]) -> list[Passage]:
        return [self.shown[row] for row in rows]

    def assert_still_readable(self) -> None:
        """Every passage is read as it was; of what was written to since a view may say that it is gone."""
        for row, passage in self.shown.items():
            try:
                assert self._view.passages([row]) == [passage]
            except StaleView:
                assert passage.document_id in self.touched


# --- the history -----------------------------------------------------------------------------------------------------


def by_hand(store: EmbeddedStore) -> EmbeddedStore:
    """The store without its thread: segments are made when a test says so."""
    store._keeper = None
    return store


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, gone at the end."""
    with tempfile.TemporaryDirectory(dir=RAM) as name:
        yield Path(name)


class History:
    """An embedded store in three handles (as three processes have it) and what it must agree with."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.store = by_hand(EmbeddedStore(place))
        self.other = by_hand(EmbeddedStore(place))
        self.reader = EmbeddedStore(place, read_only=True)
        self.memory = MemoryStore()
        self.live: dict[tuple[str, str], DocumentRow] = {}
        self.held: list[tuple[str, Still, Still]] = []

    def close(self) -> None:
        for store in (self.store, self.other, self.reader):
            store.close()

    @property
    def handles(self) -> tuple[EmbeddedStore, ...]:
        return self.store, self.other, self.reader

    def live_through(self, step: tuple[Any, ...]) -> None:
        """One step, and that the files are those of the list."""
        getattr(self, step[0])(*step[1:])
        assert_only_listed_files(self.store)

    # -- writing

    def put(self, scope: str, batch: Sequence[tuple[Any, ...]], store: EmbeddedStore | None = None) -> None:
        rows = [_row(scope, *drawn) for drawn in batch]
        for one in (store or self.store, self.memory):
            one.put(rows, vectors_of(rows, EMBEDDER))
        self.live |= {(scope, row.document.id): row for row in rows}
        self._touched(scope, [row.document.id for row in rows])

    def delete(self, scope: str, ids: Sequence[str], store: EmbeddedStore | None = None) -> None:
        assert (store or self.store).delete(scope, ids) == self.memory.delete(scope, ids)
        for name in ids:
            self.live.pop((scope, name), None)
        self._touched(scope, ids)

    def empty(self, scope: str) -> None:
        self.delete(scope, IDS)

    def _touched(self, scope: str, ids: Sequence[str]) -> None:
        for held, *pair in self.held:
            for still in pair if held == scope else ():
                still.touched.update(ids)

    # -- segments

    def flush(self, left: int) -> None:
        """Put all but the newest `left` numbers into a segment."""
        segments, upto = state_of(self.store)
        covered = segments[-1].last if segments else 0
        if upto - left > covered:
            assert carry_out(self.store._database, Job((), covered + 1, upto - left))

    def merge(self, drawn: tuple[int, int]) -> None:
        """Make one segment of some neighbours, or write one of them anew."""
        job = self._job(drawn)
        if job is not None:
            assert carry_out(self.store._database, job)

    def _job(self, drawn: tuple[int, int]) -> Job | None:
        segments, upto = state_of(self.store)
        if not segments:
            return Job((), 1, upto) if upto else None
        first = drawn[0] % len(segments)
        run = tuple(segments[first : first + drawn[1]])
        return Job(run, run[0].first, run[-1].last)

    def keep(self, flush_rows: int, ratio: int) -> None:
        """What the thread would do, to the end."""
        with few_rows(flush_rows):
            while (job := next_job(self.store, ratio)) is not None:
                assert carry_out(self.store._database, job)

    def compact(self) -> None:
        """Take what was deleted from the disk; numbers of terms may be given again after it."""
        self.store.compact()
        by_hand(self.store)

    def compact_beside(self, scope: str, passing: Sequence[tuple[Any, ...]], batch: Sequence[tuple[Any, ...]]) -> None:
        """Rows come and go while the index is compacted, readers see them, and their terms' numbers are given again."""

        def come_and_go() -> None:
            self.put(scope, passing, self.other)
            self.other.view(scope)
            self.delete(scope, [drawn[0] for drawn in passing], self.other)

        with at("swap.after", come_and_go):
            self.compact()
        self.put(scope, batch)

    def write_during(
        self, moment: str, drawn: tuple[int, int], scope: str, batch: Sequence[tuple[Any, ...]], ids: Sequence[str]
    ) -> None:
        """Another process writes and deletes while a segment is being made."""

        def write() -> None:
            self.put(scope, batch, self.other)
            self.delete(scope, ids, self.other)

        job = self._job(drawn)
        if job is not None:
            with at(moment, write):
                assert carry_out(self.store._database, job)

    def compact_during(
        self, moment: str, drawn: tuple[int, int], scope: str, batch: Sequence[tuple[Any, ...]], ids: Sequence[str]
    ) -> None:
        """Another process deletes, compacts and writes while a segment is being made; that may come too late then."""

        def compact() -> None:
            self.delete(scope, ids, self.other)
            self.other.compact()
            by_hand(self.other)
            self.put(scope, batch, self.other)

        job = self._job(drawn)
        if job is not None:
            with at(moment, compact):
                carry_out(self.store._database, job)

    def overtake(self, moment: str, drawn: tuple[int, int]) -> None:
        """Another process does the same job, and is faster."""
        job = self._job(drawn)
        if job is not None:
            with at(moment, lambda: carry_out(self.other._database, job)):
                assert not carry_out(self.store._database, job)

    # -- reading

    def reopen(self) -> None:
        """The writer ends, and starts again."""
        self.store.close()
        self.store = by_hand(EmbeddedStore(self.place))

    def hold(self, scope: str) -> None:
        """Somebody keeps a view for long."""
        self.held.append((scope, Still(self.other.view(scope)), Still(self.memory.view(scope))))

    def check(self, store: Store, scope: str, requests: Sequence[Request], terms: Sequence[str] = TERMS) -> None:
        """A handle shows and answers what the store in memory does."""
        view, expected = store.view(scope), self.memory.view(scope)
        assert view.version == expected.version
        assert_same_view(view, expected, terms)
        for request in requests:
            assert_same_hits(hybrid.search(view, request), hybrid.search(expected, request))

    def check_held(self, request: Request) -> None:
        """Views that are kept show and rank what they did, whatever became of the files."""
        for _, still, expected in self.held:
            assert_same_view(still, expected, list(request.terms.words))
            assert_same_ranking(still, expected, request)
            still.assert_still_readable()


def state_of(store: EmbeddedStore) -> tuple[list[StoredSegment], int]:
    """The list of the segments, and the highest number of a passage."""
    with store._database.read() as connection:
        return read_segments(connection, store.where), read_counter(connection, "passage", store.where)


LAYOUTS = ("in memory", "in a file", "in a file and in memory", "in many files", "merged", "compacted")


def lay_out(store: EmbeddedStore, layout: str) -> None:
    """Put what is in no segment yet where it shall lie, and merge or compact all; `store` is driven by hand."""
    segments, upto = state_of(store)
    covered = segments[-1].last if segments else 0
    step = {"in memory": 0, "in a file": upto - covered, "in a file and in memory": (upto - covered) // 2}
    size = step.get(layout, (upto - covered) // 4 + 1)
    many = 1 if layout in step else 4
    for first in range(covered + 1, upto + 1, size or upto)[: many if size else 0]:
        assert carry_out(store._database, Job((), first, min(first + size - 1, upto)))
    if layout == "merged":
        segments = state_of(store)[0]
        assert carry_out(store._database, Job(tuple(segments), segments[0].first, segments[-1].last))
    elif layout == "compacted":
        store.compact()
        by_hand(store)


def next_job(store: EmbeddedStore, ratio: float = 1) -> Job | None:
    """What the thread would do next."""
    with store._database.read() as connection:
        return plan(connection, store.where, ratio)


def assert_only_listed_files(store: EmbeddedStore) -> None:
    """The files of the segments are those that the list names, no more and no less."""
    listed = {one.name.decode() + SUFFIX for one in state_of(store)[0]}
    assert {path.name for path in (store.folder / FOLDER).glob("*")} == listed


@contextmanager
def few_rows(flush_rows: int) -> Iterator[None]:
    """So many rows are worth a file meanwhile."""
    before, keeper.FLUSH_ROWS = keeper.FLUSH_ROWS, flush_rows
    try:
        yield
    finally:
        keeper.FLUSH_ROWS = before


@contextmanager
def at(moment: str, action: Callable[[], object]) -> Iterator[None]:
    """Do something once, at a failpoint."""

    def hook(name: str) -> None:
        if name == moment:
            failpoint.hook = None
            action()

    failpoint.hook = hook
    try:
        yield
    finally:
        failpoint.hook = None
