"""LangChain's own suites over our door to it, and what they do not ask."""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document as Foreign
from langchain_core.embeddings import Embeddings
from langchain_core.messages import ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
    VectorStoreIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests, ToolsUnitTests

from endings import ABSENT, FOUND, SECRET, filled, filled_anew, half_down, outage
from wellhead import (
    BackendError,
    ConfigError,
    Context,
    Document,
    EventLog,
    Executor,
    Guarded,
    Index,
    Registry,
    ScopeError,
    UsageError,
    search_tool,
)
from wellhead.backends.embedders.static import StaticEmbedder
from wellhead.doors.langchain import (
    Documents,
    WellheadEmbeddings,
    WellheadRetriever,
    WellheadVectorStore,
    langchain_tool,
)
from wellhead.testing.fakes import HashEmbedder

# --- their suites, nothing overridden ------------------------------------------------------------------------------


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[WellheadVectorStore]:
        store = WellheadVectorStore.from_texts([], self.get_embeddings())
        yield store
        store.index.close()


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return WellheadRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        # The suite wants exactly k documents, however little they have to do with the question.
        return {"retriever": filled(), "options": {"cut": "off"}}

    @property
    def retriever_query_example(self) -> str:
        return FOUND


class TestEmbeddings(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return WellheadEmbeddings


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return WellheadEmbeddings


class TestTool(ToolsIntegrationTests):
    @property
    def tool_constructor(self) -> type[BaseTool] | BaseTool:
        return langchain_tool(search_tool(filled()))

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": FOUND}


class TestToolUnit(ToolsUnitTests):
    @property
    def tool_constructor(self) -> type[BaseTool] | BaseTool:
        return langchain_tool(search_tool(filled(), narrowing={"area": ["guides"]}))

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": FOUND, "area": "guides"}


# --- the retriever -------------------------------------------------------------------------------------------------


def scoped() -> Index:
    index = Index.open(":memory:", scope_key="tenant", embedder=HashEmbedder(), languages=["en"])
    for tenant, days in (("acme", 45), ("globex", 14)):
        index.scoped(tenant=tenant).add([Document(id="refunds", text=f"A refund is paid within {days} days.")])
    return index


def test_a_document_tells_where_it_comes_from_and_what_was_measured() -> None:
    (first, *_) = WellheadRetriever(retriever=filled(), k=2).invoke(FOUND)
    hit = filled().search(FOUND)[0]
    assert (first.id, first.page_content) == (hit.id, hit.text)
    assert first.metadata["source"] == "keys"
    assert first.metadata["area"] == "guides"
    assert first.metadata["title"] == "Keys"
    said = first.metadata["wellhead"]
    assert (said["citation"], said["rank"], said["document_id"]) == ("keys", 1, "keys")
    assert said["score"] == pytest.approx(hit.score)


def test_an_empty_list_knows_why_it_is_empty_and_a_failure_is_no_list() -> None:
    nothing = WellheadRetriever(retriever=filled()).invoke(ABSENT)
    assert isinstance(nothing, Documents)
    assert (list(nothing), nothing.outcome) == ([], "no_match")
    assert nothing.hits.why_empty
    with pytest.raises(BackendError) as caught:
        WellheadRetriever(retriever=outage()).invoke(FOUND)
    assert SECRET not in str(caught.value)


def test_a_search_without_a_leg_is_said_in_the_documents_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="wellhead"):
        found = WellheadRetriever(retriever=half_down()).invoke(FOUND)
    assert found[0].metadata["wellhead"]["degraded"] == ["dense"]
    assert "without its dense leg" in caplog.text
    assert SECRET not in caplog.text


def test_filters_of_a_call_narrow_and_never_replace() -> None:
    retriever = WellheadRetriever(retriever=filled(), filters={"area": "guides"}, options={"cut": "off"})
    assert [each.metadata["area"] for each in retriever.invoke(FOUND)] == ["guides"]
    assert retriever.invoke(FOUND, filters={"area": "runbooks"}) == []
    assert len(retriever.invoke(FOUND, filters={"team": "a"})) == 1


def test_an_option_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="top_k"):
        WellheadRetriever(retriever=filled()).invoke(FOUND, top_k=3)
    with pytest.raises(ConfigError, match="only an index"):
        WellheadRetriever(retriever=Guarded(filled()), options={"cut": "off"})
    with pytest.raises(ConfigError, match="filters"):
        WellheadRetriever(retriever=filled(), options={"filters": {"area": "guides"}})
    with pytest.raises(ConfigError):
        WellheadRetriever(retriever="kb")
    with pytest.raises(UsageError, match="101"):
        WellheadRetriever(retriever=filled(), k=101).invoke(FOUND)


