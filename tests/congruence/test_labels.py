"""Labels of the sample handbook over three chunkers, after edits, and as other tools read what is exported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from click.testing import CliRunner, Result

from wellhead import Index
from wellhead.bench.documents import document_texts
from wellhead.bench.exchange import read_run, write_qrels, write_run
from wellhead.bench.labels import read_labels
from wellhead.bench.measures import measure_run
from wellhead.bench.resolve import resolve, resolve_in
from wellhead.doors.cli.group import cli

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"
SENTENCE = "Always forget the old member before adding the new one."


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the handbook that may be edited, its labels with spans."""
    shutil.copytree(HANDBOOK, tmp_path / "handbook")
    return tmp_path / "handbook"


def check(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["labels", "check", str(folder), *options], prog_name="wellhead")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("chunker", ["structure", "paragraph", "fixed"])
@pytest.mark.parametrize("name", ["labels.jsonl", "first/labels.jsonl"])
def test_no_label_is_lost_whatever_cuts_the_documents(chunker: str, name: str) -> None:
    labels = read_labels(HANDBOOK / name)
    with Index.open(":memory:", chunker=chunker) as index:
        index.sync(HANDBOOK / "docs")
        resolved = resolve_in(index, labels)
        assert len(resolved.in_place) == len(labels)
        for standing in resolved.in_place:
            assert standing.span is not None
            held = [one for one in index.passages(standing.label.document_id) if one.id in standing.passages]
            covered = {place for one in held for place in range(one.start, one.end)}
            assert set(range(*standing.span)) <= covered


def test_the_index_and_the_files_agree_on_every_place() -> None:
    labels = read_labels(HANDBOOK / "labels.jsonl")
    over_files = resolve(labels, document_texts(HANDBOOK, [label.document_id for _query, label in labels]))
    with Index.open(":memory:") as index:
        index.sync(HANDBOOK / "docs")
        over_index = resolve_in(index, labels)
    assert [one.span for one in over_files.standings] == [one.span for one in over_index.standings]


def test_a_sentence_that_is_deleted_makes_its_label_stale_and_no_other(copy: Path) -> None:
    assert check(copy).exit_code == 0
    edit(copy / "docs" / "runbooks" / "node-loss.html", SENTENCE, "")
    ended = check(copy)
    assert ended.exit_code == 2
    assert ended.stdout.splitlines() == [
        "40 queries, 35 labels: 34 in place, 0 moved, 1 stale",
        f"stale: q07, runbooks/node-loss.html, {SENTENCE!r}: the text does not hold the quote",
    ]
    assert "1 label is stale" in ended.stderr
    for name in ("q07", "q07:runbooks/node-loss.html"):
        assert check(copy, "--allow-stale", name).exit_code == 0
    assert check(copy, "--allow-stale", "q08").exit_code == 2


def test_a_document_that_is_deleted_makes_its_labels_stale(copy: Path) -> None:
    (copy / "docs" / "guides" / "backups.md").unlink()
    labels = read_labels(copy / "labels.jsonl")
    lost = [name for name, label in labels if label.document_id == "guides/backups.md"]
    told = json.loads(check(copy, "--json").stdout)
    assert [one["query_id"] for one in told["stale"]] == lost
    assert {one["note"] for one in told["stale"]} == {"the document is gone"}


def test_a_paragraph_that_is_moved_is_found_again(copy: Path) -> None:
    _write_spans(copy)
    file = copy / "docs" / "guides" / "api-keys.md"
    quote = "so nobody, our support team included, can show it to you later"
    text = file.read_text(encoding="utf-8")
    (paragraph,) = [one for one in text.split("\n\n") if quote in " ".join(one.split())]
    edit(file, paragraph + "\n\n", "")
    file.write_text(file.read_text(encoding="utf-8") + "\n" + paragraph + "\n", encoding="utf-8")
    ended = check(copy)
    assert ended.exit_code == 0
    first, *moved = ended.stdout.splitlines()
    assert first.endswith(" 0 stale")
    assert any(line.startswith(f"moved: q01, guides/api-keys.md, {quote[:57]!r}"[:40]) for line in moved)
    labels = read_labels(copy / "labels.jsonl")
    text = str(document_texts(copy, ["guides/api-keys.md"])["guides/api-keys.md"])
    found = resolve(labels, document_texts(copy, [label.document_id for _query, label in labels])).moved
    assert {one.label.document_id for one in found} == {"guides/api-keys.md"}
    assert all(one.span and text[slice(*one.span)] == one.label.quote for one in found)


def _write_spans(folder: Path) -> None:
    """Note in labels.jsonl where every quote stands now."""
    labels = read_labels(folder / "labels.jsonl")
    standings = resolve(labels, document_texts(folder, [label.document_id for _query, label in labels])).standings
    spans = {(one.query_id, one.label.place): one.span for one in standings}
    lines: list[dict[str, Any]] = []
    for query in labels.queries:
        answers = [
            {"document_id": one.document_id, "quote": one.quote, "span": spans[query.query_id, one.place], "grade": 2}
            for one in query.answers
        ]
        lines.append({"query_id": query.query_id, "query": query.query, "answers": answers})
    (folder / "labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def test_other_tools_read_the_exported_qrels_and_runs_as_we_do(tmp_path: Path) -> None:
    labels = read_labels(HANDBOOK / "labels.jsonl")
    with Index.open(":memory:") as index:
        index.sync(HANDBOOK / "docs")
        run = {
            query.query_id: [hit.passage.document_id for hit in index.search(query.query, per_document=1, cut="off")]
            for query in labels.queries
            if query.answers
        }
    write_qrels(tmp_path / "some.qrels", labels)
    write_run(tmp_path / "some.run", run)
    names = ["nDCG@10", "R@10", "RR@10"]
    theirs = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(name) for name in names],
        list(ir_measures.read_trec_qrels(str(tmp_path / "some.qrels"))),
        list(ir_measures.read_trec_run(str(tmp_path / "some.run"))),
    )
    ours = measure_run(labels.qrels, read_run(tmp_path / "some.run").run, names).values
    assert {str(measure): value for measure, value in theirs.items()} == pytest.approx(dict(ours))
