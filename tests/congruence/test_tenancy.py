"""No tenant is told of another: random histories of fifty of them, and the same with leaks that must be found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tenants import MARK, NAMES, LeakError, Tenants, WithoutKey, mark
from wellhead import Document, Executor, Guarded, Index, Registry, ToolCall, search_tool
from wellhead.agent import search as tool
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.backends.stores.embedded.view import PartsView
from wellhead.index import folder, stamp
from wellhead.index.stamp import Stamp
from wellhead.search.guard import backend, recheck
from wellhead.search.guard.scope import Bound
from wellhead.search.within import Within
from wellhead.testing.fakes import HashEmbedder

Plant = Callable[[pytest.MonkeyPatch], None]


def assert_no_leak(machine: type[Tenants], examples: int, steps: int, *, shrink: bool = True) -> None:
    """Run so many histories; an AssertionError tells the first leak."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            **({} if shrink else {"derandomize": True, "database": None, "phases": [Phase.generate]}),
        ),
    )


@pytest.mark.promise("D38", "D40", "D43", "G29", "G30")
@pytest.mark.parametrize(
    ("examples", "steps"), [(60, 30), pytest.param(5_000, 50, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_no_tenant_is_told_of_another(examples: int, steps: int) -> None:
    assert_no_leak(Tenants, examples, steps)


@pytest.mark.promise("D38", "D40", "D43")
@pytest.mark.parametrize(
    ("examples", "steps"), [(12, 30), pytest.param(1_000, 50, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_no_tenant_is_told_of_another_without_a_scope_key(examples: int, steps: int) -> None:
    assert_no_leak(WithoutKey, examples, steps)


@pytest.mark.promise("D38", "G17")
def test_many_tenants_at_once_are_each_told_of_their_own(kb: Path) -> None:
    """One index, one guard, one tool with a cache, and a thread for each of eight tenants, who ask the same."""
    with Index.open(kb, embedder=HashEmbedder(), languages=["en"], scope_key="tenant") as index:
        guarded = Guarded(index)
        tool = search_tool(guarded, filters=lambda ctx: {"tenant": ctx.user_id}, cache_ttl=300)
        executor = Executor(Registry(tool))
        together = threading.Barrier(8)

        def live(tenant: int) -> list[str]:
            name, own = NAMES[tenant], mark(tenant)
            handle, run = index.scoped(tenant=name), executor.context(name)
            told: list[str] = []
            together.wait()
            for turn in range(12):
                handle.add([Document(id=f"d{turn % 3}", text=f"rotate the key {turn}, says {own}")])
                hits = [
                    handle.search("rotate key", cut="off"),
                    guarded.search("rotate key", filters={"tenant": name}),
                    guarded.scoped(tenant=name).search("rotate key"),
                    executor.run(ToolCall(name=tool.name, arguments={"query": "rotate key"}), run).hits,
                ]
                told += [repr(one) for one in (*hits, list(handle.documents()), handle.summaries())]
                assert all(len(one or ()) == min(turn + 1, 3) for one in hits)
            return told

        with ThreadPoolExecutor(8) as pool:
            for tenant, told in enumerate(pool.map(live, range(8))):
                assert {found for text in told for found in MARK.findall(text)} == {mark(tenant)}


# -- leaks that were put there ----------------------------------------------------------------------------------------


def view_of_another(patch: pytest.MonkeyPatch) -> None:
    """A store that keeps the view of whoever asked first."""
    real, kept = EmbeddedStore.view, "_kept_for"

    def view(self: EmbeddedStore, scope: str) -> PartsView:
        first = self.__dict__.setdefault(kept, scope)
        return real(self, first)

    patch.setattr(EmbeddedStore, "view", view)


def key_without_scope(patch: pytest.MonkeyPatch) -> None:
    """A cache that goes by the query alone."""
    patch.setattr(tool._Search, "_key", lambda self, query, filters: f"{self.token} {query}")


def guard_that_trusts(patch: pytest.MonkeyPatch) -> None:
    """A guard that does not look at what came back."""
    patch.setattr(Bound, "holds", lambda self, metadata: True)


def near_misses_unchecked(patch: pytest.MonkeyPatch) -> None:
    real = recheck._near_misses

    def near(returned: Any, wanted: Any, hits: Any, dropped: Any) -> Any:
        real(returned, wanted, hits, dropped)
        return returned.near_misses

    patch.setattr(recheck, "_near_misses", near)


def other_places_unchecked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recheck, "_may_be_seen", lambda place, wanted: True)


def words_of_the_backend(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recheck, "_own_words", lambda told, wanted, dropped: told)


def handle_of_another(patch: pytest.MonkeyPatch) -> None:
    """A guard that binds a handle once, and keeps it for whoever asks next."""

    def handle(self: Any, bound: Any) -> Any:
        if not self._binds or bound is None:
            return self.retriever
        if self._last is None:
            self._last = (bound, self.retriever.scoped(tenant=bound.value))
        return self._last[1]

    patch.setattr(backend.Backend, "_handle", handle)


def get_by_id_alone(patch: pytest.MonkeyPatch) -> None:
    real = EmbeddedStore.get
    patch.setattr(
        EmbeddedStore, "get", lambda self, scope, name: real(self, (self.scopes_of(name) or [scope])[0], name)
    )


def removal_by_id_alone(patch: pytest.MonkeyPatch) -> None:
    real = EmbeddedStore.delete

    def delete(self: EmbeddedStore, scope: str, ids: Any) -> int:
        return sum(real(self, other, [name]) for name in ids for other in self.scopes_of(name))

    patch.setattr(EmbeddedStore, "delete", delete)


def statistics_of_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartsView, "document_count", property(lambda self: 50))


def moves_that_leave_a_copy(patch: pytest.MonkeyPatch) -> None:
    real = Stamp._stamped

    def stamped(self: Stamp, document: Any) -> Any:
        made = real(self, document)
        return made if isinstance(made, stamp.Refusal) else stamp.Incoming(**{**_fields(made), "leaves": ()})

    patch.setattr(Stamp, "_stamped", stamped)


def _fields(made: Any) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


def files_that_choose_their_scope(patch: pytest.MonkeyPatch) -> None:
    real = Stamp.own
    patch.setattr(folder.FolderReading, "_without_scope", lambda self, document: document)
    patch.setattr(
        Stamp, "own", lambda self, document: document if "tenant" in document.metadata else real(self, document)
    )


def everybodys_rows(patch: pytest.MonkeyPatch) -> None:
    """A handle of an index without a scope key that marks all rows as its own."""
    real = Within.__init__
    patch.setattr(Within, "__init__", lambda self, view, admits: real(self, view, admits | True))


def everybodys_documents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Index, "_is_mine", lambda self, document: True)


LEAKS: list[tuple[type[Tenants], Plant]] = [
    (Tenants, view_of_another),
    (Tenants, key_without_scope),
    (Tenants, guard_that_trusts),
    (Tenants, near_misses_unchecked),
    (Tenants, other_places_unchecked),
    (Tenants, words_of_the_backend),
    (Tenants, handle_of_another),
    (Tenants, get_by_id_alone),
    (Tenants, removal_by_id_alone),
    (Tenants, statistics_of_everybody),
    (Tenants, moves_that_leave_a_copy),
    (Tenants, files_that_choose_their_scope),
    (WithoutKey, everybodys_rows),
    (WithoutKey, everybodys_documents),
]


@pytest.mark.parametrize(("machine", "plant"), LEAKS, ids=[plant.__name__ for _, plant in LEAKS])
def test_a_leak_that_is_there_is_found(machine: type[Tenants], plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(LeakError):
        assert_no_leak(machine, 60, 30, shrink=False)
