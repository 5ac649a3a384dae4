"""The table and the JSON of an evaluation."""

from __future__ import annotations

import io
import json
import re

import pytest

from wellhead.bench.evaluate import MEASURES, NOTHING, Evaluation, PipelineScores
from wellhead.bench.questions import Question
from wellhead.bench.report import per_query_text, per_tag_text, show, to_dict, to_text
from wellhead.bench.significance import Interval


def scores(name: str, **changes: object) -> PipelineScores:
    plain: dict[str, object] = {
        "name": name,
        "measures": {"nDCG@10": 0.71234, "R@10": 0.8, "R@100": 0.95, "RR@10": 0.7},
        "interval": Interval(mean=0.71234, low=0.6, high=0.8004),
        "per_query": {},
        "nothing_relevant": ("q1", "q2"),
        "returned_nothing": (),
        "p50_ms": 1.234,
        "p95_ms": 12.5,
        "tokens": 812,
        "no_match": 3,
        "unanswerable_with_hits": None,
        "details": {},
    }
    return PipelineScores(**{**plain, **changes})  # type: ignore[arg-type]


def evaluation(**changes: object) -> Evaluation:
    plain: dict[str, object] = {
        "collection": "tiny",
        "documents": 30,
        "passages": 70,
        "queries": 20,
        "unlabelled": (),
        "unanswerable": 0,
        "embedder": "static",
        "fingerprint": {"embedder": "static"},
        "index_version": 1,
        "questions": (),
        "pipelines": (scores("substring", no_match=None), scores("bm25")),
        "warnings": ("bm25 alone beats blend on nDCG@10: 0.7123 > 0.7000",),
    }
    return Evaluation(**{**plain, **changes})  # type: ignore[arg-type]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_json_has_exactly_its_schema() -> None:
    plain = to_dict(evaluation())
    assert json.loads(json.dumps(plain)) == {
        "schema": 1,
        "collection": "tiny",
        "documents": 30,
        "passages": 70,
        "queries": 20,
        "embedder": "static",
        "pipelines": [
            {
                "name": name,
                "measures": {"nDCG@10": 0.71234, "R@10": 0.8, "R@100": 0.95, "RR@10": 0.7, "nothing_relevant": 2},
                "interval": {"measure": "nDCG@10", "level": 0.95, "low": 0.6, "high": 0.8004},
                "p50_ms": 1.234,
                "p95_ms": 12.5,
                "tokens": 812,
                "no_match": no_match,
            }
            for name, no_match in (("substring", None), ("bm25", 3))
        ],
        "warnings": ["bm25 alone beats blend on nDCG@10: 0.7123 > 0.7000"],
    }


@pytest.mark.promise("B34")
@pytest.mark.promise("B36")
def test_queries_that_got_nothing_useful_are_the_first_column() -> None:
    lines = to_text(evaluation()).splitlines()
    (heading,) = [line for line in lines if line.startswith("pipeline")]
    assert heading.split() == [
        "pipeline", "nothing", "relevant", "nDCG@10", "95", "%", "R@10", "R@100", "RR@10", "p50", "ms", "p95", "ms",
        "tokens", "no_match",
    ]  # fmt: skip
    (row,) = [line for line in lines if line.startswith("bm25 ")]
    assert row.split() == [
        "bm25", "2", "0.7123", "0.600-0.800", "0.8000", "0.9500", "0.7000", "1.23", "12.50", "812", "3",
    ]  # fmt: skip


def test_columns_are_aligned() -> None:
    lines = to_text(evaluation()).splitlines()
    heading = next(line for line in lines if line.startswith("pipeline"))
    row = next(line for line in lines if line.startswith("substring "))
    assert row.index("0.7123") + len("0.7123") == heading.index("nDCG@10") + len("nDCG@10")
    assert row.endswith("-")


def test_the_table_says_what_was_measured_and_how() -> None:
    text = to_text(evaluation())
    assert "tiny: 30 documents, 70 passages, 20 labelled queries; embedder static" in text
    assert "judged by each document's best passage (per_document=1), rankings with cut off" in text
    assert "to rank 100" in text
    assert "substring: a poor scorer, for scale" in text
    assert text.endswith("warning: bm25 alone beats blend on nDCG@10: 0.7123 > 0.7000")


