"""The values that a model may choose from are read off the scope that the tool searches in, never off everybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from wellhead import Document, Guarded, Index, ScopeError, search_tool
from wellhead.testing.fakes import HashEmbedder


def filled(scope_key: str | None) -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"], scope_key=scope_key)
    for tenant in ("acme", "globex"):
        index.scoped(tenant=tenant).add(
            [Document(id=tenant, text=f"A page of {tenant}.", metadata={"area": f"{tenant}-merger"})]
        )
    return index


# A retriever over both tenants' documents, and whether it knows of scopes.
RETRIEVERS: Mapping[str, Callable[[], Any]] = {
    "an index with a scope key": lambda: filled("tenant"),
    "a guard around it": lambda: Guarded(filled("tenant")),
    "a guard with a key around an index without": lambda: Guarded(filled(None), scope_key="tenant"),
}
each = pytest.mark.parametrize("make", RETRIEVERS.values(), ids=RETRIEVERS)


@pytest.mark.promise("D39", "B3")
@each
@pytest.mark.parametrize("value", ["globex", {"$eq": "globex"}])
def test_fixed_filters_on_the_scope_key_bind_what_is_read_off(make: Callable[[], Any], value: object) -> None:
    retriever = make()
    tool = search_tool(retriever, filters={"tenant": value}, narrowing="area")
    parameters: Any = tool.parameters["properties"]
    assert parameters["area"]["enum"] == ["globex-merger"]
    assert "acme" not in str(tool.parameters)
    assert tool.run({"query": "page", "area": "globex-merger"}).outcome == "hits"
    bound = search_tool(retriever.scoped(tenant="globex"), narrowing="area")
    assert bound.parameters == tool.parameters


@pytest.mark.promise("D39")
@each
def test_without_a_scope_nothing_is_read_off(make: Callable[[], Any]) -> None:
    """A tool that names no scope can search nothing; its parameters must not show everybody's values either."""
    with pytest.raises(ScopeError, match="without its scope"):
        search_tool(make(), narrowing="area")
    with pytest.raises(ScopeError, match="without its scope"):
        search_tool(make(), filters={"area": "acme-merger"}, narrowing="area")
