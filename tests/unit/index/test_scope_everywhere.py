"""Every public way into an index asks for a scope, and none tells "not yours" from "not there"."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from wellhead import Document, Guarded, Index, Passage, ScopeError, UsageError
from wellhead.backends.retrievers.function import FunctionRetriever
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.memory import MemoryStore
from wellhead.index.embedding import EmbeddingRetriever
from wellhead.testing.fakes import HashEmbedder

KINDS = ("embedded", "memory")
KEYS = ("tenant", None)
both_stores = pytest.mark.parametrize("kind", KINDS)
both_keys = pytest.mark.parametrize("scope_key", KEYS, ids=["with scope_key", "without"])


def house(kind: str, kb: Path, scope_key: str | None = "tenant", **options: Any) -> Index:
    place: str | Path = ":memory:" if kind == "memory" else kb
    return Index.open(place, embedder=HashEmbedder(), languages=["en"], scope_key=scope_key, **options)


def filled(kind: str, kb: Path, scope_key: str | None = "tenant") -> Index:
    index = house(kind, kb, scope_key)
    index.scoped(tenant="acme").add([Document(id="acme-plan", text="the merger is called bluebird")])
    index.scoped(tenant="globex").add([Document(id="globex-note", text="the canteen opens at noon")])
    return index


# -- a scope is needed ------------------------------------------------------------------------------------------------

# How each public way of an index is tried without a scope. Whoever adds one has to say here which kind it is of.
NEEDS_SCOPE: Mapping[str, Callable[[Index, Passage, Path], object]] = {
    "add": lambda index, passage, place: index.add([Document(id="b", text="x")]),
    "asearch": lambda index, passage, place: asyncio.run(index.asearch("merger")),
    "documents": lambda index, passage, place: index.documents(),
    "explain": lambda index, passage, place: index.explain("merger", passage),
    "explain_all": lambda index, passage, place: index.explain_all("merger", [passage]),
    "get": lambda index, passage, place: index.get("acme-plan"),
    "passage": lambda index, passage, place: index.passage(passage.id),
    "passages": lambda index, passage, place: index.passages("acme-plan"),
    "remove": lambda index, passage, place: index.remove("acme-plan"),
    "search": lambda index, passage, place: index.search("merger"),
    "stats": lambda index, passage, place: index.stats(),
    "summaries": lambda index, passage, place: index.summaries(),
    "sync": lambda index, passage, place: index.sync(place),
}
# What is done to an index as a whole, and shows numbers of all of it, or holds all of it.
OF_THE_WHOLE = ("backup", "compact", "repair", "storage", "verify")
# What shows and changes nothing that anybody stored.
NEITHER = ("close", "index_version", "open", "repair_at", "scope", "scope_key", "scoped")


def test_every_public_way_is_of_a_kind_that_is_known() -> None:
    public = [name for name in dir(Index) if not name.startswith("_")]
    assert public == sorted([*NEEDS_SCOPE, *OF_THE_WHOLE, *NEITHER])


@pytest.mark.promise("G10", "D40")
@both_stores
@pytest.mark.parametrize("name", NEEDS_SCOPE)
def test_without_its_scope_nothing_is_read_or_written(name: str, kind: str, kb: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.md").write_text("rotate")
    with filled(kind, kb) as index:
        (passage,) = index.scoped(tenant="acme").passages("acme-plan")
        version = index.index_version
        with pytest.raises(ScopeError) as caught:
            NEEDS_SCOPE[name](index, passage, files)
        assert "acme" not in str(caught.value).replace("acme-plan", "")
        assert "bluebird" not in str(caught.value)
        assert index.index_version == version


def test_a_guard_needs_it_too_for_every_way_it_has() -> None:
    public = [name for name in dir(Guarded) if not name.startswith("_")]
    assert public == ["asearch", "name", "retriever", "scope", "scope_key", "scoped", "search"]
    guarded = Guarded(FunctionRetriever(lambda query, k, filters: ["text"], scope_key="tenant"))
    with pytest.raises(ScopeError, match="without its scope"):
        guarded.search("merger")
    with pytest.raises(ScopeError, match="without its scope"):
        asyncio.run(guarded.asearch("merger"))


@pytest.mark.parametrize("name", OF_THE_WHOLE)
def test_what_is_done_to_the_whole_is_refused_to_a_handle_of_one_scope(name: str, kb: Path, tmp_path: Path) -> None:
    with filled("embedded", kb) as index:
        given = (tmp_path / "copy",) if name == "backup" else ()
        with pytest.raises(ScopeError, match="bound to a scope"):
            getattr(index.scoped(tenant="acme"), name)(*given)


@both_stores
@both_keys
def test_a_handle_of_one_scope_counts_nothing_of_the_whole(scope_key: str | None, kind: str, kb: Path) -> None:
    with filled(kind, kb, scope_key) as index:
        acme = index.scoped(tenant="acme")
        before = acme.stats()
        index.scoped(tenant="globex").add([Document(id=f"g{n}", text=f"note {n} of globex") for n in range(20)])
        assert msgspec.structs.replace(acme.stats(), index_version=before.index_version) == before


@pytest.mark.promise("G14")
@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u00a0", "\u2003", None, 0, 7, True, [], ["acme"], "\ud800"])
def test_a_blank_value_fails_before_anything_runs(blank: Any) -> None:
    """Through each retriever, in each way that a scope can be given."""

    class Watching(HashEmbedder):
        asked = 0

        def embed_query(self, text: str) -> Any:
            type(self).asked += 1
            return super().embed_query(text)

        def embed_documents(self, texts: Sequence[str]) -> Any:
            return HashEmbedder().embed_documents(texts)

    asked: list[str] = []
    documents = [Document(id="a", text="rotate", metadata={"tenant": "acme"})]
    index = Index.open(":memory:", embedder=Watching(), languages=["en"], scope_key="tenant")
    index.add(documents)
    function = FunctionRetriever(lambda query, k, filters: asked.append(query) or ["x"], scope_key="tenant")
    in_memory = EmbeddingRetriever(Watching(), documents, scope_key="tenant")
    for retriever in (index, Guarded(index), function, in_memory):
        ways: list[Callable[[], object]] = [
            lambda retriever=retriever: retriever.scoped(tenant=blank),  # type: ignore[misc]
            lambda retriever=retriever: retriever.search("rotate", filters={"tenant": blank}),  # type: ignore[misc]
            lambda retriever=retriever: retriever.search("rotate", filters={"tenant": {"$eq": blank}}),  # type: ignore[misc]
        ]
        for way in ways:
            with pytest.raises(UsageError):
                way()
    assert (asked, Watching.asked) == ([], 0)


# -- not there, not yours ---------------------------------------------------------------------------------------------

# (handle, document's id, passage's id) -> what is told
LOOKS: Mapping[str, Callable[[Index, str, str], object]] = {
    "get": lambda own, document, passage: own.get(document),
    "passages": lambda own, document, passage: own.passages(document),
    "remove": lambda own, document, passage: own.remove([document]),
    "passage": lambda own, document, passage: own.passage(passage),
    "passage by its beginning": lambda own, document, passage: own.passage(passage[:12]),
    "explain": lambda own, document, passage: own.explain("merger", passage),
    "explain by its beginning": lambda own, document, passage: own.explain("merger", passage[:12]),
}


def told(action: Callable[[], object], *names: str) -> str:
    """What came of it, by type and in words, without the names that were asked for."""
    try:
        said = f"value {action()!r}"
    except UsageError as error:
        said = f"{type(error).__name__} {error.to_dict()!r} {error}"
    for name in names:
        said = said.replace(name, "NAME")
    return said


@contextmanager
def counted(calls: Counter[str], *kinds: type) -> Iterator[None]:
    """Count calls of the methods of these classes."""
    names = {
        getattr(kind, name).__code__: f"{kind.__name__}.{name}"
        for kind in kinds
        for name in vars(kind)
        if hasattr(getattr(kind, name), "__code__")
    }

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in names:
            calls[names[frame.f_code]] += 1

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("look", LOOKS)
@both_keys
@both_stores
def test_what_is_anothers_is_told_like_what_is_not_there(look: str, scope_key: str | None, kind: str, kb: Path) -> None:
    with filled(kind, kb, scope_key) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        (secret,) = acme.passages("acme-plan")
        unknown = "f" * 64 if secret.id[0] != "f" else "0" * 64
        LOOKS["get"](globex, "warm", unknown)
        asked = {"foreign": ("acme-plan", secret.id), "absent": ("no-such-x", unknown)}
        assert len({len(document) for document, _ in asked.values()}) == 1
        answers: dict[str, str] = {}
        calls: dict[str, Counter[str]] = {name: Counter() for name in asked}
        for name, (document, passage) in asked.items():
            version = index.index_version
            told(lambda document=document, passage=passage: LOOKS[look](globex, document, passage))  # type: ignore[misc]
            with counted(calls[name], EmbeddedStore, MemoryStore):
                answers[name] = told(
                    lambda document=document, passage=passage: LOOKS[look](globex, document, passage),  # type: ignore[misc]
                    document,
                    passage,
                    passage[:12],
                )
            assert index.index_version == version
        assert answers["foreign"] == answers["absent"]
        assert calls["foreign"] == calls["absent"]
        assert calls["foreign"].total() > 0
        assert acme.get("acme-plan") is not None


@both_stores
@pytest.mark.parametrize("look", LOOKS)
def test_with_a_scope_key_the_same_code_runs_for_both(look: str, kind: str, kb: Path) -> None:
    """Not only the store's own methods: every function of the package, as often."""
    with filled(kind, kb) as index:
        globex = index.scoped(tenant="globex")
        (secret,) = index.scoped(tenant="acme").passages("acme-plan")
        unknown = secret.id[::-1]
        ran: list[Counter[tuple[str, str]]] = []
        for document, passage in (("acme-plan", secret.id), ("no-such-x", unknown), ("acme-plan", secret.id)):
            seen: Counter[tuple[str, str]] = Counter()

            def watch(frame: FrameType, event: str, argument: object, seen: Any = seen) -> None:
                if event == "call" and f"{Path('wellhead')}" in frame.f_code.co_filename:
                    seen[frame.f_code.co_filename, frame.f_code.co_qualname] += 1

            sys.setprofile(watch)
            try:
                told(lambda document=document, passage=passage: LOOKS[look](globex, document, passage))  # type: ignore[misc]
            finally:
                sys.setprofile(None)
            ran.append(seen)
        assert ran[2] == ran[1]
        assert ran[1].total() > 3


