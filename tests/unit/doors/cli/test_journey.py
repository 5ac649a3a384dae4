"""From a folder to an answer with the real index behind the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wellhead.doors.cli.group import cli

Run = Callable[..., Result]

KEYS = """---
title: Keys
product: vault
---
# Keys

Some words about keys in general.

## Rotation

To rotate a signing key, call `rotateSigningKey` and wait for the old key to expire after 30 days.
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for name in ("WELLHEAD_INDEX", "WELLHEAD_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return lambda *args: CliRunner().invoke(cli, list(args))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    files = {
        "guides/keys.md": KEYS,
        "guides/backup.md": "# Backups\n\nA backup of the vault is written every night to cold storage.\n",
        "api/errors.md": "# Errors\n\nThe server answers 429 when a client sends too many requests.\n",
    }
    for name, text in files.items():
        file = tmp_path / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path / "docs"


@pytest.fixture
def indexed(run: Run, docs: Path) -> Path:
    assert run("index", "docs").exit_code == 0
    return docs


def test_index_search_edit_delete_and_search_again(run: Run, docs: Path) -> None:
    first = run("index", "docs")
    assert first.exit_code == 0
    assert first.stdout.startswith("read 3 documents: 3 added, 0 updated, 0 unchanged; 0 removed")
    assert "wellhead search" in first.stderr
    found = run("search", "rotateSigningKey")
    assert found.exit_code == 0
    assert re.match(r"1\. \d\.\d{3}  .*guides/keys\.md § Rotation  [0-9a-f]{12}(  \[\w+\])?\n", found.stdout)

    (docs / "guides/backup.md").write_text("# Backups\n\nThe zeppelin carries the tapes.\n", encoding="utf-8")
    (docs / "guides/keys.md").unlink()
    second = run("index", "docs")
    assert second.stdout.startswith("read 2 documents: 0 added, 1 updated, 1 unchanged; 1 removed")
    assert "backup.md" in run("search", "zeppelin tapes").stdout.splitlines()[0]
    assert "keys.md" not in run("search", "rotateSigningKey", "--cut", "off").stdout


def test_a_dry_run_leaves_no_folder_and_says_what_would_be(run: Run, docs: Path, tmp_path: Path) -> None:
    ended = run("index", "docs", "--dry-run")
    assert ended.exit_code == 0
    assert ended.stdout.startswith("would read 3 documents: 3 added")
    assert not (tmp_path / "kb").exists()


def test_indexing_the_folder_that_holds_the_index_leaves_the_index_out(run: Run, docs: Path) -> None:
    assert run("index", ".").exit_code == 0
    again = run("index", ".")
    assert again.stdout.startswith("read 3 documents: 0 added, 0 updated, 3 unchanged; 0 removed")


def test_a_filter_reaches_the_metadata(run: Run, indexed: Path) -> None:
    told = json.loads(run("search", "vault", "--filter", "product=vault", "--cut", "off", "--json").stdout)
    assert {hit["passage"]["document_id"] for hit in told["hits"]} == {"guides/keys.md"}
    told = json.loads(run("search", "vault", "--filter", 'area={"$in": ["api"]}', "--cut", "off", "--json").stdout)
    assert {hit["passage"]["document_id"] for hit in told["hits"]} == {"api/errors.md"}


def test_a_wrong_filter_operator_is_the_callers_fault(run: Run, indexed: Path) -> None:
    ended = run("search", "vault", "--filter", 'area={"$regex": "a"}')
    assert ended.exit_code == 2
    assert "$regex" in ended.stderr


def test_the_short_id_of_a_hit_opens_it_and_explains_it(run: Run, indexed: Path) -> None:
    short = re.findall(r"  ([0-9a-f]{12})\b", run("search", "rotateSigningKey").stdout)[0]
    shown = run("show", short).stdout
    assert "rotateSigningKey" in shown
    assert "guides/keys.md § Rotation" in shown
    why = run("explain", "rotate signing keys", short)
    assert why.exit_code == 0
    assert "returned: rank 1" in why.stdout
    assert "bm25" in why.stdout
    explained = run("search", "rotate signing keys", "--explain").stdout
    assert "signals: bm25" in explained
    assert "(stem; " in explained


@pytest.mark.promise("D11")
def test_an_explained_search_shows_what_was_measured_and_what_the_cut_left_out(run: Run, indexed: Path) -> None:
    ended = run("search", "rotate the signing key", "--threshold", "0.4", "--explain", "-k", "3")
    told = json.loads(run("search", "rotate the signing key", "--threshold", "0.4", "-k", "3", "--json").stdout)
    assert told["hits"]
    assert told["near_misses"]
    for hit in told["hits"]:
        assert hit["verdict"] == "pass"
        assert hit["signals"]["cosine"] >= 0.4
        assert f"cosine {hit['signals']['cosine']:.3f}" in ended.stdout
    for miss in told["near_misses"]:
        line = next(line for line in ended.stderr.splitlines() if miss["passage"]["id"][:12] in line)
        assert "[below]" in line
        assert f"cosine {miss['signals']['cosine']:.3f}" in line