async def test_a_scope_holds_with_and_without_an_event_loop() -> None:
    index = scoped()
    acme = WellheadRetriever(retriever=index.scoped(tenant="acme"), options={"cut": "off"})
    for found in (acme.invoke("refund"), await acme.ainvoke("refund")):
        assert [each.page_content for each in found] == ["A refund is paid within 45 days."]
    for unbound in (WellheadRetriever(retriever=index), WellheadRetriever(retriever=Guarded(index))):
        with pytest.raises(ScopeError):
            unbound.invoke("refund")
        with pytest.raises(ScopeError):
            await unbound.ainvoke("refund")
    assert acme.invoke("refund", filters={"tenant": "globex"}) == []


# --- the vector store ----------------------------------------------------------------------------------------------


def test_ids_are_unique_though_a_document_has_many_passages() -> None:
    index = filled_anew()
    index.add([Document(id="long", text="\n\n".join(f"# Part {n}\n\nRotate key {n} by hand." for n in range(20)))])
    assert len(index.passages("long")) > 1
    found = WellheadVectorStore(index).similarity_search("rotate a key", k=4)
    assert len({each.id for each in found}) == len(found) == 4
    assert {each.id for each in found} == {"long", "keys", "disk", "fees"}
    (whole,) = WellheadVectorStore(index).get_by_ids(["long"])
    assert whole.page_content.count("# Part") == 20


def test_from_texts_embeds_with_the_embedder_that_is_given() -> None:
    asked: list[str] = []

    class Own(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            asked.append(text)
            return HashEmbedder().embed_query(text).tolist()  # type: ignore[no-any-return]

    own = Own()
    store = WellheadVectorStore.from_texts(
        ["rotate a key", "stop the writer"], own, [{"n": 1}, {"n": 2}], ids=["a", "b"]
    )
    assert store.embeddings is own
    assert "stop the writer" in asked
    assert [each.id for each in store.similarity_search("stop the writer", k=1)] == ["b"]
    assert [each.id for each in store.as_retriever(search_kwargs={"k": 2, "filter": {"n": 1}}).invoke("x")] == ["a"]


@pytest.mark.promise("D47")
def test_relevance_is_the_cosine_in_whichever_mode() -> None:
    model = StaticEmbedder()
    texts = ["Rotate a key once a year.", "When the disk is full, stop the writer."]
    store = WellheadVectorStore.from_texts(texts, None)
    scored = store.similarity_search_with_relevance_scores("how to rotate keys", k=2)
    query = model.embed_query("how to rotate keys")
    for document, score in scored:
        cosine = float(query @ model.embed_documents([document.page_content])[0])
        assert score == pytest.approx(max(0.0, cosine), abs=1e-3)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    threshold = scored[0][1]
    found = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": threshold, "k": 2}
    ).invoke("how to rotate keys")
    assert [each.page_content for each in found] == [texts[0]]


def test_lists_addresses_and_titles_come_back() -> None:
    store = WellheadVectorStore.from_texts([], None)
    metadata = {"tags": ["a", "b"], "source": "https://example.org/keys", "title": "Keys"}
    store.add_documents([Foreign(page_content="Rotate a key.", metadata=metadata)], ids=["k"])
    (found,) = store.similarity_search("rotate", k=1)
    assert found.metadata == metadata
    assert store.index.search("rotate a key", cut="off")[0].citation == "https://example.org/keys"


def test_what_it_cannot_do_is_refused_by_name() -> None:
    store = WellheadVectorStore.from_texts(["Rotate a key."], None, [{"n": 1}], ids=["a"])
    with pytest.raises(UsageError, match="filters"):
        store.similarity_search("rotate", filters={"n": 1})
    with pytest.raises(UsageError, match="no ids"):
        store.delete()
    with pytest.raises(UsageError, match="2 ids"):
        store.add_documents([Foreign(page_content="x")], ids=["a", "b"])
    with pytest.raises(UsageError):
        store.add_documents([Foreign(page_content="x", metadata={"inner": {"a": 1}})])
    with pytest.raises(UsageError):
        store.similarity_search(" ")


