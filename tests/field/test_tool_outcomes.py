"""Nothing found, nothing there, nothing admitted, nothing reachable: four answers, also once a tool tells them."""

from __future__ import annotations

import asyncio
import re
from itertools import combinations

import pytest

from endings import ENDINGS, FOUND, SECRET, Scripted, filled, outage
from wellhead import Document, Hits, Index
from wellhead.agent.executor import Executor
from wellhead.agent.loop import run_tool_loop_sync
from wellhead.agent.messages import Message, ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool
from wellhead.agent.tool import Tool, ToolResult
from wellhead.backends.generators.function import CallableModel

UNANSWERABLE = "which vaccinations are needed for a journey to peru"


def ten_documents() -> Index:
    index = Index.open(":memory:", languages=["en"])
    index.add([Document(id=f"p{n}", text=f"Page {n}: rotate key number {n} once a year.") for n in range(10)])
    return index


def four() -> dict[str, Tool]:
    index = ten_documents()
    return {
        "no_match": search_tool(index),
        "empty_index": search_tool(Index.open(":memory:")),
        "unavailable": search_tool(outage()),
        "filtered_out": search_tool(index, filters={"area": "nowhere"}),
    }


@pytest.mark.parametrize("outcome", four())
@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_of_the_four_has_a_type_and_words_of_its_own(outcome: str, asynchronous: bool) -> None:
    """elizaOS/eliza#17138: a search without a match was told to the agent as a base without documents."""
    tool = four()[outcome]
    executor = Executor(Registry(tool))
    call = ToolCall(name=tool.name, arguments={"query": UNANSWERABLE})
    result: ToolResult = asyncio.run(executor.arun(call)) if asynchronous else executor.run(call)
    assert result.outcome == result.data["outcome"] == outcome
    assert ("NO DOCUMENTS" in result.text) == (outcome == "empty_index")
    assert ("NOTHING FOUND" in result.text) == (outcome == "no_match")
    assert ("SEARCH UNAVAILABLE" in result.text) == (outcome == "unavailable")
    assert ("NOTHING TO LOOK AT" in result.text) == (outcome == "filtered_out")


def test_no_pair_of_endings_shares_its_text_or_its_json() -> None:
    """elizaOS/eliza#17138: the whole kind, every ending against every other one."""
    told = {
        name: (re.sub(r"[0-9a-f]{32}", "", result.text), dict(result.data))
        for name, result in ((name, ending.make().run(ending.arguments)) for name, ending in ENDINGS.items())
    }
    assert len(told) >= 12
    for one, other in combinations(told, 2):
        assert told[one][0] != told[other][0], (one, other)
        assert told[one][1] != told[other][1], (one, other)


def test_an_unjudged_or_wordless_search_still_says_what_it_is() -> None:
    """elizaOS/eliza#17138: a backend that gives plain nothing, and a query of signs alone."""
    assert search_tool(Scripted(list)).run({"query": FOUND}).outcome == "no_match"  # type: ignore[arg-type, return-value]
    assert search_tool(Scripted(Hits)).run({"query": FOUND}).outcome == "no_match"
    assert search_tool(filled()).run({"query": "?!"}).outcome == "no_match"


def test_the_model_of_a_loop_reads_the_same_words_as_everybody() -> None:
    """elizaOS/eliza#17138: what the model reads is the result's own text, not a second wording."""
    for outcome, tool in four().items():
        read: list[str] = []

        def model(messages: list[Message], tools: object, read: list[str] = read) -> object:
            if messages[-1].role == "tool":
                read.append(messages[-1].content)
                return "done"
            return {"tool_calls": [{"name": "search_docs", "arguments": {"query": UNANSWERABLE}}]}

        result = run_tool_loop_sync(CallableModel(model), Registry(tool), [Message("user", "?")])  # type: ignore[arg-type]
        assert read == [result.steps[0].results[0].text]
        assert result.steps[0].results[0].outcome == outcome
        assert SECRET not in read[0]
