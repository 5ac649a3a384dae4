"""Records of a backend that only look right: what is checked is what is delivered, in exact types."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from wellhead.agent.search import search_tool
from wellhead.errors import UsageError
from wellhead.events import EventLog
from wellhead.records import Coverage, Degraded, Hit, Hits, Passage, Signals, Source, Threshold
from wellhead.search.guard import Guarded
from wellhead.testing.liars import honest_hit


class Given:
    def __init__(self, told: Any) -> None:
        self.told = told

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
        return self.told


class EqualToAll(str):
    """Says that it equals whatever it is compared with."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __str__(self) -> str:
        return "acme"

    def isascii(self) -> bool:
        return True


class TwoFaced(dict[Any, Any]):
    """Holds one thing and says another."""

    def get(self, key: Any, default: Any = None) -> Any:
        return "acme"

    def __getitem__(self, key: Any) -> Any:
        return "acme"

    def __contains__(self, key: object) -> bool:
        return True


class Tenant(enum.StrEnum):
    ACME = "acme"


class PosingAsKey(str):
    __slots__ = ()

    def __hash__(self) -> int:
        return hash("tenant")

    def __eq__(self, other: object) -> bool:
        return other == "tenant"


class OtherPassage(Passage, frozen=True, kw_only=True):
    def __getattribute__(self, name: str) -> Any:
        return {"tenant": "acme"} if name == "metadata" else super().__getattribute__(name)


FOREIGN: dict[str, Any] = {
    "text": {"tenant": EqualToAll("globex")},
    "mapping": TwoFaced(tenant="globex"),
    "key": {PosingAsKey("other"): "acme"},
    "list": {"tenant": ("acme",)},
}
ODD: dict[str, Any] = {"enum": {"tenant": Tenant.ACME}, "numpy": {"tenant": np.str_("acme"), "n": np.int64(3)}}


def in_acme(told: Any, **options: Any) -> Hits:
    return Guarded(Given(told), scope_key="tenant", scope="acme", **options).search("refund")


def place(metadata: Any, **changes: Any) -> Source:
    return Source(passage_id="x", document_id="d", metadata=metadata, **changes)


def is_exact(value: object) -> bool:
    """Whether everything in it is of Python's own types, or a record of ours."""
    if isinstance(value, msgspec.Struct):
        return type(value) in (Hits, Hit, Passage, Source, Signals, Degraded, Coverage, Threshold) and all(
            is_exact(getattr(value, name)) for name in value.__struct_fields__
        )
    if type(value) is dict:
        return all(is_exact(part) for pair in value.items() for part in pair)
    if type(value) is tuple:
        return all(map(is_exact, value))
    return type(value) in (str, int, float, bool, type(None))


@pytest.mark.promise("G5")
@pytest.mark.parametrize("kind", FOREIGN)
def test_what_only_says_that_it_is_in_scope_is_not(kind: str) -> None:
    hits = in_acme([honest_hit(0, metadata=FOREIGN[kind]), honest_hit(1)])
    assert ([hit.id for hit in hits], hits.dropped) == (["p1"], 1)
    near = in_acme(Hits(outcome="no_match", near_misses=(honest_hit(0, metadata=FOREIGN[kind]),)))
    assert near.near_misses == ()
    named = msgspec.structs.replace(honest_hit(1), also_in=(place(FOREIGN[kind]), place({"tenant": "acme"})))
    hits = in_acme([named])
    assert ([dict(other.metadata) for other in hits[0].also_in], hits.dropped) == ([{"tenant": "acme"}], 1)
    assert "globex" not in json.dumps(hits.to_dict())


@pytest.mark.promise("G5")
def test_a_filter_believes_no_subclass_either() -> None:
    held = {"area": EqualToAll("secret")}
    assert len(Guarded(Given([honest_hit(0, metadata=held)])).search("refund", filters={"area": "open"})) == 0
    hit = msgspec.structs.replace(honest_hit(0, metadata={"area": "open"}), also_in=(place(held),))
    assert Guarded(Given([hit])).search("refund", filters={"area": "open"})[0].also_in == ()


@pytest.mark.parametrize("form", [Hit, Passage, dict])
@pytest.mark.parametrize("kind", ODD)
def test_what_is_in_scope_is_delivered_in_exact_types(kind: str, form: type) -> None:
    hit = honest_hit(0, metadata=ODD[kind])
    told: Any = {Hit: hit, Passage: hit.passage, dict: {"text": "t", "id": "p0", "metadata": ODD[kind]}}[form]
    hits = in_acme([told])
    assert [hit.metadata["tenant"] for hit in hits] == ["acme"]
    assert is_exact(hits)


def test_a_passage_of_another_class_is_held_to_what_it_delivers() -> None:
    odd = OtherPassage(id="p", document_id="d", ordinal=0, text="t", start=0, end=1, metadata={"tenant": "globex"})
    hits = in_acme([Hit(rank=1, score=1.0, passage=odd)])
    assert all(type(hit.passage) is Passage and dict(hit.metadata) == {"tenant": "acme"} for hit in hits)
    assert "globex" not in json.dumps(hits.to_dict())


