"""Fifty tenants in one index, and a model of who owns what: every text carries its owner's mark.

`Tenants` lives through random histories (`hypothesis.stateful`). Whatever a tenant is told, by whichever way, may hold
no mark and no passage id but its own, and must be what an index would tell that holds nothing of anybody else.
"""

from __future__ import annotations

import logging
import re
import shutil
import string
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wellhead import Document, EventLog, Hits, Index, ScopeError, UsageError
from wellhead.agent.cache import MemoryCache
from wellhead.agent.executor import Executor
from wellhead.agent.messages import ToolCall
from wellhead.agent.registry import Registry
from wellhead.agent.search import search_tool
from wellhead.backends.stores.embedded import keeper
from wellhead.records import Coverage, Degraded, Hit, Passage, Source
from wellhead.search.guard import Guarded
from wellhead.testing.fakes import HashEmbedder

__all__ = ["MARK", "NAMES", "LeakError", "Tenants", "WithoutKey", "mark"]

LOGGER = logging.getLogger("wellhead")
RAM = next((place for place in ("/dev/shm",) if Path(place).is_dir()), None)
# Names that something careless would take for one another, or for something else than a name.
ODD = ("acme", "Acme", "acme ", " acme", "acm", "acme2", "acm_", "%", "*", "a/b", "../acme", "caf\u00e9", "cafe\u0301")
ODD = (*ODD, "\uff41cme", "ac\0me", "null", "None", "true", "0", '"acme"', "acme' OR '1'='1", "$in", "食べ物")
NAMES = (*ODD, *(f"tenant-{n}" for n in range(50 - len(ODD))))
MARK = re.compile(r"mk[a-z]{2}z")
ID = re.compile(r"[0-9a-f]{64}")
BASES = (
    "rotate the key of the vault every year",
    "the café opens for visitors at noon",
    "refunds of tickets take thirty days",
    "when the disk is full stop the writer",
)
QUERIES = ("rotate a key", "cafe", "refund ticket", "full disk writer", "opens at noon", "rotated keys", "zebra moon")
IDS = ("faq", "FAQ", "faq ", "guides/faq.md", "caf\u00e9", "cafe\u0301")
FILES = ("one.md", "two.md")


class LeakError(AssertionError):
    """A tenant was told what is not its own, or something else than it would be told alone."""


def mark(tenant: int) -> str:
    """The word that stands in every text of a tenant, and in no other's."""
    first, second = divmod(tenant, 26)
    return f"mk{string.ascii_lowercase[first]}{string.ascii_lowercase[second]}z"


def same(what: str, told: object, expected: object) -> None:
    if told != expected:
        raise LeakError(f"{what}: {told!r:.600} is not {expected!r:.600}")


def alone(hits: Hits) -> Hits:
    """An answer without its time and the number of writes before it."""
    return msgspec.structs.replace(hits, timings={}, index_version=0)


class Mixing:
    """A backend that looks at everybody's passages, and tells of all of them in every way it can."""

    def __init__(self, own: Sequence[Passage], foreign: Sequence[Passage], *, plain: bool) -> None:
        self.own, self.foreign, self.plain = own, foreign, plain

    def search(self, query: str, *, k: int = 10, filters: Mapping[str, object] | None = None) -> Any:
        clash = [msgspec.structs.replace(p, id=o.id) for p, o in zip(self.foreign, self.own, strict=False)]
        passages = [*clash, *self.foreign, *self.own]
        if self.plain:
            return passages
        places = tuple(Source(passage_id=p.id, document_id=p.document_id, metadata=p.metadata) for p in self.foreign)
        secret = self.foreign[0].text
        return Hits(
            hits=tuple(Hit(rank=9, score=1.0 / n, passage=p, also_in=places) for n, p in enumerate(passages, start=1)),
            near_misses=tuple(Hit(rank=1, score=0.1, passage=p, also_in=places) for p in (*self.foreign, *self.own)),
            why_empty=secret,
            degraded=(Degraded(leg="dense", why=secret, fix=secret),),
            coverage=Coverage(passages=len(passages), with_vectors=len(passages)),
            evidence={"cosine": 0.9},
        )


class Claiming(Mixing):
    """The same, and it says that it keeps scopes apart by itself."""

    def scoped(self, **scope: str) -> Claiming:
        return self


