"""The example of two museums: each visitor is answered from its own museum's pages, and from no other's."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wellhead import EventLog
from wellhead.agent.context import Context
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool

EXAMPLE = Path(__file__).parents[3] / "examples" / "museum.py"


@pytest.fixture(scope="module")
def museum() -> ModuleType:
    spec = importlib.util.spec_from_file_location("museum", EXAMPLE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.promise("G38", "G39")
def test_each_visitor_sees_the_refund_page_of_its_own_museum(museum: ModuleType) -> None:
    log = EventLog()
    answers = asyncio.run(museum.main(log))
    pages = [page for pages in museum.PAGES.values() for page in pages]
    assert len(pages) == 4
    index = museum.open_index()
    ids = {
        name: {passage.id for page in pages for passage in index.scoped(museum=name).passages(page.id)}
        for name, pages in museum.PAGES.items()
    }
    events = log.of_type("retrieval.searched")
    assert len(events) == 2
    for (user, name), other, event in zip(museum.MUSEUM_OF.items(), ("clocks", "harbour"), events, strict=True):
        assert answers[user].final.text.endswith(f"[help/{name}/refunds.md]")
        result = answers[user].steps[0].results[0]
        assert f"help/{name}/refunds.md" in result.text
        assert f"help/{other}/" not in result.text + str(result.data)
        shown = set(event.data["ids"])
        assert shown
        assert shown <= ids[name]
        assert not shown & ids[other]


@pytest.mark.promise("G14", "G39")
def test_a_visitor_whom_nobody_knows_sees_nothing(museum: ModuleType) -> None:
    executor = Executor(Registry(search_tool(museum.open_index(), filters=museum.museum_of)))
    for user in ("", "eve"):
        result = executor.run(ToolCall(name="search_docs", arguments={"query": "ticket refund"}), Context(user_id=user))
        assert result.outcome == "no_scope"
        assert "museum" not in result.text.casefold()


@pytest.mark.promise("G39")
def test_the_example_runs_from_the_command_line() -> None:
    printed = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True, timeout=120
    ).stdout.splitlines()
    assert [line.partition(" ")[0] for line in printed] == ["ada:", "ben:", "retrieval.searched", "retrieval.searched"]
