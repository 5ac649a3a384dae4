"""What an evaluation asks, counts and warns of: once with a scripted index, once with a real one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wellhead import Index
from wellhead.bench.collection import Collection, read_collection
from wellhead.bench.evaluate import Evaluation, evaluate, main_pipeline, percentile
from wellhead.bench.pipelines import PIPELINES
from wellhead.bench.report import to_dict
from wellhead.errors import BackendError, UsageError
from wellhead.records import Degraded, Document, Hit, Hits, Passage, Source


def passage(document_id: str, ordinal: int = 0, text: str = "some key") -> Passage:
    return Passage(
        id=f"{document_id}-{ordinal}", document_id=document_id, ordinal=ordinal, text=text, start=0, end=len(text)
    )


def hits(*ids: str) -> Hits:
    found = tuple(Hit(rank=rank, score=1 / rank, passage=passage(id_)) for rank, id_ in enumerate(ids, start=1))
    return Hits(hits=found, outcome="hits" if found else "no_match")


class ScriptedIndex:
    """Answers from a script: `answers[mode or fusion][query]`; remembers how it was asked."""

    def __init__(self, answers: dict[str, dict[str, Hits]], usual: dict[str, Hits] | None = None) -> None:
        self.answers = answers
        self.usual = usual
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def search(self, query: str, **options: Any) -> Hits:
        self.asked.append((query, options))
        if self.usual is not None and options.get("cut") != "off":
            return self.usual[query]
        answers = self.answers[options.get("fusion", options["mode"])]
        if query not in answers:
            raise BackendError("the query could not be embedded", why="scripted")
        return answers[query]

    def documents(self) -> Iterator[Document]:
        return (Document(id=id_, text="some key") for id_ in ("b", "a", "c"))

    def passages(self, document_id: str) -> list[Passage]:
        return [passage(document_id, 0), passage(document_id, 1, "other")]

    def stats(self) -> SimpleNamespace:
        return SimpleNamespace(documents=3, passages=6, fingerprint={"embedder": "scripted"}, index_version=7)


def collection(**changes: Any) -> Collection:
    plain: dict[str, Any] = {
        "name": "tiny",
        "queries": {"q1": "one", "q2": "two"},
        "qrels": {"q1": {"a": 1}, "q2": {"b": 1}},
        "documents": tuple(Document(id=id_, text="some key") for id_ in ("c", "a", "b")),
    }
    return Collection(**{**plain, **changes})


def run(index: ScriptedIndex, tested: Collection, *pipelines: str) -> Evaluation:
    return evaluate(tested, index=index, pipelines=pipelines)  # type: ignore[arg-type]


def test_a_ranking_is_asked_for_to_rank_100_with_the_cut_off_and_one_passage_a_document() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("a"), "two": hits("b")}})
    run(index, collection(), "bm25")
    deep = [options for _, options in index.asked if "cut" in options]
    usual = [options for _, options in index.asked if "cut" not in options]
    assert deep == [{"k": 100, "per_document": 1, "cut": "off", "mode": "lexical"}] * 3  # one of them to warm up
    assert usual == [{"mode": "lexical"}] * 3


def test_each_pipeline_asks_for_its_mode_and_fusion() -> None:
    script = {name: {"one": hits("a"), "two": hits("b")} for name in ("lexical", "dense", "blend", "rrf", "convex")}
    index = ScriptedIndex(script)
    evaluation = run(index, collection(), *PIPELINES)
    asked = {(options["mode"], options.get("fusion")) for _, options in index.asked}
    assert asked == {
        ("lexical", None),
        ("dense", None),
        ("hybrid", "blend"),
        ("hybrid", "rrf"),
        ("hybrid", "convex"),
    }
    assert tuple(row.name for row in evaluation.pipelines) == PIPELINES


def test_what_was_delivered_is_measured_in_its_order() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("c", "a"), "two": hits("b")}})
    (row,) = run(index, collection(), "bm25").pipelines
    assert row.measures["RR@10"] == pytest.approx((1 / 2 + 1) / 2)
    assert row.measures["R@10"] == 1.0
    assert row.details["q1"].ranking == ("c", "a")
    assert 0 <= row.p50_ms <= row.p95_ms


def test_a_hit_stands_for_every_document_with_its_text() -> None:
    twin = Source(passage_id="a-0", document_id="a")
    shared = Hits(hits=(Hit(rank=1, score=1.0, passage=passage("c"), also_in=(twin,)),))
    index = ScriptedIndex({"lexical": {"one": shared, "two": hits("b")}})
    (row,) = run(index, collection(), "bm25").pipelines
    assert row.details["q1"].ranking == ("c", "a")


def test_queries_that_got_nothing_count_and_are_listed() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("a"), "two": hits()}})
    evaluation = run(index, collection(), "bm25")
    (row,) = evaluation.pipelines
    assert row.measures["nDCG@10"] == 0.5
    assert row.nothing_relevant == row.returned_nothing == ("q2",)
    assert evaluation.warnings == ("bm25 returned nothing for 1 query (q2), counted 0 in the means",)


def test_the_default_cut_is_counted_beside_the_ranking() -> None:
    tested = collection(queries={"q1": "one", "q2": "two", "q3": "far"}, unanswerable=frozenset({"q3"}))
    ranked = {"one": hits("a"), "two": hits("b"), "far": hits("c")}
    index = ScriptedIndex({"lexical": ranked}, usual={"one": hits("a"), "two": hits(), "far": hits("c")})
    evaluation = run(index, tested, "bm25", "substring")
    bm25, substring = evaluation.pipelines
    assert (bm25.no_match, bm25.unanswerable_with_hits) == (1, 1)
    assert (substring.no_match, substring.unanswerable_with_hits) == (None, None)
    assert bm25.measures["nDCG@10"] == 1.0
    assert (evaluation.queries, evaluation.unanswerable) == (2, 1)


def test_queries_without_a_label_are_listed_and_left_out() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("a"), "two": hits("b")}})
    evaluation = run(index, collection(qrels={"q1": {"a": 1}}), "bm25")
    assert evaluation.unlabelled == ("q2",)
    assert evaluation.queries == 1
    assert evaluation.warnings == ("1 query (q2) without a label, left out of the means",)
    assert {query for query, _ in index.asked} == {"one"}


def test_queries_with_nothing_to_find_are_named() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("a"), "two": hits("b")}})
    evaluation = run(index, collection(qrels={"q1": {"a": 1}, "q2": {"b": 0}}), "bm25")
    assert evaluation.pipelines[0].measures["nDCG@10"] == 0.5
    assert evaluation.warnings == ("1 query (q2) with no relevant document, counted 0 in the means",)


def test_a_leg_that_beats_the_fusion_is_told() -> None:
    better, worse = {"one": hits("a"), "two": hits("b")}, {"one": hits("c", "a"), "two": hits("b")}
    index = ScriptedIndex({"lexical": better, "dense": worse, "blend": worse})
    assert run(index, collection(), "bm25", "dense", "blend").warnings == (
        "bm25 alone beats blend on nDCG@10: 1.0000 > 0.8155 (p = 1.0000)",
    )
    assert run(index, collection(), "bm25", "dense").warnings == ()


def test_every_stage_that_is_worse_than_all_of_its_parts_is_told() -> None:
    best, good, worse = (
        {"one": hits(*ids), "two": hits(*reversed(ids))} for ids in (("a", "b"), ("c", "a", "b"), ("c", "x", "a", "b"))
    )
    index = ScriptedIndex({"lexical": best, "dense": good, "blend": best, "rrf": worse, "convex": good})
    tested = collection(qrels={"q1": {"a": 1}, "q2": {"b": 1}}, documents=())
    index.documents = lambda: (Document(id=one, text="some key") for one in "abcx")  # type: ignore[method-assign]
    told = run(index, tested, "bm25", "dense", "blend", "rrf", "convex").warnings
    assert [one.partition(" on ")[0] for one in told] == ["bm25 alone beats rrf", "dense alone beats rrf"]


def test_a_leg_that_the_poor_baseline_beats_is_told() -> None:
    tested = collection(queries={"q1": "some"}, qrels={"q1": {"c": 1}})
    index = ScriptedIndex({"lexical": {"some": hits("a", "c")}, "dense": {"some": hits("c")}})
    (told,) = run(index, tested, "substring", "bm25", "dense").warnings
    assert told == "substring alone beats bm25 on nDCG@10: 1.0000 > 0.6309 (p = 1.0000)"


def test_intervals_tokens_and_what_was_asked_are_kept() -> None:
    tested = collection(queries={"q1": "one", "q2": "two", "q3": "far"}, unanswerable=frozenset({"q3"}))
    ranked = {"one": hits("a"), "two": hits("c", "b"), "far": hits("c")}
    evaluation = evaluate(
        tested,
        index=ScriptedIndex({"lexical": ranked}),  # type: ignore[arg-type]
        pipelines=("bm25",),
        tags={"q2": ("table",), "elsewhere": ("x",)},
    )
    (row,) = evaluation.pipelines
    assert row.per_query["nDCG@10"] == {"q1": 1.0, "q2": pytest.approx(0.6309, abs=1e-4)}
    assert (row.interval.low, row.interval.high) == (pytest.approx(0.6309, abs=1e-4), 1.0)
    assert row.interval.mean == row.measures["nDCG@10"]
    assert row.tokens == 3  # 8 characters are 3 tokens at most: the median of 3, 6 and 3
    assert (evaluation.index_version, evaluation.fingerprint) == (7, {"embedder": "scripted"})
    assert [(one.query_id, one.text, one.grades, one.tags) for one in evaluation.questions] == [
        ("q1", "one", {"a": 1}, ()),
        ("q2", "two", {"b": 1}, ("table",)),
        ("q3", "far", None, ()),
    ]


def test_the_main_pipeline_is_the_default_of_a_search_or_the_last() -> None:
    index = ScriptedIndex({name: {"one": hits("a"), "two": hits("b")} for name in ("lexical", "blend", "rrf")})
    assert main_pipeline(run(index, collection(), "bm25", "blend", "rrf").pipelines).name == "blend"
    assert main_pipeline(run(index, collection(), "rrf", "bm25").pipelines).name == "bm25"


class Constant:
    """An embedder to which everything is the same."""

    name = "constant"
    dims = 4

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.ones((len(texts), self.dims), dtype=np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        return np.ones(self.dims, dtype=np.float32)


@pytest.mark.parametrize("texts", [["the same word"] * 8, [f"word {letter * 3}" for letter in "abcdefgh"]])
def test_a_scorer_that_scores_all_alike_does_as_well_as_chance(texts: list[str]) -> None:
    """Each document is relevant to one of the queries: an order that does not know them has a mean RR of H(8) / 8."""
    documents = tuple(Document(id=f"d{number}", text=text) for number, text in enumerate(texts))
    tested = collection(
        queries={f"q{number}": "word" for number in range(8)},
        qrels={f"q{number}": {f"d{number}": 1} for number in range(8)},
        documents=documents,
    )
    chance = sum(1 / rank for rank in range(1, 9)) / 8
    for row in evaluate(tested, embedder=Constant()).pipelines:
        assert row.measures["RR@10"] == pytest.approx(chance), row.name
        assert row.measures["R@10"] == 1.0


def test_a_search_that_ran_degraded_is_told() -> None:
    lost = Degraded(leg="dense", why="the embedder is away", fix="start it")
    index = ScriptedIndex({"blend": {"one": Hits(hits=hits("a").hits, degraded=(lost,)), "two": hits("b")}})
    (warning,) = run(index, collection(), "blend").warnings
    assert "blend ran degraded on 1 query (q1)" in warning
    assert "the embedder is away" in warning


def test_one_query_that_fails_counts_zero_and_is_told() -> None:
    evaluation = run(ScriptedIndex({"dense": {"one": hits("a")}}), collection(), "dense")
    assert evaluation.pipelines[0].measures["nDCG@10"] == 0.5
    assert evaluation.warnings == (
        "dense returned nothing for 1 query (q2), counted 0 in the means",
        "dense failed on 1 query (q2): the query could not be embedded: scripted",
    )


def test_a_pipeline_that_answers_no_query_is_an_error() -> None:
    with pytest.raises(BackendError, match="dense could not answer a single query"):
        run(ScriptedIndex({"dense": {}}), collection(), "dense")


def test_the_baseline_reads_the_documents_in_the_order_of_the_corpus() -> None:
    tested = collection(queries={"q1": "key"}, qrels={"q1": {"a": 1}})
    (row,) = run(ScriptedIndex({}), tested, "substring").pipelines
    assert row.details["q1"].ranking == ("c", "a", "b")


def test_labels_of_documents_that_the_index_lacks_are_refused() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("a"), "two": hits("b")}})
    with pytest.raises(UsageError, match="'a\\.md'"):
        run(index, collection(qrels={"q1": {"a.md": 1}}), "bm25")


def test_unknown_pipelines_and_two_sources_of_vectors_are_refused() -> None:
    with pytest.raises(UsageError, match="'splade'"):
        run(ScriptedIndex({}), collection(), "splade")
    with pytest.raises(UsageError, match="no pipeline"):
        run(ScriptedIndex({}), collection())
    with pytest.raises(UsageError, match="embedder already"):
        evaluate(collection(), embedder="static", index=ScriptedIndex({}))  # type: ignore[arg-type]


def test_progress_is_told_after_each_query() -> None:
    index = ScriptedIndex({"lexical": {"one": hits("a"), "two": hits("b")}})
    told: list[tuple[str, int, int]] = []
    evaluate(
        collection(),
        index=index,  # type: ignore[arg-type]
        pipelines=("bm25",),
        progress=lambda name, done, total: told.append((name, done, total)),
    )
    assert told == [("bm25", 1, 2), ("bm25", 2, 2)]


@pytest.mark.parametrize(("percent", "expected"), [(50, 5.0), (95, 10.0), (90, 9.0), (0, 1.0), (100, 10.0)])
def test_a_percentile_is_one_of_the_values(percent: float, expected: float) -> None:
    assert percentile([float(number) for number in range(1, 11)], percent) == expected


TEXTS = {
    "keys.md": "# Keys\n\nRotate an API key in the console every ninety days.",
    "backup.md": "# Backups\n\nA snapshot is kept for a month and encrypted at rest.",
    "refund.md": "# Refunds\n\nTickets are refunded until the day before the visit.",
}
QUERIES = {"q1": "how do I rotate a key?", "q2": "how long is a snapshot kept?", "q3": "refunded tickets"}
QRELS = "query-id\tcorpus-id\tscore\nq1\tkeys.md\t1\nq2\tbackup.md\t1\nq3\trefund.md\t1\n"


@pytest.fixture(params=["corpus.jsonl", "docs", "."])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same collection in each layout."""
    if request.param == "corpus.jsonl":
        rows = [json.dumps({"_id": id_, "text": text}) for id_, text in TEXTS.items()]
        (tmp_path / "corpus.jsonl").write_text("\n".join(rows))
    else:
        (tmp_path / request.param).mkdir(exist_ok=True)
        for id_, text in TEXTS.items():
            (tmp_path / request.param / id_).write_text(text)
    queries = [json.dumps({"_id": id_, "text": text}) for id_, text in QUERIES.items()]
    (tmp_path / "queries.jsonl").write_text("\n".join(queries))
    (tmp_path / "qrels.tsv").write_text(QRELS)
    return tmp_path


