"""An id is no key to another scope's house: whatever is asked by it, "not yours" and "not there" are one answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from wellhead import Document, Index, UsageError
from wellhead.testing.fakes import HashEmbedder

STORES = ["embedded", "memory"]
KEYS = ["tenant", None]


def open_house(kind: str, kb: Path, scope_key: str | None) -> Index:
    index = Index.open(
        ":memory:" if kind == "memory" else kb, embedder=HashEmbedder(), languages=["en"], scope_key=scope_key
    )
    index.scoped(tenant="acme").add([Document(id="acme-secret", text="the merger is called bluebird")])
    index.scoped(tenant="globex").add([Document(id="globex-note", text="the canteen opens at noon")])
    return index


def outcome(action: Callable[[], object]) -> str:
    try:
        return repr(action())
    except UsageError as error:
        return str(error)


@pytest.mark.parametrize("scope_key", KEYS)
@pytest.mark.parametrize("kind", STORES)
def test_a_foreign_id_is_as_unknown_as_a_made_up_one(kind: str, scope_key: str | None, kb: Path) -> None:
    """chroma-core/chroma#7462: calls resolved by id alone, so that one tenant reached another's data by its id."""
    with open_house(kind, kb, scope_key) as index:
        acme, globex = index.scoped(tenant="acme"), index.scoped(tenant="globex")
        (secret,) = acme.passages("acme-secret")
        before = acme.stats()
        ways: list[Callable[[str, str], object]] = [
            lambda document_id, passage_id: globex.get(document_id),
            lambda document_id, passage_id: globex.passages(document_id),
            lambda document_id, passage_id: globex.remove([document_id]),
            lambda document_id, passage_id: globex.passage(passage_id),
            lambda document_id, passage_id: globex.passage(passage_id[:12]),
            lambda document_id, passage_id: globex.explain("merger", passage_id),
        ]
        for way in ways:
            foreign = outcome(lambda way=way: way("acme-secret", secret.id))  # type: ignore[misc]
            absent = outcome(lambda way=way: way("no-such-thing", "0" * 64))  # type: ignore[misc]
            assert foreign.replace(secret.id, "ID").replace(secret.id[:12], "ID") == (
                absent.replace("0" * 64, "ID").replace("0" * 12, "ID")
            )
            assert "bluebird" not in foreign
        assert [one.id for one in globex.documents()] == ["globex-note"]
        assert globex.search("merger bluebird", mode="lexical").outcome == "no_match"
        assert acme.get("acme-secret") is not None
        assert acme.passages("acme-secret") == [secret]
        assert msgspec.structs.replace(acme.stats(), index_version=before.index_version) == before