# -- readers cannot stamp ---------------------------------------------------------------------------------------------

# Names under which some reader puts something of its own into the metadata, and one that only files use.
SCOPE_KEYS = ("tenant", "area", "encoding", "lang", "language", "keywords", "description", "title", "tags", "a.b")


def claims(key: str, victim: str) -> dict[str, str | bytes]:
    """Files of every kind that has a reader, each naming the victim in each way that its kind allows."""
    html = f'<html lang="{victim}"><head><title>{victim}</title><meta name="{key}" content="{victim}">'
    html += f'<meta property="{key}" content="{victim}"><meta http-equiv="{key}" content="{victim}"></head>'
    cell = {"cell_type": "markdown", "metadata": {key: victim}, "source": ["rotate the key"]}
    book = {"cells": [cell], "metadata": {key: victim, "kernelspec": {key: victim}}, "nbformat": 4, "nbformat_minor": 5}
    nested = {"a": {"b": victim}, key: victim, f" {key} ": victim, key.upper(): victim}
    return {
        "front.md": f"---\n{key}: {victim}\n---\n\nrotate the key\n",
        "quoted.md": f'---\n"{key}": "{victim}"\n? {key}\n: {victim}\n---\n\nrotate the key\n',
        "nested.md": f"---\na:\n  b: {victim}\n{key}: [{victim}, {victim}]\n---\n\nrotate the key\n",
        "title.md": f"---\ntitle: {victim}\nlang: {victim}\ntags: {victim}\n---\n# {victim}\n\nrotate the key\n",
        "page.html": f'{html}<body data-{key.replace(".", "-")}="{victim}"><p>rotate the key</p></body></html>',
        "record.json": json.dumps({**nested, "text": "rotate the key"}),
        "records.jsonl": "\n".join(json.dumps({**nested, "text": f"rotate {n}"}) for n in range(2)),
        "table.csv": f"{key},text\n{victim},rotate the key\n",
        "book.ipynb": json.dumps(book),
        "plain.txt": f"{key}: {victim}\n\nrotate the key\n",
        "code.py": f'{key.replace(".", "_")} = "{victim}"\n\ndef rotate():\n    """rotate the key"""\n',
        "doc.rst": f".. meta::\n   :{key}: {victim}\n\n:{key}: {victim}\n\nrotate the key\n",
        "latin.txt": f"{victim} tägliche Prüfung des Schlüssels rotate".encode("latin-1"),
        f"{victim}/deep.md": "rotate the key\n",
        f"{key}={victim}.md": "rotate the key\n",
    }