def test_every_pipeline_runs_on_a_real_index(folder: Path) -> None:
    evaluation = evaluate(read_collection(folder))
    assert evaluation.documents == 3  # neither queries.jsonl nor qrels.tsv is one
    assert tuple(row.name for row in evaluation.pipelines) == PIPELINES
    assert evaluation.embedder
    for row in evaluation.pipelines:
        assert row.measures["R@100"] == 1.0, row.name
    assert {row.name: row.no_match for row in evaluation.pipelines if row.name == "bm25"} == {"bm25": 0}


@pytest.mark.promise("B37")
@pytest.mark.parametrize("options", [{"mode": "substring"}, {"fusion": "substring"}])
def test_no_search_can_choose_the_baseline(options: dict[str, Any]) -> None:
    with Index.open(":memory:") as index:
        index.add([Document(id="a", text="some key")])
        with pytest.raises(UsageError):
            index.search("key", **options)


def test_an_index_that_holds_the_collection_may_be_given() -> None:
    tested = collection(documents=tuple(Document(id=id_, text=text) for id_, text in TEXTS.items()))
    tested = Collection(name="t", queries=QUERIES, qrels={"q1": {"keys.md": 1}}, documents=tested.documents)
    with Index.open(":memory:") as index:
        index.add(tested.documents)
        evaluation = evaluate(tested, index=index, pipelines=("bm25",))
        assert to_dict(evaluation)["documents"] == index.stats().documents == 3
