from __future__ import annotations

import json
from typing import Any

import pytest

from wellhead.errors import CorruptStore
from wellhead.records import Finding, VerifyReport


def test_ls_is_tabs_in_a_pipe_and_json_on_request(run: Any, fake: Any) -> None:
    assert run("ls").stdout == "a.md\t1\tA title\nkeys.md\t1\tA title\n"
    listed = json.loads(run("ls", "--json").stdout)
    assert listed["documents"][0] == {"id": "a.md", "passages": 1, "title": "A title"}


def test_ls_of_an_empty_index_says_so_and_exits_well(run: Any, fake: Any) -> None:
    fake.kept.clear()
    ended = run("ls")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert "wellhead index PATH --into kb" in ended.stderr


def test_show_a_document(run: Any, fake: Any, make: Any) -> None:
    out = run("show", "a.md").stdout
    head, _, text = out.partition("\n\n")
    assert "document: a.md" in " ".join(head.split())
    assert make.passage(1).id[:12] in head
    assert text == "text of a.md\n"
    assert json.loads(run("show", "a.md", "--json").stdout)["document"]["text"] == "text of a.md"


def test_show_a_passage_by_the_beginning_of_its_id(run: Any, fake: Any, make: Any) -> None:
    wanted = make.passage(2)
    out = run("show", wanted.id[:12]).stdout
    assert wanted.id in out
    assert "guides/2.md § Rotation" in out
    assert "Keys > Rotation" in out
    assert out.endswith("\n\nTurn the key.\n")
    told = json.loads(run("show", wanted.id[:12], "--json").stdout)
    assert told["passage"]["citation"] == "guides/2.md § Rotation"


def test_show_of_an_unknown_document_suggests_the_nearest(run: Any, fake: Any) -> None:
    ended = run("show", "key.md")
    assert ended.exit_code == 2
    assert "did you mean 'keys.md'" in ended.stderr


def test_rm_removes_what_is_named_and_says_so(run: Any, fake: Any) -> None:
    ended = run("rm", "a.md", "a.md")
    assert ended.exit_code == 0
    assert ended.stdout == "removed a.md\n"
    assert list(fake.kept) == ["keys.md"]
    assert fake.called("open")[1]["read_only"] is False


def test_rm_with_one_unknown_id_removes_nothing(run: Any, fake: Any) -> None:
    ended = run("rm", "a.md", "kees.md")
    assert ended.exit_code == 2
    assert "did you mean 'keys.md'" in ended.stderr
    assert len(fake.kept) == 2


def test_rm_removes_a_document_that_cannot_be_read(run: Any, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def get(document_id: str) -> None:
        raise CorruptStore(f"the text of document {document_id!r} is damaged", fix="wellhead rm a.md")

    monkeypatch.setattr(fake, "get", get)
    ended = run("rm", "a.md")
    assert (ended.exit_code, ended.stdout) == (0, "removed a.md\n")
    assert list(fake.kept) == ["keys.md"]


def test_rm_all_needs_a_yes(run: Any, fake: Any) -> None:
    refused = run("rm", "--all")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert len(fake.kept) == 2
    assert run("rm", "--all", "--yes").stdout == "removed all 2 documents\n"
    assert fake.kept == {}


@pytest.mark.parametrize("args", [(), ("a.md", "--all", "--yes")])
def test_rm_wants_ids_or_all(run: Any, fake: Any, args: tuple[str, ...]) -> None:
    assert run("rm", *args).exit_code == 2
    assert len(fake.kept) == 2


def test_stats_for_people_and_for_programs(run: Any, fake: Any) -> None:
    lines = dict(line.split(": ", 1) for line in run("stats").stdout.splitlines())
    assert lines["documents"].strip() == "2"
    assert lines["areas"].strip() == "guides=2"
    assert lines["made with embedder"].strip() == "static"
    assert json.loads(run("stats", "--json").stdout)["index_version"] == 7


def test_verify_is_ok_or_names_each_finding_with_its_mending(run: Any, fake: Any) -> None:
    assert run("verify").stdout == "checked 2 documents, 2 passages, 2 vectors: ok\n"
    finding = Finding(kind="checksum", where="a.md", why="a byte changed", fix="wellhead index docs")
    fake.verified = VerifyReport(documents=2, passages=2, vectors=2, findings=(finding,))
    ended = run("verify")
    assert ended.exit_code == 4
    assert "checksum: a.md\n  why: a byte changed\n  mend: wellhead index docs" in ended.stdout
    told = run("verify", "--json")
    assert (told.exit_code, json.loads(told.stdout)["ok"]) == (4, False)
