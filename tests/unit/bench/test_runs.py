"""A saved run comes back as it was, and nothing that was changed on the way is taken for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs_by_hand import saved_run
from wellhead.bench.collection import Collection
from wellhead.bench.evaluate import Evaluation, evaluate
from wellhead.bench.pipelines import PIPELINES
from wellhead.bench.runs import as_run, check_place, load_run, save_run
from wellhead.errors import UsageError
from wellhead.records import Document

TEXTS = {
    "keys": "Rotate a key once a year.",
    "backup": "A snapshot is kept for a month.",
    "fees": "Refunds take a day.",
}


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    collection = Collection(
        name="tiny",
        queries={"q1": "how do I rotate a key?", "q2": "how long is a snapshot kept?", "u": "vaccinations for Peru"},
        qrels={"q1": {"keys": 2, "fees": 0}, "q2": {"backup": 1}},
        documents=tuple(Document(id=id_, text=text) for id_, text in TEXTS.items()),
        unanswerable=frozenset({"u"}),
    )
    return evaluate(collection, tags={"q1": ("how-to",)}, terms=True)


@pytest.fixture
def file(tmp_path: Path, evaluation: Evaluation) -> Path:
    save_run(tmp_path / "run.json", evaluation)
    return tmp_path / "run.json"


def test_what_is_read_is_what_was_saved(file: Path, evaluation: Evaluation) -> None:
    run = load_run(file)
    assert run == as_run(evaluation)
    assert [pipeline.name for pipeline in run.pipelines] == [*PIPELINES]
    assert [(one.query_id, one.tags) for one in run.questions] == [("q1", ("how-to",)), ("q2", ()), ("u", ())]
    assert run.fingerprint["embedder"] == "static"
    assert run.index_version == evaluation.index_version
    blend = next(pipeline for pipeline in run.pipelines if pipeline.name == "blend")
    assert blend.options == {"mode": "hybrid", "fusion": "blend"}
    first = blend.queries["q1"].detail.head[0]
    assert (first.document_id, first.terms) == ("keys", ("key", "rotate"))
    assert first.signals["bm25"] > 0
    assert blend.queries["q1"].measures["nDCG@10"] == 1.0
    assert blend.queries["u"].measures == {}
    assert blend.queries["u"].detail.outcome == "no_match"


def test_saving_again_overwrites_and_leaves_nothing_beside(file: Path, evaluation: Evaluation) -> None:
    before = file.read_bytes()
    save_run(file, evaluation)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["run.json"]


def test_labels_are_not_overwritten_by_a_run(tmp_path: Path, evaluation: Evaluation) -> None:
    for name, text in (("qrels.tsv", "q1\td1\t1\n"), ("other.json", '{"schema": 1}'), ("empty", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match="overwrite"):
            save_run(tmp_path / name, evaluation)
        assert (tmp_path / name).read_text() == text


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, evaluation: Evaluation) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        check_place(tmp_path / "nowhere" / "run.json")
    with pytest.raises(UsageError, match="overwrite"):
        check_place(tmp_path)
    (tmp_path / "taken").write_text("")
    for name in ("x" * 300, "a\0b"):
        with pytest.raises(UsageError, match="cannot save"):
            save_run(tmp_path / name, evaluation)
        with pytest.raises(UsageError, match="cannot read"):
            load_run(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"schema": 1, "collection": "x", "pipelines": []}',
        '{"kind": "wellhead run"}',
        "\x00\xff",
    ],
)
def test_a_file_that_is_no_run_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    with pytest.raises(UsageError) as caught:
        load_run(tmp_path / "x.json")
    assert caught.value.where.endswith("x.json")
    assert caught.value.why


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.json", tmp_path):
        with pytest.raises(UsageError, match="cannot read the run"):
            load_run(path)


def test_another_kind_and_a_later_schema_are_named(file: Path) -> None:
    plain = json.loads(file.read_bytes())
    file.write_text(json.dumps({**plain, "kind": "another"}))
    with pytest.raises(UsageError, match="'another'"):
        load_run(file)
    file.write_text(json.dumps({**plain, "schema": 2}))
    with pytest.raises(UsageError, match="schema 2"):
        load_run(file)


Change = Callable[[dict[str, Any]], object]
CHANGES: dict[str, Change] = {
    "a mean": lambda run: run["pipelines"][0]["measures"].update({"R@10": 0.123}),
    "a measure of a query": lambda run: run["pipelines"][0]["queries"]["q1"]["measures"].update({"R@10": 0.123}),
    "a ranking": lambda run: run["pipelines"][0]["queries"]["q1"]["detail"].update({"ranking": ["fees"]}),
    "a grade": lambda run: run["questions"][0]["grades"].update({"keys": 1}),
    "a text": lambda run: run["questions"][0].update({"text": "another"}),
    "a query too few": lambda run: run["pipelines"][0]["queries"].pop("q2"),
    "a query twice": lambda run: run["questions"].append(run["questions"][0]),
    "a pipeline twice": lambda run: run["pipelines"].append(run["pipelines"][0]),
    "no pipeline": lambda run: run["pipelines"].clear(),
    "no detail": lambda run: run["pipelines"][0]["queries"]["q1"].pop("detail"),
    "an outcome": lambda run: run["pipelines"][1]["queries"]["q1"]["detail"].update({"outcome": "perhaps"}),
    "a time": lambda run: run["pipelines"][1]["queries"]["q1"]["detail"].update({"ms": "fast"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_run_that_contradicts_itself_is_damaged(file: Path, change: Change) -> None:
    plain = json.loads(file.read_bytes())
    change(plain)
    file.write_text(json.dumps(plain))
    with pytest.raises(UsageError, match="damaged"):
        load_run(file)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_flipped_bit_or_a_lost_tail_is_refused_or_changes_no_measure(
    tmp_path: Path, evaluation: Evaluation, place: float, bit: int
) -> None:
    whole = msgspec.json.encode(as_run(evaluation))
    at = int(place * len(whole))
    (tmp_path / "cut.json").write_bytes(whole[:at])
    with pytest.raises(UsageError):
        load_run(tmp_path / "cut.json")
    flipped = bytearray(whole)
    flipped[at] ^= 1 << bit
    (tmp_path / "flipped.json").write_bytes(flipped)
    try:
        read = load_run(tmp_path / "flipped.json")
    except UsageError:
        return
    means = [pipeline.measures for pipeline in as_run(evaluation).pipelines]
    for was, now in zip(means, read.pipelines, strict=True):
        assert now.measures == pytest.approx(was, abs=1e-8)


def test_a_run_written_by_hand_is_taken_when_it_is_consistent(tmp_path: Path) -> None:
    run = saved_run({"q1": ["b", "a"], "q2": [], "q3": ["c"], "u": ["a"]})
    (tmp_path / "hand.json").write_bytes(msgspec.json.encode(run))
    assert load_run(tmp_path / "hand.json") == run