@pytest.mark.promise("D42")
@pytest.mark.parametrize("key", SCOPE_KEYS)
@pytest.mark.parametrize("keeps_apart", [True, False], ids=["with scope_key", "without"])
def test_no_file_of_any_kind_chooses_its_scope(key: str, keeps_apart: bool, tmp_path: Path) -> None:
    files = tmp_path / "files"
    for name, content in claims(key, "globex").items():
        place = files / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    with house("memory", tmp_path, key if keeps_apart else None) as index:
        acme, globex = index.scoped(**{key: "acme"}), index.scoped(**{key: "globex"})
        report = acme.sync(files, prefix="globex/")
        assert report.refused == ()
        assert report.read == len(claims(key, "globex"))
        assert {one.metadata[key] for one in acme.documents()} == {"acme"}
        assert len(list(acme.documents())) == report.read
        assert list(globex.documents()) == []
        assert globex.search("rotate key", cut="off").outcome == "empty_index"
        assert {hit.metadata[key] for hit in acme.search("rotate", k=100, cut="off")} == {"acme"}
        assert acme.sync(files, prefix="globex/").unchanged == report.read


@pytest.mark.promise("D42")
@both_stores
def test_a_host_program_may_stamp_what_it_builds(kind: str, kb: Path) -> None:
    with house(kind, kb) as index:
        index.add([Document(id="a", text="rotate the key", metadata={"tenant": "acme"})])
        index.scoped(tenant="acme").add([Document(id="b", text="keep the log", metadata={"tenant": "acme"})])
        assert [one.id for one in index.scoped(tenant="acme").documents()] == ["a", "b"]
        with pytest.raises(ScopeError, match="another tenant"):
            index.scoped(tenant="globex").add([Document(id="c", text="x", metadata={"tenant": "acme"})])
        assert index.scoped(tenant="globex").summaries() == []


