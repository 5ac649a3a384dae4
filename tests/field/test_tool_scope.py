"""A model that knows another tenant's ids, names or filters gets no further than one that made them up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from wellhead import Document, EventLog, Index
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool
from wellhead.search.guard import Guarded

STORES = ["embedded", "memory"]


def house(place: str | Path, *, with_acme: bool = True) -> Index:
    index = Index.open(place, scope_key="tenant", languages=["en"])
    if with_acme:
        index.scoped(tenant="acme").add([Document(id="acme-secret", text="The merger is called bluebird.")])
    index.scoped(tenant="globex").add([Document(id="globex-note", text="The canteen opens at noon.")])
    return index


def two_tenants(kind: str, kb: Path) -> Index:
    return house(":memory:" if kind == "memory" else kb)


def asked(executor: Executor, user: str, arguments: Mapping[str, object]) -> Any:
    return executor.run(ToolCall(name="search_docs", arguments=arguments), executor.context(user))


@pytest.mark.promise("D38", "D39")
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("kind", STORES)
def test_a_foreign_id_is_as_unknown_to_the_tool_as_a_made_up_one(kind: str, guarded: bool, kb: Path) -> None:
    """chroma-core/chroma#7462: calls resolved by id alone, so that one tenant reached another's data by its id."""
    with two_tenants(kind, kb) as index:
        (secret,) = index.scoped(tenant="acme").passages("acme-secret")
        retriever = Guarded(index, scope_key="tenant") if guarded else index
        by_user = {"filters": lambda ctx: {"tenant": ctx.user_id}}
        log = EventLog()
        executor = Executor(Registry(search_tool(retriever, **by_user)), sink=log)
        alone = Executor(Registry(search_tool(house(":memory:", with_acme=False), **by_user)))
        for known in (secret.id, secret.id[:12], "acme-secret", "The merger is called bluebird.", "when is noon?"):
            # As if the other tenant had never been there: the same hits, scores and words.
            mine, untouched = asked(executor, "globex", {"query": known}), asked(alone, "globex", {"query": known})
            assert (mine.outcome, mine.data) == (untouched.outcome, untouched.data)
            assert "bluebird" not in mine.text
        ids = {name for event in log.of_type("retrieval.searched") for name in event.data["ids"]}  # type: ignore[attr-defined]
        assert secret.id not in ids
        assert "bluebird" in asked(executor, "acme", {"query": "merger bluebird"}).text


@pytest.mark.promise("G12", "D39")
@pytest.mark.parametrize("kind", STORES)
def test_a_tenant_in_the_arguments_is_refused_before_anything_is_searched(kind: str, kb: Path) -> None:
    """chroma-core/chroma#7462: the tenant that the caller names is not the tenant that the caller is."""
    with two_tenants(kind, kb) as index:
        log = EventLog()
        executor = Executor(Registry(search_tool(index, filters=lambda ctx: {"tenant": ctx.user_id})), sink=log)
        for extra in ({"tenant": "acme"}, {"filters": {"tenant": "acme"}}, {"user_id": "acme"}, {"scope": "acme"}):
            result = asked(executor, "globex", {"query": "merger bluebird", **extra})
            assert result.outcome == "bad_arguments"
            assert "bluebird" not in result.text
        assert log.of_type("retrieval.searched") == []
        for query in ('tenant:"acme" bluebird', "tenant=acme merger", '{"tenant": "acme"} merger'):
            assert "bluebird" not in asked(executor, "globex", {"query": query}).text.replace(query, "")


def test_a_foreign_word_takes_no_longer_than_a_made_up_one(kb: Path) -> None:
    """chroma-core/chroma#7462: not found for both, and in the same time within noise."""
    with two_tenants("memory", kb) as index:
        executor = Executor(Registry(search_tool(index, filters=lambda ctx: {"tenant": ctx.user_id})))

        def seconds(query: str) -> float:
            started = time.perf_counter()
            asked(executor, "globex", {"query": query})
            return time.perf_counter() - started

        pairs = [(seconds("merger bluebird"), seconds("zzgrblfx grmblxx")) for _ in range(40)]
        foreign, made_up = (min(times) for times in zip(*pairs, strict=True))
        assert 1 / 3 < foreign / made_up < 3