def test_unanswerable_queries_get_a_column_where_there_are_any() -> None:
    assert "unanswerable" not in to_text(evaluation())
    text = to_text(evaluation(unanswerable=8, pipelines=(scores("bm25", unanswerable_with_hits=2),)))
    assert "20 labelled queries, 8 unanswerable" in text
    heading, row = [line for line in text.splitlines() if line.startswith(("pipeline", "bm25"))]
    assert heading.endswith("unanswerable with hits")
    assert row.endswith(" 2")
    assert "substring:" not in text
    assert "unanswerable with hits: " in text


def test_one_of_a_thing_is_not_several() -> None:
    text = to_text(evaluation(documents=1, passages=1, queries=1))
    assert "tiny: 1 document, 1 passage, 1 labelled query; embedder" in text


def test_a_file_gets_plain_text() -> None:
    stream = io.StringIO()
    show(evaluation(), stream)
    assert stream.getvalue() == to_text(evaluation()) + "\n"


def test_a_terminal_gets_the_same_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    show(evaluation(), stream)
    assert "\x1b[" in stream.getvalue()
    shown = [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()]
    plain = [line.split() for line in to_text(evaluation()).splitlines()]
    assert shown == plain


def asked(query_id: str, *tags: str, unanswerable: bool = False) -> Question:
    grades = None if unanswerable else {"a": 1}
    return Question(query_id=query_id, text=f"text\nof {query_id}", grades=grades, tags=tags)


def of_each_query(*values: float) -> dict[str, dict[str, float]]:
    """q1, q2 and so on with these values of every measure; 0.0 means that nothing relevant came back."""
    names = [f"q{number}" for number in range(1, len(values) + 1)]
    plain = {measure: dict(zip(names, values, strict=True)) for measure in MEASURES}
    return {**plain, NOTHING: {name: float(not one) for name, one in plain["nDCG@10"].items()}}


def with_tags() -> Evaluation:
    questions = (asked("q1", "table"), asked("q2", "table", "code"), asked("q3"), asked("q4", "far", unanswerable=True))
    rows = (
        scores("bm25", per_query=of_each_query(1.0, 1.0, 1.0)),
        scores("blend", per_query=of_each_query(1.0, 0.0, 0.5)),
        scores("rrf", per_query=of_each_query(0.0, 0.0, 0.0)),
    )
    return evaluation(questions=questions, pipelines=rows)


@pytest.mark.promise("A42")
def test_each_tag_has_a_row_of_the_main_pipeline() -> None:
    lines = [line.split() for line in per_tag_text(with_tags()).splitlines()]
    assert lines == [
        ["blend,", "by", "tag"],
        [],
        ["tag", "queries", "nothing", "relevant", "nDCG@10", "R@10"],
        ["code", "1", "1", "0.0000", "0.0000"],
        ["table", "2", "1", "0.5000", "0.5000"],
        ["(no", "tag)", "1", "0", "0.5000", "0.5000"],
    ]
    assert to_dict(with_tags(), per_tag=True)["tags"] == [
        {"tag": "code", "queries": 1, "nothing_relevant": 1, "measures": {"nDCG@10": 0.0, "R@10": 0.0}},
        {"tag": "table", "queries": 2, "nothing_relevant": 1, "measures": {"nDCG@10": 0.5, "R@10": 0.5}},
        {"tag": "", "queries": 1, "nothing_relevant": 0, "measures": {"nDCG@10": 0.5, "R@10": 0.5}},
    ]


def test_each_query_has_a_row_the_worst_of_the_main_pipeline_first() -> None:
    lines = per_query_text(with_tags()).splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["query", "bm25", "blend", "rrf", "text"],
        ["q2", "1.0000", "0.0000", "0.0000", "text", "of", "q2"],
        ["q3", "1.0000", "0.5000", "0.0000", "text", "of", "q3"],
        ["q1", "1.0000", "1.0000", "0.0000", "text", "of", "q1"],
    ]
    plain = to_dict(with_tags(), per_query=True)["per_query"]
    assert isinstance(plain, dict)
    assert plain["blend"]["nDCG@10"] == {"q1": 1.0, "q2": 0.0, "q3": 0.5}


def test_what_is_not_asked_for_is_not_printed() -> None:
    assert {"tags", "per_query"} & to_dict(with_tags()).keys() == set()
