"""A stand-in for `wellhead.index`, so that these tests are about the command line alone."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from wellhead.doors.cli.group import cli
from wellhead.errors import UsageError
from wellhead.ports import DocumentSummary
from wellhead.records import (
    Coverage,
    Document,
    Explanation,
    Hit,
    Hits,
    IndexStats,
    Passage,
    Signals,
    SyncReport,
    TermMatch,
    VerifyReport,
)

Run = Callable[..., Result]


def passage(number: int = 1, **fields: Any) -> Passage:
    given = {"id": f"{number:064x}"[::-1], "document_id": f"guides/{number}.md", "ordinal": 0, "text": "Turn the key."}
    given |= {"start": 0, "end": 13, "heading": ("Keys", "Rotation")}
    return Passage(**(given | fields))


def hit(number: int = 1, **fields: Any) -> Hit:
    given = {"rank": number, "score": 0.75, "passage": passage(number), "verdict": "pass"}
    return Hit(**(given | fields))


class FakeIndex:
    """Gives canned answers and keeps how it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.kept = {name: Document(id=name, text=f"text of {name}", title="A title") for name in ("a.md", "keys.md")}
        self.hits = Hits(hits=(hit(1), hit(2)), coverage=Coverage(passages=2, with_vectors=2))
        self.report = SyncReport(read=2, added=2, passages=2, embedded=2)
        self.verified = VerifyReport(documents=2, passages=2, vectors=2)
        self.fails: BaseException | None = None

    def called(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return next((args, options) for call, args, options in self.calls if call == name)

    def _note(self, name: str, *args: Any, **options: Any) -> None:
        self.calls.append((name, args, options))
        if self.fails is not None:
            raise self.fails

    def open(self, path: str = "kb", **options: Any) -> FakeIndex:
        self._note("open", path, **options)
        return self

    def __enter__(self) -> FakeIndex:
        return self

    def __exit__(self, *_error: object) -> None:
        self.calls.append(("close", (), {}))

    def scoped(self, **scope: str) -> FakeIndex:
        self._note("scoped", **scope)
        return self

    def sync(self, path: str, **options: Any) -> SyncReport:
        self._note("sync", path, **options)
        return self.report

    def remove(self, ids: list[str]) -> int:
        self._note("remove", ids)
        return len([self.kept.pop(name) for name in ids])

    def get(self, document_id: str) -> Document | None:
        return self.kept.get(document_id)

    def summaries(self) -> list[DocumentSummary]:
        return [
            DocumentSummary(one.id, one.metadata, one.title, passages=len(self.passages(one.id)))
            for one in self.kept.values()
        ]

    def passage(self, given: str) -> Passage:
        self._note("passage", given)
        found = [one for one in (passage(1), passage(2)) if one.id.startswith(given)]
        if len(found) != 1:
            raise UsageError(f"no passage begins with {given!r}", fix="wellhead search shows ids")
        return found[0]

    def passages(self, document_id: str) -> list[Passage]:
        return [passage(1, document_id=document_id)]

    def search(self, query: str, **options: Any) -> Hits:
        self._note("search", query, **options)
        return self.hits

    def explain(self, query: str, given: str, **options: Any) -> Explanation:
        self._note("explain", query, given, **options)
        return Explanation(
            query=query,
            passage=self.passage(given),
            rank=3,
            returned=False,
            stage="fusion",
            reason="it is below k",
            score=0.5,
            signals=Signals(bm25=2.5, coverage=0.25, cosine=0.125, lexical_rank=4, dense_rank=7),
            verdict="below",
            terms=(
                TermMatch(term="polici", field="stem", query_count=1, passage_count=2, documents=9, score=2.5),
                TermMatch(term="absent", field="word", query_count=1, passage_count=0, documents=0, score=0.0),
                TermMatch(term="policing", field="word", query_count=1, passage_count=0, documents=1, score=0.0),
            ),
            stem_only=("policing",),
        )

    def stats(self) -> IndexStats:
        return IndexStats(
            documents=len(self.kept),
            passages=2,
            with_vectors=2,
            incomplete=0,
            languages={"en": 2},
            areas={"guides": 2},
            vectors=2,
            bytes=4096,
            fingerprint={"embedder": "static"},
            index_version=7,
        )

    def verify(self) -> VerifyReport:
        self._note("verify")
        return self.verified


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeIndex:
    index = FakeIndex()
    module = types.ModuleType("wellhead.index")
    module.Index = index  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wellhead.index", module)
    return index


@pytest.fixture
def run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder that has a folder `kb`."""
    monkeypatch.chdir(tmp_path)
    for name in ("WELLHEAD_INDEX", "WELLHEAD_DEBUG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "kb").mkdir()
    return lambda *args: CliRunner().invoke(cli, list(args), prog_name="wellhead")


@pytest.fixture
def make() -> types.SimpleNamespace:
    """Builders of records: `make.hit(1, verdict="below")`, `make.passage(1)`."""
    return types.SimpleNamespace(hit=hit, passage=passage)