def test_as_many_ids_and_metadatas_as_texts_or_nothing_is_written(tmp_path: Path) -> None:
    one, two = Foreign(page_content="one"), Foreign(page_content="two")
    store = WellheadVectorStore.from_texts([], None)
    for add in (
        lambda: store.add_texts(["one", "two"], ids=["1"]),
        lambda: store.add_texts(["one"], ids=["1", "2"]),
        lambda: store.add_texts(["one", "two", "three"], [{"n": 1}, {"n": 2}]),
        lambda: store.add_texts((text for text in ["one", "two"]), ({"n": n} for n in range(3))),
        lambda: store.add_documents([one, two], ids=iter(["1"])),
        lambda: WellheadVectorStore.from_texts(["one", "two"], None, ids=["1"], path=str(tmp_path / "kb")),
        lambda: WellheadVectorStore.from_texts(["one", "two"], None, [{"n": 1}], path=str(tmp_path / "kb")),
        lambda: WellheadVectorStore.from_documents(
            [one, two], WellheadEmbeddings(), ids=["1"], path=str(tmp_path / "kb")
        ),
    ):
        with pytest.raises(UsageError, match=r"documents and \d (ids|metadatas)"):
            add()
    assert store.index.summaries() == []
    assert not (tmp_path / "kb").exists()
    with pytest.raises(UsageError, match="same id"):
        store.add_texts(["one", "two"], ids=["1", "1"])


async def test_generators_are_read() -> None:
    store = WellheadVectorStore.from_texts((text for text in ["one", "two"]), None, ids=iter(["1", "2"]))
    assert store.add_texts((t for t in ["three", "four"]), ({"n": n} for n in (3, 4)), ids=iter(["3", "4"])) == [
        "3",
        "4",
    ]
    assert len(store.add_documents(Foreign(page_content=text) for text in ["five", "six"])) == 2
    assert len(await store.aadd_texts(text for text in ["seven", "eight"])) == 2
    assert len(store.index.summaries()) == 8
    assert [(each.page_content, each.metadata) for each in store.get_by_ids(["2", "4"])] == [
        ("two", {}),
        ("four", {"n": 4}),
    ]


def twins() -> WellheadVectorStore:
    texts = ["Refunds take 45 days."] * 3 + ["The disk is full."]
    areas = [{"area": name, "source": f"{name}.md"} for name in ("north", "south", "east", "west")]
    return WellheadVectorStore.from_texts(texts, None, areas, ids=["n", "s", "e", "w"])


def test_documents_of_one_text_are_each_found_and_counted() -> None:
    store = twins()
    found = store.similarity_search("refunds", k=4)
    told = {each.id: (each.page_content, each.metadata["area"], each.metadata["source"]) for each in found[:3]}
    assert told == {name[0]: ("Refunds take 45 days.", name, f"{name}.md") for name in ("north", "south", "east")}
    assert [each.id for each in found[3:]] == ["w"]
    assert len(store.similarity_search("refunds", k=2)) == 2
    narrowed = store.similarity_search("refunds", k=4, filter={"area": {"$in": ["south", "east"]}})
    assert {each.id for each in narrowed} == {"s", "e"}
    for scored in (
        store.similarity_search_with_score("refunds", k=4),
        store.similarity_search_with_relevance_scores("refunds", k=4),
    ):
        assert [each.id for each, _ in scored] == [each.id for each in found]
        assert len({score for _, score in scored[:3]}) == 1
    store.index.add([Document(id="n", text="Refunds take 45 days.\n\nRefunds take 45 days.\n\nRefunds.")])
    again = [each.id for each in store.similarity_search("refunds", k=9)]
    assert (len(again), {*again}) == (4, {"n", "s", "e", "w"})


def test_a_retriever_gives_a_text_once_and_says_where_else_it_stands() -> None:
    (found,) = WellheadRetriever(retriever=twins().index, k=1).invoke("refunds")
    said = found.metadata["wellhead"]
    places = {place["document_id"]: place for place in said["also_in"]}
    assert {*places, said["document_id"]} == {"n", "s", "e"}
    for name, place in places.items():
        area = {"n": "north", "s": "south", "e": "east"}[name]
        assert (place["citation"], place["metadata"]["area"]) == (f"{area}.md", area)
        assert twins().index.passage(place["id"]).document_id == name
    assert "also_in" not in WellheadRetriever(retriever=filled()).invoke(FOUND)[0].metadata["wellhead"]


def test_a_scoped_store_writes_and_sees_its_scope_alone() -> None:
    index = scoped()
    acme, globex = (WellheadVectorStore(index.scoped(tenant=name)) for name in ("acme", "globex"))
    acme.add_documents([Foreign(page_content="Acme closes at noon.")], ids=["hours"])
    assert globex.get_by_ids(["hours"]) == []
    assert [each.id for each in globex.similarity_search("noon", k=4)] == ["refunds"]
    globex.delete(["hours"])
    assert [each.page_content for each in acme.get_by_ids(["hours"])] == ["Acme closes at noon."]
    with pytest.raises(ScopeError):
        WellheadVectorStore(index).similarity_search("noon")


