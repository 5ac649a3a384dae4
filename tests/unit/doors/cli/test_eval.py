"""`eval` with its options, and `compare`, over a real index of a tiny collection."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wellhead.doors.cli.group import cli

Run = Callable[..., Result]
TEXTS = {"keys": "rotate the signing key", "backup": "nightly backup of the vault", "limits": "too many requests"}
LABELS = (
    '{"query_id": "q1", "tags": ["exact"], "answers": [{"document_id": "keys", "grade": 1}]}\n'
    '{"query_id": "q2", "tags": ["exact", "ops"], "answers": [{"document_id": "backup", "grade": 1}]}\n'
)


def lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in a folder that holds the collection `tiny`."""
    monkeypatch.chdir(tmp_path)
    tiny = tmp_path / "tiny"
    tiny.mkdir()
    (tiny / "corpus.jsonl").write_text(lines([{"_id": id_, "text": text} for id_, text in TEXTS.items()]))
    (tiny / "queries.jsonl").write_text(lines([{"_id": "q1", "text": "signing key"}, {"_id": "q2", "text": "backup"}]))
    (tiny / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tkeys\t1\nq2\tbackup\t1\n")
    (tiny / "labels.jsonl").write_text(LABELS)
    return lambda *args: CliRunner().invoke(cli, list(args))


@pytest.fixture
def saved(run: Run, tmp_path: Path) -> Path:
    ended = run("eval", "tiny", "--save", "a.json")
    assert ended.exit_code == 0, ended.stderr
    assert "the run is kept in a.json" in ended.stderr
    assert "wellhead compare a.json OTHER" in ended.stderr
    return tmp_path / "a.json"


@pytest.mark.promise("A42")
def test_tags_and_queries_get_rows_when_asked_for(run: Run) -> None:
    plain = run("eval", "tiny")
    assert plain.exit_code == 0
    assert "by tag" not in plain.stdout
    assert "of each query" not in plain.stdout
    ended = run("eval", "tiny", "--per-tag", "--per-query")
    rows = [line.split() for line in ended.stdout.splitlines()]
    assert ["exact", "2", "0", "1.0000", "1.0000"] in rows
    assert ["ops", "1", "0", "1.0000", "1.0000"] in rows
    assert ["q1", *["1.0000"] * 6, "signing", "key"] in rows
    told = json.loads(run("eval", "tiny", "--per-tag", "--per-query", "--json").stdout)
    assert [row["tag"] for row in told["tags"]] == ["exact", "ops"]
    assert told["per_query"]["blend"]["nDCG@10"] == {"q1": 1.0, "q2": 1.0}
    assert told["pipelines"][0]["interval"]["measure"] == "nDCG@10"


def test_per_tag_without_a_tag_says_where_to_write_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tiny" / "labels.jsonl").unlink()
    ended = run("eval", "tiny", "--per-tag")
    assert ended.exit_code == 2
    assert "no labelled query has a tag" in ended.stderr
    assert "labels.jsonl" in ended.stderr


@pytest.mark.parametrize("place", ["nowhere/a.json", "tiny/qrels.tsv"])
def test_a_place_for_the_run_is_refused_before_anything_is_measured(run: Run, tmp_path: Path, place: str) -> None:
    before = {path: path.read_bytes() for path in (tmp_path / "tiny").iterdir()}
    ended = run("eval", "tiny", "--save", place)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert {path: path.read_bytes() for path in (tmp_path / "tiny").iterdir()} == before


def test_json_of_a_run_that_is_saved_is_json_alone(run: Run) -> None:
    ended = run("eval", "tiny", "--save", "b.json", "--json")
    assert json.loads(ended.stdout)["collection"] == "tiny"


def test_the_same_run_again_does_not_differ(run: Run, saved: Path) -> None:
    run("eval", "tiny", "--save", "b.json")
    ended = run("compare", "a.json", "b.json")
    assert ended.exit_code == 0, ended.stderr
    assert ended.stdout.startswith("tiny: 2 labelled queries\nA: a.json, blend;")
    assert "no difference: 2 queries, each with the same nDCG@10 in both" in ended.stdout
    told = json.loads(run("compare", "a.json", "b.json", "--json").stdout)
    assert (told["schema"], told["files"], told["told"], told["contrasts"]) == (1, ["a.json", "b.json"], False, [])
    assert {row["difference"] for row in told["rows"]} == {0.0}


def test_two_pipelines_differ_query_by_query(run: Run, saved: Path, tmp_path: Path) -> None:
    queries = [{"_id": "q1", "text": "the many of"}, {"_id": "q2", "text": "backup"}]
    (tmp_path / "tiny" / "queries.jsonl").write_text(lines(queries))
    run("eval", "tiny", "--save", "c.json")
    ended = run("compare", "c.json", "c.json", "--pipeline", "substring", "--against", "bm25", "--measure", "RR@3")
    assert ended.exit_code == 0, ended.stderr
    assert "A: c.json, substring;" in ended.stdout
    assert "q1 [exact]: RR@3" in ended.stdout
    assert "the many of" in ended.stdout
    assert (
        "q1"
        not in run("compare", "c.json", "c.json", "--pipeline", "substring", "--against", "bm25", "--show", "0").stdout
    )
    other = run("compare", "a.json", "c.json")
    assert other.exit_code == 2
    assert "different labels" in other.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--pipeline", "blnd"], "did you mean 'blend'"),
        (["--measure", "ndcg@10"], "no measure is named"),
        (["--measure", "R@1000"], "first 100"),
        (["--show", "-1"], "negative"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(run: Run, saved: Path, options: list[str], says: str) -> None:
    ended = run("compare", "a.json", "a.json", *options)
    assert ended.exit_code == 2
    assert says in ended.stderr
    assert "internal error" not in ended.stderr


def test_files_that_are_no_runs_are_usage_errors(run: Run, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_bytes(saved.read_bytes()[:-400])
    (tmp_path / "eval.json").write_text(run("eval", "tiny", "--json").stdout)
    for name in ("cut.json", "eval.json", "gone.json", "tiny"):
        ended = run("compare", "a.json", name)
        assert ended.exit_code == 2, name
        assert name in ended.stderr
        assert "internal error" not in ended.stderr


@pytest.mark.promise("A38")
def test_retrieval_is_measured_without_an_agent_or_a_model(run: Run, tmp_path: Path) -> None:
    code = """
import sys
from wellhead.doors.cli.main import main
try:
    main()
finally:
    loaded = [name for name in sys.modules if name.startswith(("wellhead.agent.", "wellhead.backends.generators."))]
    print(sorted({name.rsplit(".", 1)[1] for name in loaded}), file=sys.stderr)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, "eval", "tiny"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "nDCG@10" in ended.stdout
    # Of the agent's folder only the estimate of tokens: neither the loop nor a tool nor a generator.
    assert ended.stderr.splitlines()[-1] == "['fitting']"


@pytest.mark.promise("B34")
def test_one_command_prints_recall_reciprocal_rank_ndcg_and_what_found_nothing(run: Run) -> None:
    heads = next(line for line in run("eval", "tiny").stdout.splitlines() if line.startswith("pipeline"))
    assert [name for name in ("nothing relevant", "nDCG@10", "R@10", "RR@10") if name not in heads] == []
