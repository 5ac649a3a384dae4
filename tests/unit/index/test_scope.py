"""A handle bound to a scope sees, counts and writes that scope alone; nothing but the host program can bind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from wellhead import ConfigError, Document, Hits, Index, ScopeError
from wellhead.events import EventLog
from wellhead.records import MetadataValue
from wellhead.testing.fakes import HashEmbedder

WORDS = ["key", "rotate", "log", "backup", "vault", "night"]
KEYS = ["tenant", None]
both_kinds = pytest.mark.parametrize("scope_key", KEYS, ids=["with scope_key", "without"])


class Refusing(HashEmbedder):
    """Fails a test in which a query gets as far as the embedder."""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return HashEmbedder().embed_documents(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        raise AssertionError(f"something ran for {text!r}")


def house(scope_key: str | None = "tenant", *, path: str | Path = ":memory:", **options: object) -> Index:
    return Index.open(
        path,
        **{"embedder": HashEmbedder(), "languages": ["en"], "scope_key": scope_key, **options},  # type: ignore[arg-type]
    )


def note(name: str, text: str = "rotate the key", **metadata: MetadataValue) -> Document:
    return Document(id=name, text=text, metadata=metadata)


def ids(index: Index) -> list[str]:
    return [one.id for one in index.documents()]


# -- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("G10")
def test_nothing_is_read_or_written_without_a_scope(tmp_path: Path) -> None:
    log = EventLog()
    (tmp_path / "a.md").write_text("# Key\n\nrotate\n")
    with house(sinks=[log]) as index:
        index.scoped(tenant="acme").add([note("a")])
        (passage,) = index.scoped(tenant="acme").passages("a")
        ways: list[Callable[[], object]] = [
            lambda: index.search("key"),
            lambda: index.search("key", filters={"$and": [{"tenant": "acme"}]}),
            lambda: index.explain("key", passage),
            lambda: index.get("a"),
            lambda: index.passage(passage.id),
            lambda: index.passages("a"),
            lambda: index.documents(),
            lambda: index.stats(),
            lambda: index.add([note("b")]),
            lambda: index.add([note("b", tenant=" ")]),
            lambda: index.add([note("b", tenant=7)]),
            lambda: index.sync(tmp_path),
            lambda: index.remove("a"),
        ]
        for way in ways:
            with pytest.raises(ScopeError, match="scope"):
                way()
        assert ids(index.scoped(tenant="acme")) == ["a"]
        assert len(log.of_type("retrieval.failed")) == 2


@both_kinds
@pytest.mark.parametrize("blank", ["", " ", "\u00a0\t", None, 7, True, ["acme"]])
def test_a_blank_tenant_raises_before_anything_runs(scope_key: str | None, blank: object) -> None:
    with house(scope_key, embedder=Refusing()) as index:
        index.scoped(tenant="acme").add([note("a")])
        with pytest.raises(ScopeError, match="non-blank"):
            index.scoped(tenant=blank)  # type: ignore[arg-type]
        if scope_key:
            for filters in ({"tenant": blank}, {"tenant": {"$eq": blank}}):
                with pytest.raises(ScopeError, match="non-blank"):
                    index.search("key", filters=filters)


def test_a_filter_on_the_scope_key_binds_it() -> None:
    log = EventLog()
    with house(sinks=[log]) as index:
        index.add([note("a", tenant="acme", year=2026), note("g", "another key", tenant="globex", year=2026)])
        for value in ("acme", {"$eq": "acme"}):
            hits = index.search("key", filters={"tenant": value, "year": 2026}, cut="off")
            assert [hit.passage.document_id for hit in hits] == ["a"]
            assert hits.coverage.passages == 1
        assert index.search("key", filters={"tenant": "nobody"}).outcome == "empty_index"
        assert index.search("key", filters={"tenant": "acme", "year": 1999}).outcome == "filtered_out"
        (passage,) = index.scoped(tenant="acme").passages("a")
        assert index.explain("key", passage, filters={"tenant": "acme"}, cut="off").returned
        with pytest.raises(ScopeError):
            index.search("key", filters={"tenant": {"$in": ["acme", "globex"]}})
        assert index.scoped(tenant="acme").search("key", filters={"tenant": "globex"}).outcome == "filtered_out"
        assert [len(log.of_type(name)) for name in ("retrieval.searched", "retrieval.failed")] == [5, 1]


@both_kinds
@pytest.mark.promise("D43")
def test_a_scope_alone_never_says_filtered_out(scope_key: str | None) -> None:
    with house(scope_key) as index:
        index.scoped(tenant="acme").add([note("a", year=2026)])
        empty, narrowed = (
            index.scoped(tenant="globex").search("key"),
            index.scoped(tenant="globex").search("key", filters={"year": 2026}),
        )
        assert (empty.outcome, empty.coverage.passages) == ("empty_index", 0)
        assert (narrowed.outcome, narrowed.why_empty) == ("empty_index", empty.why_empty)
        assert index.scoped(tenant="globex").stats().passages == 0


@pytest.mark.promise("D40")
@both_kinds
def test_a_crowd_in_another_scope_takes_no_places(scope_key: str | None) -> None:
    """Filtered after the ranking, the three of acme would be crowded out by the five hundred of globex."""
    with house(scope_key) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        globex.add(note(f"g{n}", f"zyzzyva zyzzyva {n}") for n in range(500))
        acme.add(note(f"a{n}", f"a long note in which one zyzzyva is told of {n}") for n in range(3))
        hits = acme.search("zyzzyva", k=3, cut="off")
        assert {hit.passage.document_id for hit in hits} == {"a0", "a1", "a2"}
        assert {hit.metadata["tenant"] for hit in hits} == {"acme"}


@pytest.mark.parametrize(
    "scope", [{}, {"tenant": "acme", "area": "a"}, {"area": "acme"}], ids=["none", "two", "another key"]
)
def test_a_scope_is_the_one_key_of_the_index(scope: dict[str, str]) -> None:
    with house() as index, pytest.raises(ScopeError):
        index.scoped(**scope)


@both_kinds
def test_a_bound_handle_cannot_be_bound_elsewhere(scope_key: str | None) -> None:
    with house(scope_key) as index:
        acme = index.scoped(tenant="acme")
        acme.scoped(tenant="acme").add([note("a")])
        assert ids(acme) == ["a"]
        with pytest.raises(ScopeError, match="another scope already"):
            acme.scoped(tenant="globex")


def test_the_scope_key_is_fixed_when_the_index_is_made(kb: Path) -> None:
    with house("tenant", path=kb) as index:
        index.scoped(tenant="acme").add([note("a")])
    with house(None, path=kb) as index, pytest.raises(ScopeError):
        index.search("key")
    with pytest.raises(ConfigError, match="scope_key"):
        house("area", path=kb)


# -- statistics -------------------------------------------------------------------------------------------------------

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
corpora = st.dictionaries(st.sampled_from(["d1", "d2", "d3", "d4", "d5"]), texts, min_size=1)


def told(hits: Hits) -> Hits:
    """Everything that a caller sees of an answer, but its time and the number of writes before it."""
    return msgspec.structs.replace(hits, timings={}, index_version=0)


@settings(max_examples=60)
@given(corpora, corpora, st.sampled_from(WORDS), st.sampled_from(["hybrid", "lexical", "dense"]))
@pytest.mark.parametrize("kind", ["embedded", "memory"])
@both_kinds
def test_scores_in_a_scope_are_those_of_an_index_that_holds_only_it(
    scope_key: str | None,
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    mine: dict[str, str],
    others: dict[str, str],
    word: str,
    mode: str,
) -> None:
    path = ":memory:" if kind == "memory" else tmp_path_factory.mktemp("kb")
    with house(scope_key, path=path) as shared, house(scope_key) as alone:
        shared.scoped(tenant="globex").add(note(f"g-{name}", text, year=1) for name, text in others.items())
        for index in (shared, alone):
            index.scoped(tenant="acme").add(note(name, text, year=2) for name, text in mine.items())
        left, right = shared.scoped(tenant="acme"), alone.scoped(tenant="acme")
        for filters in (None, {"year": 2}, {"year": 1}):
            answers = [one.search(f"{word} key", mode=mode, filters=filters, cut="off") for one in (left, right)]  # type: ignore[arg-type]
            assert told(answers[0]) == told(answers[1])
        assert of_scope(left) == of_scope(right)


def of_scope(index: Index) -> object:
    stats = index.stats()
    return stats.documents, stats.passages, stats.with_vectors, stats.incomplete, stats.languages, stats.areas


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D42")
@both_kinds
def test_a_file_cannot_stamp_its_own_scope(scope_key: str | None, tmp_path: Path) -> None:
    docs = tmp_path / "globex"
    docs.mkdir()
    (docs / "tenant=globex.md").write_text("---\ntenant: globex\nproduct: vault\n---\n# Key\n\nrotate the key\n")
    (docs / "list.md").write_text("---\ntenant: [globex, acme]\n---\n# Key\n\nrotate the other key\n")
    (docs / "globex.html").write_text("<html><head><meta name='tenant' content='globex'></head><p>a key</p></html>")
    with house(scope_key) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        assert acme.sync(docs).complete
        assert len(ids(acme)) == 3
        assert {one.metadata["tenant"] for one in acme.documents()} == {"acme"}
        assert {hit.metadata["tenant"] for hit in acme.search("key", cut="off")} == {"acme"}
        held = acme.get("tenant=globex.md")
        assert held is not None
        assert held.metadata["product"] == "vault"
        assert ids(globex) == []
        assert globex.search("key").outcome == "empty_index"
        assert acme.sync(docs).unchanged == 3


@pytest.mark.promise("D42")
@both_kinds
def test_a_write_across_scopes_raises_and_changes_nothing(scope_key: str | None) -> None:
    with house(scope_key) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        globex.add([note("g")])
        before = (index.scoped(tenant="globex").stats(), acme.stats())
        for stamp in ("globex", "", ["acme"], True):
            with pytest.raises(ScopeError, match="another tenant"):
                acme.add([note("fine"), note("x", tenant=stamp)])  # type: ignore[arg-type]
        if scope_key is None:
            with pytest.raises(ScopeError, match="taken outside this scope"):
                acme.add([note("g", "overwritten")])
        assert acme.remove(["g"]) == 0
        assert (globex.stats(), acme.stats()) == before


def test_with_a_scope_key_each_scope_has_ids_of_its_own() -> None:
    with house() as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        acme.add([note("faq", "the acme way")])
        globex.add([note("faq", "the globex way")])
        assert [one.text for one in acme.documents()] == ["the acme way"]
        assert acme.passages("faq")[0].id != globex.passages("faq")[0].id
        assert acme.remove("faq") == 1
        assert [one.text for one in globex.documents()] == ["the globex way"]


def test_the_host_moves_a_document_between_scopes() -> None:
    with house() as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        index.add([note("a", tenant="acme"), note("b", tenant="acme")])
        report = index.add([note("a", tenant="globex"), note("b", tenant="acme")])
        assert (report.read, report.added, report.updated, report.unchanged, report.moved) == (2, 0, 1, 1, 1)
        assert (report.embedded, report.reused) == (0, 1)
        assert (ids(acme), ids(globex)) == (["b"], ["a"])
        assert [hit.passage.document_id for hit in acme.search("key", cut="off")] == ["b"]
        assert [hit.passage.document_id for hit in globex.search("key", cut="off")] == ["a"]
        assert index.verify().ok


def test_a_move_that_is_stopped_loses_nothing() -> None:
    class Failing(HashEmbedder):
        broken = False

        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if self.broken:
                raise TimeoutError
            return super().embed_documents(texts)

    embedder = Failing()
    with house(embedder=embedder) as index:
        acme = index.scoped(tenant="acme")
        index.add([note("a", tenant="acme")])
        with pytest.raises(ScopeError):
            index.add([note("a", tenant="globex"), note("b")])
        embedder.broken = True
        with pytest.raises(ConnectionError):
            index.add([note("a", "edited", tenant="globex")])
        assert ids(acme) == ["a"]
        assert ids(index.scoped(tenant="globex")) == []


def test_one_run_cannot_put_one_id_into_two_scopes() -> None:
    with house() as index:
        report = index.add([note("faq", tenant="acme"), note("faq", tenant="globex")])
        assert [one.id for one in report.refused] == ["faq"]
        assert "two values of tenant" in report.refused[0].reason
        assert [ids(index.scoped(tenant=name)) for name in ("acme", "globex")] == [["faq"], []]


def test_a_list_that_holds_the_value_is_another_scope() -> None:
    """In an index without a scope key the host may have stamped anything; the handle sees one exact value alone."""
    with house(None) as index:
        index.add([note("list", tenant=("acme", "globex")), note("text", "another key", tenant="acme"), note("none")])
        acme = index.scoped(tenant="acme")
        assert ids(acme) == ["text"]
        assert [hit.passage.document_id for hit in acme.search("key", cut="off")] == ["text"]
        assert acme.passages("list") == []
        assert acme.stats().passages == 1


@both_kinds
def test_two_scopes_sync_one_folder_without_pruning_one_another(scope_key: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("rotate the key")
    (tmp_path / "b.txt").write_text("keep the log")
    with house(scope_key) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        acme.sync(tmp_path, prefix="acme/")
        globex.sync(tmp_path, prefix="globex/")
        (tmp_path / "b.txt").unlink()
        report = globex.sync(tmp_path, prefix="globex/")
        assert (report.removed, ids(globex)) == (1, ["globex/a.txt"])
        assert ids(acme) == ["acme/a.txt", "acme/b.txt"]
        assert acme.sync(tmp_path, prefix="acme/", dry_run=True).removed == 1


def test_without_a_scope_key_a_file_whose_id_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("rotate the key")
    (tmp_path / "b.txt").write_text("keep the log")
    with house(None) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        acme.add([note("a.txt")])
        report = globex.sync(tmp_path)
        assert [(one.id, "taken outside this scope" in one.reason) for one in report.refused] == [("a.txt", True)]
        assert (ids(globex), ids(acme)) == (["b.txt"], ["a.txt"])


@both_kinds
def test_a_handle_sees_writes_of_another_at_once(scope_key: str | None) -> None:
    with house(scope_key) as index:
        one, other = index.scoped(tenant="acme"), index.scoped(tenant="acme")
        assert one.search("key").outcome == "empty_index"
        other.add([note("a")])
        assert len(one.search("key", cut="off")) == 1
        other.remove("a")
        assert one.search("key").outcome == "empty_index"
        assert msgspec.structs.replace(one.stats(), index_version=0).passages == 0