@pytest.mark.promise("D24")
def test_a_second_run_embeds_nothing_and_an_added_file_is_found(run: Run, indexed: Path) -> None:
    report = json.loads(run("index", "docs", "--json").stdout)["reports"][0]
    assert (report["unchanged"], report["embedded"], report["passages"]) == (3, 0, 0)
    (indexed / "new.md").write_text("# Walrus\n\nThe walrus keeps the ledger.\n", encoding="utf-8")
    assert json.loads(run("index", "docs", "--json").stdout)["reports"][0]["added"] == 1
    assert run("search", "walrus ledger", "--cut", "off").stdout.splitlines()[0].startswith("1. ")
    assert "new.md" in run("search", "walrus ledger", "--cut", "off").stdout.splitlines()[0]


def test_show_ls_rm_stats_verify(run: Run, indexed: Path) -> None:
    assert [line.split("\t")[0] for line in run("ls").stdout.splitlines()] == [
        "api/errors.md",
        "guides/backup.md",
        "guides/keys.md",
    ]
    assert "too many requests" in run("show", "api/errors.md").stdout
    assert "did you mean 'api/errors.md'" in run("rm", "api/error.md").stderr
    assert run("rm", "api/errors.md").exit_code == 0
    assert json.loads(run("stats", "--json").stdout)["documents"] == 2
    verified = run("verify")
    assert verified.exit_code == 0
    assert verified.stdout.startswith("checked 2 documents, ")
    assert run("rm", "--all", "--yes").exit_code == 0
    assert run("ls").stdout == ""
    assert run("search", "anything").exit_code == 3


def test_an_unreadable_file_makes_the_ingest_partial_and_the_rest_searchable(run: Run, docs: Path) -> None:
    (docs / "data.jsonl").write_text('{"a": 1}\n{broken\n', encoding="utf-8")
    ended = run("index", "docs")
    assert ended.exit_code == 8
    assert "refused data.jsonl" in ended.stdout
    assert run("search", "rotateSigningKey").exit_code == 0


def test_scopes_do_not_see_one_another(run: Run, docs: Path) -> None:
    assert run("index", "docs/guides", "--scope", "tenant=acme").exit_code == 0
    assert run("index", "docs/api", "--scope", "tenant=zeta").exit_code == 0
    mine = json.loads(run("search", "server", "--scope", "tenant=acme", "--cut", "off", "--json").stdout)
    assert {hit["passage"]["document_id"] for hit in mine["hits"]} <= {"keys.md", "backup.md"}
    assert mine["hits"]
    unscoped = run("search", "server")
    assert unscoped.exit_code == 2
    assert unscoped.stderr.endswith("  mend: add --scope tenant=...\n")


@pytest.mark.parametrize("args", [("search", "  "), ("search", "x", "-k", "0"), ("search", "x", "-k", "101")])
def test_what_the_index_refuses_is_a_usage_error(run: Run, indexed: Path, args: tuple[str, ...]) -> None:
    ended = run(*args)
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error: ")


@pytest.mark.parametrize("command", ["search x", "explain x abcdef", "show x", "ls", "rm x", "stats", "verify"])
def test_a_missing_index_is_not_made_but_the_command_for_it_is_suggested(
    run: Run, tmp_path: Path, command: str
) -> None:
    ended = run(*command.split(), "--index", "nowhere")
    assert ended.exit_code == 2
    assert re.search(r"wellhead index \w+ --into nowhere", ended.stderr)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_is_no_index_is_refused_and_left_alone(run: Run, docs: Path) -> None:
    before = sorted(docs.rglob("*"))
    ended = run("search", "x", "--index", "docs")
    assert ended.exit_code != 0
    assert "internal error" not in ended.stderr
    assert sorted(docs.rglob("*")) == before


def test_unknown_embedder_and_chunker_are_configuration_errors(run: Run, docs: Path) -> None:
    for option in ("--embedder", "--chunker"):
        ended = run("index", "docs", option, "statik")
        assert ended.exit_code == 5, ended.stderr
        assert "statik" in ended.stderr


@pytest.mark.promise("B37")
def test_the_old_scorer_is_measured_and_can_not_be_searched_with(run: Run, indexed: Path, tmp_path: Path) -> None:
    names = [row["name"] for row in json.loads(run("eval", _collection(tmp_path), "--json").stdout)["pipelines"]]
    assert names[0] == "substring"
    assert run("search", "key", "--mode", "substring").exit_code == 2
    assert run("search", "key", "--fusion", "substring").exit_code == 2