# -- what an error may say --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    ["SECRET", ["SECRET"], {"text": "SECRET"}, [{"text": "SECRET"}], Document(id="a", text="SECRET"), [b"SECRET"]],
)
def test_what_is_no_list_of_documents_is_refused_without_a_word_of_it(given: Any, kb: Path) -> None:
    with house("memory", kb) as index, pytest.raises(UsageError, match="iterable of Document") as caught:
        index.scoped(tenant="acme").add(given)
    assert "SECRET" not in str(caught.value)


def test_in_memory_each_scope_has_ids_of_its_own() -> None:
    """Written through an unbound handle the second document would have moved the first one away."""
    ways = [Document(id="faq", text=f"the {name} way", metadata={"tenant": name}) for name in ("acme", "globex")]
    together = EmbeddingRetriever(HashEmbedder(), ways, scope_key="tenant")
    one_by_one = EmbeddingRetriever(HashEmbedder(), ways[:1], scope_key="tenant")
    assert len(one_by_one.search("way", filters={"tenant": "acme"}))
    one_by_one.add(ways[1:])
    for retriever in (together, one_by_one):
        for name in ("acme", "globex"):
            assert [hit.text for hit in retriever.scoped(tenant=name).search("way")] == [f"the {name} way"]
    one_by_one.add([msgspec.structs.replace(ways[0], text="another way")])
    assert [hit.text for hit in one_by_one.scoped(tenant="acme").search("way")] == ["another way"]
    assert [hit.text for hit in one_by_one.scoped(tenant="globex").search("way")] == ["the globex way"]