tenants = st.sampled_from((0, 1, 2)) | st.integers(0, len(NAMES) - 1)
bases = st.lists(st.sampled_from(BASES), min_size=1, max_size=3)
filters = st.sampled_from(("none", "none", "kind", "other", "either", "nested", "nothing"))
searches = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sampled_from((1, 2, 3, 100)),
        "mode": st.sampled_from(("hybrid", "lexical", "dense")),
        "fusion": st.sampled_from(("blend", "rrf", "convex")),
        "cut": st.sampled_from(("query", "hit", "off", "off")),
        "per_document": st.just(1),
        "max_tokens": st.sampled_from((9, 30)),
    },
)


class Tenants(RuleBasedStateMachine):
    """One embedded index in a folder, with a scope key."""

    key: str | None = "tenant"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=RAM))
        self.files = self.folder / "files"
        self.files.mkdir()
        self.owned: list[dict[str, Document]] = [{} for _ in NAMES]
        self.ids: list[set[str]] = [set() for _ in NAMES]
        self.log = EventLog()
        self.records: list[str] = []
        self.handler = _Listening(self.records)
        self.level = LOGGER.level
        LOGGER.addHandler(self.handler)
        LOGGER.setLevel(logging.DEBUG)
        self.flush, keeper.FLUSH_ROWS = keeper.FLUSH_ROWS, 16
        self.open()

    def open(self) -> None:
        self.index = self.opened(self.folder / "kb", sinks=[self.log])
        self.guarded = Guarded(self.index, scope_key="tenant", sinks=[self.log])
        self.asking = 0
        # One run, in which the host turns from one tenant to another: nothing but the key of an answer parts them.
        tool = search_tool(
            self.guarded,
            k=3,
            filters=lambda ctx: {"tenant": NAMES[self.asking]},
            narrowing={"kind": ["a", "b"]},
            cache_ttl=300,
        )
        self.executor = Executor(Registry(tool), sink=self.log, cache=MemoryCache())
        self.run = self.executor.context("host")

    def opened(self, place: str | Path, **options: Any) -> Index:
        return Index.open(
            place, scope_key=self.key, embedder=HashEmbedder(), chunker="paragraph", languages=["en"], **options
        )

    def teardown(self) -> None:
        try:
            self.everything_is_where_it_belongs()
        finally:
            self.index.close()
            keeper.FLUSH_ROWS = self.flush
            LOGGER.removeHandler(self.handler)
            LOGGER.setLevel(self.level)
            shutil.rmtree(self.folder)

    # -- the model ---------------------------------------------------------------------------------------------------

    def scope(self, tenant: int) -> Index:
        return self.index.scoped(tenant=NAMES[tenant])

    def name(self, tenant: int, name: str) -> str:
        """A document's id; the same for all tenants where each has ids of its own."""
        return name if self.key else f"{tenant}/{name}"

    def document(self, owner: int, name: str, texts: Sequence[str], **metadata: Any) -> Document:
        own = mark(owner)
        return Document(
            id=name,
            title=f"About {own}",
            uri=f"https://{own}.example/{name}",
            text="\n\n".join(f"{text}, says {own}" for text in texts),
            metadata={"kind": "a", "by": own, **metadata},
        )

    def wrote(self, tenant: int, *documents: Document) -> None:
        for document in documents:
            stamped = {**document.metadata, "tenant": NAMES[tenant]}
            self.owned[tenant][document.id] = msgspec.structs.replace(document, metadata=stamped)
        self.recount(tenant)

    def others(self, tenant: int) -> list[dict[str, Document]]:
        return [owned for other, owned in enumerate(self.owned) if other != tenant]

    def recount(self, tenant: int) -> None:
        own = self.scope(tenant)
        self.ids[tenant] = {passage.id for name in self.owned[tenant] for passage in own.passages(name)}

    def passages(self, tenant: int) -> list[Passage]:
        return [passage for name in self.owned[tenant] for passage in self.scope(tenant).passages(name)]

    def clean(self, tenant: int, told: object, given: str = "") -> None:
        """Nothing in what a tenant was told is another's, but what it said itself (`given`)."""
        said = repr(told)
        foreign = set(MARK.findall(said)) - {mark(tenant)} - set(MARK.findall(given))
        unknown = set(ID.findall(said)) - self.ids[tenant] - set(ID.findall(given))
        if foreign or unknown:
            raise LeakError(f"{NAMES[tenant]!r} was told of {foreign or unknown}: {said:.600}")

    def filter(self, kind: str, other: int) -> dict[str, object] | None:
        made: Mapping[str, dict[str, object]] = {
            "kind": {"kind": "a"},
            "other": {"by": mark(other)},
            "either": {"$or": [{"tenant": NAMES[other]}, {"kind": "b"}]},
            "nested": {"$and": [{"tenant": {"$in": [NAMES[other]]}}]},
            "nothing": {"kind": {"$in": []}},
        }
        return made.get(kind)

    def question(self, query: str, other: int, curious: str) -> str:
        """A query that knows more of the other tenant than it should."""
        known = sorted(self.ids[other])[:1] if curious == "id" else [mark(other)] if curious == "mark" else []
        return " ".join([query, *known])

    def twin(self, tenant: int) -> Index:
        """An index that holds what this tenant has, and nothing else."""
        twin = self.opened(":memory:")
        twin.scoped(tenant=NAMES[tenant]).add(self.owned[tenant].values())
        return twin

    # -- writing ------------------------------------------------------------------------------------------------------

    @initialize()
    def everybody_has_something(self) -> None:
        first = [
            self.document(n, f"own-{mark(n)}", [BASES[n % 4]], tenant=NAMES[n], kind="b") for n in range(len(NAMES))
        ]
        same("added", self.index.add(first).added, len(NAMES))
        for tenant, document in enumerate(first):
            self.wrote(tenant, document)
        for tenant in range(3):
            self.writes(tenant, [IDS[0]], BASES[:2])

    @rule(tenant=tenants, names=st.lists(st.sampled_from(IDS), min_size=1, max_size=2, unique=True), texts=bases)
    def writes(self, tenant: int, names: Sequence[str], texts: Sequence[str]) -> None:
        documents = [self.document(tenant, self.name(tenant, name), texts) for name in names]
        if not self.key and any(one.id in owned for one in documents for owned in self.others(tenant)):
            self.clean(tenant, refused(lambda: self.scope(tenant).add(documents)))
            return
        report = self.scope(tenant).add(documents)
        same("report", (report.read, report.refused, report.failed), (len(documents), (), ()))
        new = sum(document.id not in self.owned[tenant] for document in documents)
        same("added", report.added, new)
        self.wrote(tenant, *documents)
        self.compare(tenant, QUERIES[len(texts)], {"cut": "off"})

    @rule(tenant=tenants, other=tenants, text=st.sampled_from(BASES))
    def brings_files_that_name_another(self, tenant: int, other: int, text: str) -> None:
        for name in FILES:
            head = f"---\ntenant: {msgspec.json.encode(NAMES[other]).decode()}\nkind: a\n---\n"
            (self.files / name).write_text(f"{head}# About {mark(tenant)}\n\n{text} in {name}, says {mark(tenant)}\n")
        own = self.scope(tenant)
        prefix = self.name(tenant, "")
        report = own.sync(self.files, prefix=prefix, origin="files")
        same("synced", (report.complete, report.read, report.removed), (True, len(FILES), 0))
        for name in FILES:
            held = own.get(prefix + name)
            if held is None or held.metadata != {"kind": "a", "tenant": NAMES[tenant]}:
                raise LeakError(f"a file chose its scope: {held!r}")
            self.owned[tenant][held.id] = held
        self.recount(tenant)

    @rule(tenant=tenants, other=tenants, data=st.data())
    def removes_what_it_knows_of(self, tenant: int, other: int, data: st.DataObject) -> None:
        names = data.draw(st.sampled_from([sorted(self.owned[other]) or ["x"], sorted(self.owned[tenant]) or ["x"]]))
        chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        mine = [name for name in chosen if name in self.owned[tenant]]
        same("removed", self.scope(tenant).remove(chosen), len(mine))
        for name in mine:
            del self.owned[tenant][name]
        self.recount(tenant)

    @rule(tenant=tenants, name=st.sampled_from(IDS), owner=tenants, text=st.sampled_from(BASES))
    def the_host_moves_a_document(self, tenant: int, name: str, owner: int, text: str) -> None:
        """Whoever had the id loses it: that is what an unbound handle says of a document with one id."""
        moved = self.document(tenant, self.name(owner, name), [text], tenant=NAMES[tenant])
        self.index.add([moved])
        for other, owned in enumerate(self.owned):
            if other != tenant and owned.pop(moved.id, None) is not None:
                self.recount(other)
                self.compare(other, text, {"cut": "off"})
        self.wrote(tenant, moved)
        self.compare(tenant, text, {"cut": "off"})

    @rule(tenant=tenants, other=tenants)
    def cannot_write_for_another(self, tenant: int, other: int) -> None:
        if tenant == other:
            return
        wrong = self.document(tenant, self.name(tenant, "faq"), [BASES[0]], tenant=NAMES[other])
        self.clean(tenant, refused(lambda: self.scope(tenant).add([wrong])))
        self.clean(tenant, refused(lambda: self.scope(tenant).scoped(tenant=NAMES[other])))

    # -- looking ------------------------------------------------------------------------------------------------------

    @rule(tenant=tenants, other=tenants, data=st.data())
    def asks_by_id(self, tenant: int, other: int, data: st.DataObject) -> None:
        own, theirs = self.scope(tenant), sorted(self.owned[other]) or ["x"]
        name = data.draw(st.sampled_from(theirs))
        expected = self.owned[tenant].get(name)
        same("get", own.get(name), expected)
        self.clean(tenant, [own.get(name), own.passages(name)])
        same("passages", bool(own.passages(name)), expected is not None)
        for given in sorted(self.ids[other])[:2]:
            for asked in (given, given[:12]):
                if tenant == other:
                    self.clean(tenant, own.passage(asked))
                else:
                    self.clean(tenant, refused(lambda asked=asked: own.passage(asked)), given=asked)  # type: ignore[misc]
                    self.clean(
                        tenant,
                        refused(lambda asked=asked: own.explain("rotate", asked)),  # type: ignore[misc]
                        given=asked,
                    )

    @rule(tenant=tenants)
    def looks_around(self, tenant: int) -> None:
        own, owned = self.scope(tenant), self.owned[tenant]
        documents, summaries, stats = list(own.documents()), own.summaries(), own.stats()
        same("documents", documents, [owned[name] for name in sorted(owned)])
        same("ls", [one.id for one in summaries], sorted(owned))
        self.clean(tenant, [documents, summaries, stats])
        count = len(self.ids[tenant])
        same("stats", (stats.documents, stats.passages, stats.with_vectors), (len(owned), count, count))
        same("counts", (stats.incomplete, dict(stats.languages)), (0, {"en": count} if count else {}))
        same("areas", sum(stats.areas.values()), len(owned))
        same("whole", (stats.storage, stats.vectors, stats.bytes), (None, 0, 0))

    @rule(
        tenant=tenants,
        other=tenants,
        query=st.sampled_from(QUERIES),
        curious=st.sampled_from(("", "mark", "id")),
        filtered=filters,
        options=searches,
    )
    def searches(
        self, tenant: int, other: int, query: str, curious: str, filtered: str, options: dict[str, Any]
    ) -> None:
        """The hits, the reasons, the scores and their statistics are those of an index that holds nothing else."""
        narrowed = self.filter(filtered, other)
        hits = self.compare(tenant, self.question(query, other, curious), {**options, "filters": narrowed})
        if options.get("cut") == "off" and narrowed is None and options.keys() <= {"k", "cut"}:
            texts = {passage.text for passage in self.passages(tenant)}
            same("k", len(hits), min(options.get("k", 10), len(texts)))

    def compare(self, tenant: int, question: str, asked: dict[str, Any]) -> Hits:
        own = self.scope(tenant)
        hits = own.search(question, **asked)
        self.clean(tenant, hits)
        with self.twin(tenant) as twin:
            left = twin.scoped(tenant=NAMES[tenant])
            same("hits", alone(hits), alone(left.search(question, **asked)))
            for passage in self.passages(tenant)[:1]:
                same("explanation", own.explain(question, passage, **asked), left.explain(question, passage, **asked))
        return hits

    @rule(tenant=tenants, other=tenants, query=st.sampled_from(QUERIES), filtered=filters, bound=st.booleans())
    def searches_through_a_guard(self, tenant: int, other: int, query: str, filtered: str, bound: bool) -> None:
        narrowed = self.filter(filtered, other)
        question = self.question(query, other, "mark")
        if bound:
            hits = self.guarded.scoped(tenant=NAMES[tenant]).search(question, k=4, filters=narrowed)
        else:
            hits = self.guarded.search(question, k=4, filters={**(narrowed or {}), "tenant": NAMES[tenant]})
        self.clean(tenant, hits)
        same("guarded", alone(hits), alone(self.scope(tenant).search(question, k=4, filters=narrowed)))
        same("dropped", hits.dropped, 0)
        if tenant != other:
            wrong = {"tenant": NAMES[other]}
            self.clean(
                tenant,
                refused(lambda: self.guarded.scoped(tenant=NAMES[tenant]).search(question, filters=wrong)),
                question,
            )

    @rule(
        tenant=tenants,
        others=st.lists(tenants, min_size=1, max_size=3),
        kind=st.sampled_from((Mixing, Claiming)),
        plain=st.booleans(),
        k=st.sampled_from((1, 2, 10)),
        filtered=st.sampled_from(("none", "kind", "other")),
    )
    def searches_through_a_guard_over_a_liar(
        self, tenant: int, others: Sequence[int], kind: type[Mixing], plain: bool, k: int, filtered: str
    ) -> None:
        own = self.passages(tenant)
        foreign = [passage for other in others if other != tenant for passage in self.passages(other)]
        if not foreign:
            return
        liar = Guarded(kind(own, foreign, plain=plain), scope_key="tenant", sinks=[self.log])
        narrowed = self.filter(filtered, others[0])
        hits = liar.scoped(tenant=NAMES[tenant]).search("anything", k=k, filters=narrowed)
        self.clean(tenant, hits)
        admitted = [p for p in own if narrowed is None or narrowed.items() <= p.metadata.items()]
        same("delivered", len(hits), min(k, len(admitted)))
        same("words", (hits.coverage.passages, hits.evidence), (0, {}))
        if not own:
            same("outcome", (hits.outcome, hits.why_empty), ("no_match", "nothing was found"))

    @rule(
        tenant=tenants,
        query=st.sampled_from(QUERIES[:3]),
        kind=st.sampled_from((None, "a", "b")),
        again=st.booleans(),
    )
    def calls_the_tool(self, tenant: int, query: str, kind: str | None, again: bool) -> None:
        """Also a second time, and after another tenant has asked the same."""
        arguments = {"query": query} | ({"kind": kind} if kind else {})
        for _ in range(1 + again):
            self.asking = tenant
            result = self.executor.run(ToolCall(name="search_docs", arguments=arguments), self.run)
            self.clean(tenant, result)
            narrowed = {"kind": kind} if kind else None
            fresh = self.scope(tenant).search(query, k=3, filters=narrowed)
            assert result.hits is not None, result
            same("tool", alone(result.hits), alone(fresh))
            same("shown", [one["id"] for one in result.data["documents"]], [hit.id for hit in fresh])  # type: ignore[attr-defined]

    # -- the house ----------------------------------------------------------------------------------------------------

    @rule()
    def restarts(self) -> None:
        self.index.close()
        self.open()

    @rule()
    def puts_rows_into_segments(self) -> None:
        self.index._house.store.settle()  # type: ignore[attr-defined]

    @precondition(lambda self: sum(map(len, self.ids)) > 60)
    @rule()
    def compacts(self) -> None:
        self.index.compact()

    @precondition(lambda self: sum(map(len, self.ids)) > 60)
    @rule()
    def verifies(self) -> None:
        report = self.index.verify()
        same("verify", (report.ok, report.passages), (True, sum(map(len, self.ids))))

    @invariant()
    def events_and_logs_tell_no_text(self) -> None:
        for told in (*self.log.events, *self.records):
            if MARK.search(repr(told)):
                raise LeakError(f"told to a listener: {told!r:.600}")
        self.log.events.clear()
        self.records.clear()

    def everything_is_where_it_belongs(self) -> None:
        # Without a key every handle reads all documents to find its own: some of them have to do.
        for tenant, owned in enumerate(self.owned if self.key else self.owned[:3]):
            same("documents", [one.id for one in self.scope(tenant).documents()], sorted(owned))


class WithoutKey(Tenants):
    """The same in an index that keeps no scopes apart: a handle is bound to a value of a metadata key."""

    key = None


def refused(action: Callable[[], object]) -> UsageError:
    """The error of a call that must not go through."""
    try:
        given = action()
    except UsageError as error:
        if not isinstance(error, ScopeError) and "no passage" not in error.what:
            raise LeakError(f"refused for another reason: {error}") from error
        return error
    raise LeakError(f"went through: {given!r:.600}")


class _Listening(logging.Handler):
    def __init__(self, records: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record.getMessage())