def test_eval_prints_a_row_per_pipeline(run: Run, tmp_path: Path) -> None:
    _collection(tmp_path)
    told = json.loads(run("eval", "tiny", "--json").stdout)
    assert (told["schema"], told["collection"]) == (1, "tiny")
    rows = {row["name"]: row["measures"] for row in told["pipelines"]}
    assert list(rows) == ["substring", "bm25", "dense", "blend", "rrf", "convex"]
    assert rows["bm25"]["nDCG@10"] == 1.0
    assert rows["bm25"]["nothing_relevant"] == 0
    table = run("eval", "tiny")
    assert table.exit_code == 0
    assert "nothing relevant" in table.stdout
    assert "blend" in table.stdout
    assert run("eval", "nowhere").exit_code == 2


def _collection(folder: Path) -> str:
    """A collection of three documents and one query; its path."""
    collection = folder / "tiny"
    collection.mkdir()
    texts = {"d1": "rotate the signing key", "d2": "nightly backup of the vault", "d3": "too many requests"}
    lines = [json.dumps({"_id": name, "text": text}) for name, text in texts.items()]
    (collection / "corpus.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (collection / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "signing key"}), encoding="utf-8")
    (collection / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    return str(collection)


def test_losses_name_the_stage_and_how_to_ask_for_more(run: Run, tmp_path: Path) -> None:
    files = {
        "docs/keys.md": "rotate the signing key",
        "docs/backup.md": "nightly backup of the vault",
        "queries.jsonl": '{"_id": "q1", "text": "signing key"}\n{"_id": "q2", "text": "signing key, \\u001b[31mred"}',
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\tkeys.md\t1\nq2\tbackup.md\t2\n",
    }
    for name, text in files.items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(text, encoding="utf-8")
    assert run("index", "set/docs", "--into", "kb").exit_code == 0
    ended = run("losses", "set", "--index", "kb", "-k", "1", "--json")
    assert ended.exit_code == 0, ended.output
    plain = json.loads(ended.stdout)
    (loss,) = plain["losses"]
    assert (plain["schema"], plain["relevant"], plain["delivered"], loss["query_id"]) == (1, 2, 1, "q2")
    assert plain["by_stage"] == {loss["stage"]: 1}
    told = run("losses", "set", "--index", "kb", "-k", "1")
    assert told.exit_code == 0, told.output
    assert "set: 2 relevant documents over 2 queries, 1 among the first 1 hits, 1 lost" in told.stdout
    assert f"{loss['stage']}  q2: signing key" in told.stdout
    assert loss["passage_id"][:12] in told.stdout
    in_memory = run("losses", "set", "-k", "1")
    assert (in_memory.exit_code, loss["passage_id"][:12] in in_memory.stdout) == (0, False)
    assert "give --index DIR" in in_memory.stderr
    assert "lost" not in run("losses", "set", "-k", "2").stdout.splitlines()[1:]
    stale = '{"query_id": "q1", "answers": [{"document_id": "keys.md", "quote": "never written", "grade": 1}]}'
    (tmp_path / "set" / "labels.jsonl").write_text(stale, encoding="utf-8")
    ended = run("losses", "set", "--index", "kb")
    assert (ended.exit_code, "a label is stale: q1, keys.md, 'never written'" in ended.stderr) == (0, True)
    assert run("losses", "nowhere").exit_code == 2
    assert run("losses", "set", "-k", "0").exit_code == 2
    assert run("losses", "set", "--index", "nowhere").exit_code == 2


def test_a_dry_run_changes_no_setting_and_date_keys_can_be_taken_back(run: Run, docs: Path) -> None:
    (docs / "api" / "errors.md").write_text("---\nday: March 3, 2024\n---\n# Errors\n\nThe server answers 429.\n")
    assert run("index", "docs").exit_code == 0

    def made_with() -> str:
        return next(line for line in run("stats").stdout.splitlines() if line.startswith("made with date_keys"))

    before = run("stats").stdout
    assert run("index", "docs", "--date-key", "day", "--dry-run").exit_code == 8
    assert run("stats").stdout == before
    assert run("index", "docs", "--date-key", "day").exit_code == 8
    assert made_with().endswith("day")
    assert run("index", "docs", "--date-key", "").exit_code == 0
    assert run("stats").stdout.count("date_keys") == before.count("date_keys")


def test_a_second_scope_is_refused_and_never_wins(run: Run, docs: Path) -> None:
    assert run("index", "docs", "--scope", "tenant=acme").exit_code == 0
    assert run("search", "key", "--scope", "tenant=acme").exit_code == 0
    twice = ("--scope", "tenant=acme", "--scope", "tenant=globex")
    for words in (
        ("search", "key"),
        ("ls",),
        ("stats",),
        ("show", "guides/keys.md"),
        ("rm", "guides/keys.md"),
        ("mcp",),
    ):
        ended = run(*words, *twice)
        assert (ended.exit_code, "--scope is given twice" in ended.stderr) == (2, True), words
    stats = run("stats", "--scope", "tenant=acme").stdout
    assert "documents: " in stats
    assert "bytes on disk" not in stats
    assert "\nvectors: " not in stats