def test_the_same_vectors_as_an_index_has() -> None:
    model = StaticEmbedder()
    mine = WellheadEmbeddings()
    assert mine.embed_query("rotate") == pytest.approx(model.embed_query("rotate").tolist())
    assert math.hypot(*mine.embed_documents(["rotate"])[0]) == pytest.approx(1.0, abs=1e-5)
    assert WellheadEmbeddings(lambda text: [1.0, 0.0]).embed_documents(["a"]) == [[1.0, 0.0]]
    with pytest.raises(ConfigError):
        WellheadEmbeddings("nobody")


# --- the tool ------------------------------------------------------------------------------------------------------


def called(tool: BaseTool, config: RunnableConfig | None = None, **arguments: object) -> ToolMessage:
    message = tool.invoke({"name": tool.name, "args": arguments, "id": "1", "type": "tool_call"}, config)
    assert isinstance(message, ToolMessage)
    return message


@pytest.mark.promise("A30")
def test_the_content_is_what_a_model_reads_and_the_artifact_is_plain_data() -> None:
    message = called(langchain_tool(search_tool(filled())), query=FOUND)
    assert "BEGIN UNTRUSTED" in message.content
    assert json.loads(json.dumps(message.artifact)) == message.artifact
    assert (message.artifact["outcome"], message.status) == ("hits", "success")
    assert message.artifact["documents"][0]["source"] == "keys"


def test_a_failure_is_told_with_its_status_and_never_raised() -> None:
    for tool, arguments, outcome in (
        (search_tool(outage()), {"query": FOUND}, "unavailable"),
        (search_tool(filled()), {"query": " "}, "bad_query"),
        (search_tool(filled()), {"question": FOUND}, "bad_arguments"),
        (search_tool(filled()), {"query": FOUND, "config": {}, "self": 1}, "bad_arguments"),
        (search_tool(scoped()), {"query": FOUND}, "no_scope"),
    ):
        message = called(langchain_tool(tool), **arguments)
        assert (message.artifact["outcome"], message.status) == (outcome, "error")
        assert SECRET not in message.content + str(message.artifact)
    nothing = called(langchain_tool(search_tool(filled())), query=ABSENT)
    assert (nothing.artifact["outcome"], nothing.status) == ("no_match", "success")
    assert "NOTHING FOUND" in nothing.content


@pytest.mark.promise("D39", "B3")
async def test_for_whom_it_runs_is_the_configuration_s_word_and_not_the_model_s() -> None:
    tool = langchain_tool(
        search_tool(scoped(), filters=lambda ctx: {"tenant": ctx.user_id}),
        context=lambda config: Context(user_id=config.get("configurable", {}).get("user", "")),
    )
    assert list(tool.args) == ["query"]
    acme: RunnableConfig = {"configurable": {"user": "acme"}}
    assert "45 days" in called(tool, acme, query="refund").content
    assert "45 days" not in called(tool, {"configurable": {"user": "globex"}}, query="refund").content
    assert called(tool, None, query="refund").artifact["outcome"] == "no_scope"
    assert called(tool, acme, query="refund", tenant="globex").artifact["outcome"] == "bad_arguments"
    call = {"name": tool.name, "args": {"query": "refund"}, "id": "1", "type": "tool_call"}
    assert "45 days" in (await tool.ainvoke(call, acme)).content


def test_a_context_that_cannot_be_had_is_a_failed_call() -> None:
    own = search_tool(scoped(), filters=lambda ctx: {"tenant": ctx.user_id})
    for context, outcome in (
        (lambda config: Context(user_id=config["configurable"][SECRET]), "failed"),
        (lambda config: {"user_id": "acme"}, "misconfigured"),
        (lambda config: None, "no_scope"),
    ):
        message = called(langchain_tool(own, context=context), query="refund")  # type: ignore[arg-type]
        assert (message.artifact["outcome"], message.status) == (outcome, "error")
        assert SECRET not in str(message)


def test_an_executor_holds_its_budget_and_tells_its_listeners() -> None:
    log = EventLog()
    own = search_tool(filled())
    executor = Executor(Registry(own), sink=log)
    tool = langchain_tool(own, executor=executor)
    called(tool, query=FOUND)
    assert [event.name for event in log.events] == ["retrieval.searched", "tool.finished"]


@pytest.mark.promise("G27")
def test_without_the_extra_the_command_that_installs_it_is_named() -> None:
    code = (
        "import sys; sys.modules['langchain_core'] = None\n"
        "from wellhead import MissingExtra\n"
        "try:\n    import wellhead.doors.langchain\n"
        "except MissingExtra as error:\n    print(error.fix)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "pip install 'wellhead[langchain]'"