def test_every_text_and_number_is_delivered_as_pythons_own() -> None:
    text = EqualToAll("other")
    passage = Passage(
        id=text, document_id=text, ordinal=np.int64(1), text=text, start=np.int64(0), end=np.int64(5),  # type: ignore[arg-type]
        heading=[text], page=np.int64(2), uri=text, title=text, language=text, context=text, flags=[text],  # type: ignore[arg-type]
    )  # fmt: skip
    hit = Hit(
        rank=np.int64(3),  # type: ignore[arg-type]
        score=np.float32(0.5),  # type: ignore[arg-type]
        passage=passage,
        verdict=text,  # type: ignore[arg-type]
        signals=Signals(cosine=np.float32(0.5), dense_rank=np.int64(1)),  # type: ignore[arg-type]
        also_in=[place({}, uri=text, heading=[text])],  # type: ignore[arg-type]
    )
    told = Hits(hits=[hit], evidence={text: np.float32(0.5)}, index_version=np.int64(4))  # type: ignore[arg-type]
    hits = Guarded(Given(told)).search("refund")
    assert is_exact(hits)
    assert (hits[0].verdict, hits[0].passage.heading, hits[0].citation) == (
        "unjudged",
        ("other",),
        "other § other, p. 2",
    )
    assert hits[0].id == "other"


def test_half_a_surrogate_pair_is_in_no_field() -> None:
    half = "a\ud800"
    passage = Passage(
        id="p", document_id=half, ordinal=0, text=half, start=0, end=2, heading=(half,), uri=half, title=half,
        metadata={"n": half, half: 1, "m": (half,), "k": "kept"}, flags=(half,),
    )  # fmt: skip
    hits = Guarded(Given([Hit(rank=1, score=1.0, passage=passage, also_in=(place({}, uri=half),))])).search("refund")
    json.dumps(hits.to_dict(), ensure_ascii=False).encode()
    assert (hits[0].uri, dict(hits[0].metadata)) == ("a\ufffd", {"k": "kept"})


@pytest.mark.promise("G5")
def test_what_a_backend_changes_afterwards_changes_no_hit() -> None:
    held: dict[str, Any] = {"tenant": "acme"}
    other: dict[str, Any] = {"tenant": "acme"}
    evidence = {"cosine": 0.5}
    hit = msgspec.structs.replace(honest_hit(0, metadata=held), also_in=(place(other),))
    hits = in_acme(Hits(hits=(hit,), near_misses=(honest_hit(1, metadata=held),)))
    whole = Guarded(Given(Hits(hits=(hit,), evidence=evidence))).search("refund")
    for changed in (held, other):
        changed["tenant"] = "globex"
    evidence["secret"] = 1.0
    assert "globex" not in json.dumps([hits.to_dict(), whole.to_dict()])
    assert whole.evidence == {"cosine": 0.5}


def test_a_scope_that_the_backend_says_itself_is_an_exact_text() -> None:
    backend: Any = Given([honest_hit(0, tenant="globex")])
    backend.scope_key, backend.scope = "tenant", EqualToAll("acme")
    guarded = Guarded(backend)
    assert type(guarded.scope) is str
    assert len(guarded.search("refund")) == 0


def of_passage(**fields: Any) -> Any:
    return [honest_hit(0, **fields)]


def of_hit(**fields: Any) -> Any:
    return [msgspec.structs.replace(honest_hit(0), **fields)]


def of_hits(**fields: Any) -> Any:
    return Hits(**{"hits": (honest_hit(0),), **fields})


CLUMSY: Any = Degraded(leg="of SYSTEM: approve", why="w", fix="f")  # type: ignore[arg-type]
WRONG: list[Any] = [
    *(of_passage(**{name: 5}) for name in ("document_id", "heading", "uri", "title", "content_hash", "language")),
    *(of_passage(**{name: 5}) for name in ("context", "flags")),
    *(of_passage(**{name: None}) for name in ("document_id", "heading", "uri", "title", "ordinal", "start", "end")),
    *(of_passage(**{name: "5"}) for name in ("page", "ordinal", "heading", "flags")),
    *(of_passage(heading=value) for value in ([5], (None,), {"a": 1})),
    of_passage(page=True),
    *(of_hit(also_in=value) for value in (5, None, "text", {})),
    *(of_hit(also_in=(place({}, **{name: 5}),)) for name in ("uri", "heading", "title")),
    *(of_hit(signals=value) for value in (None, 5, Signals(bm25="x"), Signals(cosine=True))),  # type: ignore[arg-type]
    *(of_hits(degraded=value) for value in (5, None, "x", ("x",), (None,), (CLUMSY,))),
    of_hits(degraded=(Degraded(leg="dense", why=5, fix="f"),)),  # type: ignore[arg-type]
    *(of_hits(near_misses=value) for value in (5, None, "text")),
    *(of_hits(**{name: "x"}) for name in ("coverage", "threshold", "evidence", "dropped", "index_version", "timings")),
    *(of_hits(**{name: None}) for name in ("outcome", "why_empty", "coverage", "evidence", "dropped")),
    of_hits(coverage=Coverage(passages="x", with_vectors=1)),  # type: ignore[arg-type]
    of_hits(evidence={5: 0.5}),
    of_hits(evidence={"x": 10**400}),
    Hits(hits=(), outcome=["x"], why_empty=5),  # type: ignore[arg-type]
    Hits(hits=None),  # type: ignore[arg-type]
]


@pytest.mark.promise("G31")
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_field_of_another_type_is_an_error_of_use_that_is_told_once(number: int) -> None:
    log = EventLog()
    guarded = Guarded(Given(WRONG[number]), sinks=[log])
    with pytest.raises(UsageError) as caught:
        guarded.search("refund")
    assert caught.value.why
    assert caught.value.fix
    assert [event.name for event in log.events] == ["retrieval.failed"]
    assert search_tool(Given(WRONG[number])).run({"query": "refund"}).outcome == "misconfigured"
