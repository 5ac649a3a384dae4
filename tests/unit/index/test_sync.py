"""`sync`: the index equals the folder, at the cost of what changed, and says of everything what became of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index, SyncReport, UsageError
from wellhead.errors import IngestStopped, StaleIndex
from wellhead.ingest.chunk import Slice
from wellhead.testing.fakes import HashEmbedder

GUIDE = "# Keys\n\nRotate keys monthly.\n\n# Logs\n\nLogs are kept a year.\n\n# Backups\n\nBackups run at night.\n"


class Spy(HashEmbedder):
    """Remembers every text that it was asked to embed; fails at the text that holds `poison`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.poison: str | None = None

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.poison is not None and any(self.poison in text for text in texts):
            raise TimeoutError(self.poison)
        self.asked += texts
        return super().embed_documents(texts)


class Windowed(HashEmbedder):
    """Reads ten words at most."""

    window: int | None = 10

    def token_starts(self, text: str) -> Sequence[int]:
        return [n for n in range(len(text)) if not text[n].isspace() and (n == 0 or text[n - 1].isspace())]


@pytest.fixture
def spy() -> Spy:
    return Spy()


@pytest.fixture
def index(spy: Spy, kb: Path) -> Iterator[Index]:
    with Index.open(kb, embedder=spy, languages=["en"]) as opened:
        yield opened


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    write(folder, "guide.md", GUIDE)
    write(folder, "team/oncall.txt", "Call the one on duty.")
    write(folder, "team/rota.txt", "The rota is by week.")
    return folder


def whole(document: Document) -> list[Slice]:
    """A chunker that does not chunk."""
    return [Slice(start=0, end=len(document.text))]


def write(folder: Path, name: str, text: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def numbers(report: SyncReport) -> SyncReport:
    """A report without its time and without the word that it was dry."""
    return msgspec.structs.replace(report, seconds=0.0, dry_run=False)


def ids(index: Index) -> list[str]:
    return [one.id for one in index.documents()]


def found(index: Index, word: str, **filters: object) -> list[str]:
    hits = index.search(word, mode="lexical", filters=filters)
    return list(dict.fromkeys(hit.passage.document_id for hit in hits))


# -- the cost of a change ---------------------------------------------------------------------------------------------


@pytest.mark.promise("D24")
def test_an_unchanged_folder_writes_and_embeds_nothing(index: Index, docs: Path, spy: Spy) -> None:
    first = index.sync(docs)
    assert (first.read, first.added, first.complete) == (3, 3, True)
    version, spy.asked = index.stats().index_version, []
    again = index.sync(docs)
    assert (again.read, again.unchanged, again.passages, again.embedded) == (3, 3, 0, 0)
    assert spy.asked == []
    assert index.stats().index_version == version


def test_an_edit_embeds_only_the_passages_that_changed(index: Index, docs: Path, spy: Spy) -> None:
    index.sync(docs)
    before, spy.asked = {one.id for one in index.passages("guide.md")}, []
    write(docs, "guide.md", GUIDE.replace("a year", "a decade"))
    report = index.sync(docs)
    assert (report.updated, report.unchanged, report.passages, report.embedded, report.reused) == (1, 2, 3, 1, 2)
    assert ["decade" in text for text in spy.asked] == [True]
    assert len(before & {one.id for one in index.passages("guide.md")}) == 2
    assert found(index, "decade") == ["guide.md"]
    assert found(index, "year") == []


def test_an_edit_of_the_front_matter_is_seen_by_filters(index: Index, docs: Path) -> None:
    write(docs, "guide.md", f"---\nproduct: vault\n---\n{GUIDE}")
    index.sync(docs)
    write(docs, "guide.md", f"---\nproduct: safe\n---\n{GUIDE}")
    assert index.sync(docs).embedded == 0
    assert found(index, "keys", product="vault") == []
    assert found(index, "keys", product="safe") == ["guide.md"]


@pytest.mark.promise("B48")
def test_a_removed_file_is_gone_at_once_with_its_vectors(index: Index, docs: Path) -> None:
    index.sync(docs)
    assert found(index, "duty") == ["team/oncall.txt"]
    vectors = index.stats().vectors
    (docs / "team/oncall.txt").unlink()
    assert index.sync(docs).removed == 1
    assert found(index, "duty") == []
    assert index.get("team/oncall.txt") is None
    assert index.passages("team/oncall.txt") == []
    assert index.stats().vectors == vectors - 1


def test_a_renamed_file_keeps_its_vectors(index: Index, docs: Path) -> None:
    index.sync(docs)
    (docs / "team/rota.txt").rename(docs / "team/weeks.txt")
    report = index.sync(docs)
    assert (report.added, report.removed, report.embedded, report.reused) == (1, 1, 0, 1)
    assert found(index, "rota") == ["team/weeks.txt"]


def test_without_prune_a_removed_file_stays(index: Index, docs: Path) -> None:
    index.sync(docs)
    (docs / "team/rota.txt").unlink()
    assert index.sync(docs, prune=False).removed == 0
    assert found(index, "rota") == ["team/rota.txt"]
    assert index.sync(docs).removed == 1


EMPTIED = {
    "a typo": {"include": ["*.mdd"]},
    "too much left out": {"exclude": ["*"]},
    "an empty folder": {},
}


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("kind", EMPTIED)
def test_a_folder_in_which_nothing_is_found_removes_nothing_unless_told_so(
    index: Index, docs: Path, kind: str, dry_run: bool
) -> None:
    index.add([Document(id="mine", text="A program's own.")])
    index.sync(docs)
    if kind == "an empty folder":
        shutil.rmtree(docs)
        docs.mkdir()
    options = EMPTIED[kind]
    with pytest.raises(UsageError, match=r"and 3 of the index came from here[\s\S]*prune_all=True") as caught:
        index.sync(docs, dry_run=dry_run, **options)  # type: ignore[arg-type]
    assert "prune=False" in caught.value.fix
    assert len(ids(index)) == 4
    assert index.sync(docs, prune=False, **options).removed == 0  # type: ignore[arg-type]
    report = index.sync(docs, prune_all=True, dry_run=dry_run, **options)  # type: ignore[arg-type]
    assert report.removed == 3
    assert len(ids(index)) == (4 if dry_run else 1)


def test_a_folder_in_which_nothing_was_ever_found_is_no_error(index: Index, docs: Path) -> None:
    assert index.sync(docs, include=["*.mdd"]).read == 0
    shutil.rmtree(docs / "team")
    (docs / "guide.md").write_text("{")
    (docs / "guide.md").rename(docs / "guide.json")
    index.sync(docs)
    assert index.sync(docs).complete is False


def test_files_that_are_all_refused_keep_their_documents(index: Index, docs: Path) -> None:
    only = docs.parent / "only"
    write(only, "a.json", '{"a": "first"}')
    index.sync(only)
    write(only, "a.json", '{"a": "second')
    report = index.sync(only)
    assert ([one.id for one in report.refused], report.removed) == (["a.json"], 0)
    assert ids(index) == ["a.json"]


# -- a dry run --------------------------------------------------------------------------------------------------------


def test_a_dry_run_writes_nothing_and_tells_what_the_real_one_will_do(index: Index, docs: Path, spy: Spy) -> None:
    # More than a batch, with texts that come again in a later batch.
    for n in range(150):
        write(docs, f"many/{n:03}.txt", f"the note numbered {n % 100}")
    write(docs, "bad.json", "{")
    dry = index.sync(docs, dry_run=True)
    assert (dry.dry_run, spy.asked, ids(index), index.stats().index_version) == (True, [], [], 1)
    real = index.sync(docs)
    assert (numbers(dry), real.added, real.embedded) == (numbers(real), 153, 105)
    write(docs, "guide.md", GUIDE.replace("a year", "a decade"))
    write(docs, "team/new.txt", "the note numbered 7")
    (docs / "many/001.txt").unlink()
    (docs / "many/002.txt").rename(docs / "many/renamed.txt")
    dry = index.sync(docs, dry_run=True)
    assert len(ids(index)) == 153
    assert numbers(dry) == numbers(index.sync(docs))


def test_a_dry_run_names_the_passages_that_do_not_fit_the_model(docs: Path) -> None:
    write(docs, "long.txt", "word " * 40)

    with Index.open(":memory:", embedder=Windowed(), languages=["en"], chunker=whole) as index:
        dry = index.sync(docs, dry_run=True)
        assert [one.id for one in dry.failed] == ["guide.md#0", "long.txt#0"]
        assert numbers(dry) == numbers(index.sync(docs))


# -- what cannot be read ----------------------------------------------------------------------------------------------


@pytest.mark.promise("B47")
def test_a_malformed_file_is_refused_and_the_run_goes_on(index: Index, docs: Path) -> None:
    write(docs, "aaa.json", '{"never": "closed')
    write(docs, "blank.txt", " \n\n")
    write(docs, "picture.dat", b"\x00\x01\x02\x00")
    report = index.sync(docs)
    assert [one.id for one in report.refused] == ["aaa.json"]
    assert report.refused[0].reason
    assert (report.read, report.complete) == (3, False)
    assert sum(report.skipped.values()) == 2
    assert ids(index) == ["guide.md", "team/oncall.txt", "team/rota.txt"]


def test_an_unreadable_file_keeps_its_stored_version(index: Index, docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.sync(docs)
    write(docs, "data.json", '{"a": "the first edition"}')
    index.sync(docs)
    write(docs, "data.json", '{"a": "the second')
    report = index.sync(docs)
    assert ([one.id for one in report.refused], report.removed, report.complete) == (["data.json"], 0, False)
    assert found(index, "edition") == ["data.json"]
    # A folder that cannot be listed says nothing of the files in it.

    scandir = os.scandir

    def forbidden(path: str | Path) -> object:
        if Path(path).name == "team":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    report = index.sync(docs)
    assert ([one.id for one in report.refused], report.removed) == (["team/", "data.json"], 0)
    assert found(index, "duty") == ["team/oncall.txt"]


def test_a_folder_that_vanished_is_an_error_and_nothing_is_pruned(index: Index, docs: Path) -> None:
    index.sync(docs)
    shutil.rmtree(docs)
    with pytest.raises(UsageError):
        index.sync(docs)
    assert len(ids(index)) == 3


@pytest.mark.promise("B45")
def test_a_run_that_the_embedder_stops_keeps_its_batches_and_goes_on(index: Index, docs: Path, spy: Spy) -> None:
    for n in range(200):
        write(docs, f"many/{n:03}.txt", f"the note numbered {n}")
    index.sync(docs)
    for n in range(200):
        write(docs, f"many/{n:03}.txt", f"the note renumbered {n}")
    (docs / "many/000.txt").unlink()
    spy.poison, spy.asked = "renumbered 150", []
    with pytest.raises(IngestStopped) as stopped:
        index.sync(docs)
    report = stopped.value.report
    assert report is not None
    assert report.stopped
    assert not report.complete
    assert 0 < report.updated < 150
    assert index.get("many/000.txt") is not None  # a run that did not see everything removes nothing
    assert index.verify().ok
    spy.poison = None
    again = index.sync(docs)
    assert (again.complete, again.removed, again.updated) == (True, 1, 199 - report.updated)
    assert len(spy.asked) == len(set(spy.asked)) == 199


def test_an_index_made_with_another_embedder_is_not_written_to(index: Index, docs: Path, kb: Path) -> None:
    index.sync(docs)
    index.close()
    with Index.open(kb, embedder=HashEmbedder(dims=8), languages=["en"]) as other:
        for way in (lambda: other.sync(docs), lambda: other.add([]), lambda: other.remove("guide.md")):
            with pytest.raises(StaleIndex, match="other settings"):
                way()
        assert found(other, "duty") == ["team/oncall.txt"]


# -- whose documents --------------------------------------------------------------------------------------------------


def test_two_folders_with_the_same_names_need_a_prefix(index: Index, docs: Path, tmp_path: Path) -> None:
    index.sync(docs)
    other = tmp_path / "other"
    write(other, "guide.md", "# Another\n\nThe other guide.\n")
    write(other, "own.txt", "Its own.")
    report = index.sync(other)
    assert [one.id for one in report.refused] == ["guide.md"]
    assert "prefix" in report.refused[0].reason
    assert (report.read, report.removed) == (1, 0)
    held = index.get("guide.md")
    assert held is not None
    assert held.text == GUIDE
    report = index.sync(other, prefix="other/")
    assert (report.complete, report.added, report.removed) == (True, 2, 1)
    assert ids(index) == ["guide.md", "other/guide.md", "other/own.txt", "team/oncall.txt", "team/rota.txt"]
    assert index.passages("other/guide.md")[0].uri == "other/guide.md"


def test_a_folder_does_not_touch_what_a_program_added(index: Index, docs: Path) -> None:
    index.add([Document(id="faq-7", text="Asked often."), Document(id="guide.md", text="Mine.")])
    write(docs, "kept.md", "This one stays.")
    report = index.sync(docs)
    assert [one.id for one in report.refused] == ["guide.md"]
    shutil.rmtree(docs / "team")
    assert index.sync(docs).removed == 2
    assert ids(index) == ["faq-7", "guide.md", "kept.md"]


def test_a_refused_file_is_no_sign_that_the_folder_is_there(index: Index, docs: Path) -> None:
    (docs / "scan.pdf").write_bytes(b"%PDF-1.7 nothing to read")
    index.sync(docs)
    before = ids(index)
    with pytest.raises(UsageError, match="none was removed"):
        index.sync(docs, include=["*.pdf"])
    with pytest.raises(UsageError, match="none was removed"):
        index.sync(docs, include=["*.mdd"])
    assert ids(index) == before


def test_an_index_opened_by_a_relative_path_stays_itself_when_the_program_moves(
    tmp_path: Path, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Index.open("kb") as index:
        first = index.sync(docs)
        monkeypatch.chdir("/")
        again = index.sync(docs)
    assert again.unchanged == first.added > 0
    assert not again.refused


@pytest.mark.parametrize("text", ["The rota is by week.", "Edited by a program."])
def test_a_document_that_a_program_adds_over_a_file_is_its_own_from_then_on(
    index: Index, docs: Path, text: str
) -> None:
    index.sync(docs)
    held = index.get("team/rota.txt")
    assert held is not None
    index.add([msgspec.structs.replace(held, text=text)])
    report = index.sync(docs)
    assert [(one.id, "a program" in one.reason) for one in report.refused] == [("team/rota.txt", True)]
    (docs / "team/rota.txt").unlink()
    assert index.sync(docs).removed == 0
    held = index.get("team/rota.txt")
    assert held is not None
    assert held.text == text
    # Given up by the program, it is the folder's again.
    write(docs, "team/rota.txt", "The rota is by month.")
    index.remove("team/rota.txt")
    assert index.sync(docs).added == 1


def test_a_file_of_an_indexed_folder_is_refused_with_the_way_out(index: Index, docs: Path) -> None:
    index.sync(docs)
    report = index.sync(docs / "guide.md")
    assert "index the folder 'docs' instead" in report.refused[0].reason


def test_a_moved_index_is_told_the_name_of_its_folder(index: Index, docs: Path, kb: Path, tmp_path: Path) -> None:
    index.sync(docs)
    index.close()
    (tmp_path / "deep").mkdir()
    kb.rename(tmp_path / "deep" / "kb")
    with Index.open(tmp_path / "deep" / "kb", embedder=HashEmbedder(), languages=["en"]) as moved:
        report = moved.sync(docs)
        assert {"origin='docs'" in one.reason for one in report.refused} == {True}
        assert len(report.refused) == 3
        report = moved.sync(docs, origin="docs")
        assert (report.complete, report.unchanged) == (True, 3)


@pytest.mark.promise("B41")
def test_index_and_folder_move_together(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "a place" / "elsewhere"
    write(here / "docs", "guide.md", GUIDE)
    write(here / "docs", "gone.txt", "soon gone")
    with Index.open(here / "kb", embedder=HashEmbedder(), languages=["en"]) as index:
        index.sync(here / "docs")
        passages = index.passages("guide.md")
    there.parent.mkdir()
    here.rename(there)
    (there / "docs" / "gone.txt").unlink()
    with Index.open(there / "kb", embedder=HashEmbedder(), languages=["en"]) as index:
        report = index.sync(there / "docs")
        assert (report.complete, report.unchanged, report.removed) == (True, 1, 1)
        assert index.passages("guide.md") == passages
    assert str(tmp_path).encode() not in (there / "kb" / "wellhead.sqlite").read_bytes()


def test_a_named_origin_follows_a_folder_that_moved_alone(index: Index, docs: Path) -> None:
    index.sync(docs, origin="handbook")
    moved = docs.rename(docs.parent / "moved")
    (moved / "guide.md").unlink()
    report = index.sync(moved, origin="handbook")
    assert (report.unchanged, report.removed, report.refused) == (2, 1, ())


def test_a_single_file(index: Index, docs: Path) -> None:
    assert index.sync(docs / "guide.md").added == 1
    assert ids(index) == ["guide.md"]
    write(docs, "guide.md", "# Anew\n\nAll new.\n")
    assert index.sync(docs / "guide.md").updated == 1
    assert found(index, "anew") == ["guide.md"]


def test_include_and_exclude(index: Index, docs: Path) -> None:
    index.sync(docs, include=["*.txt"], exclude=["rota.*"])
    assert ids(index) == ["team/oncall.txt"]
    report = index.sync(docs)
    assert report.added == 2
    assert index.sync(docs, exclude=["team/"]).removed == 2
    assert ids(index) == ["guide.md"]


@pytest.mark.promise("B53")
def test_the_top_level_folder_is_the_area(index: Index, docs: Path) -> None:
    write(docs, "guide.md", f"---\narea: team\n---\n{GUIDE}")
    index.sync(docs)
    assert index.stats().areas == {"": 1, "team": 2}
    assert found(index, "keys", area="team") == []
    assert found(index, "rota", area="team") == ["team/rota.txt"]


def test_the_index_inside_the_folder_is_not_indexed(docs: Path) -> None:
    with Index.open(docs / "kb", embedder=HashEmbedder(), languages=["en"]) as index:
        report = index.sync(docs)
        assert (report.read, report.skipped) == (3, {"index folder": 1})


def test_progress_is_told_after_each_batch(index: Index, docs: Path) -> None:
    told: list[tuple[int, int, str]] = []
    for n in range(100):
        write(docs, f"many/{n:03}.txt", f"the note numbered {n}")
    index.sync(docs, progress=lambda done, total, last: told.append((done, total, last)))
    assert [done for done, _, _ in told] == [0, 64, 103]
    assert {total for _, total, _ in told} == {103}
    assert told[-1][2] == "team/rota.txt"


def test_a_date_key_refuses_what_is_no_date(docs: Path, kb: Path) -> None:
    write(docs, "dated.md", "---\npublished at: 2026-01-31\n---\n# A\n\nright\n")
    write(docs, "wrong.md", "---\npublished at: soon\n---\n# A\n\nwrong\n")
    with Index.open(kb, embedder=HashEmbedder(), languages=["en"], date_keys=["published at"]) as index:
        index.sync(docs)
    with Index.open(kb, embedder=HashEmbedder()) as index:
        report = index.sync(docs)
        assert [(one.id, "soon" in one.reason) for one in report.refused] == [("wrong.md", True)]
        assert found(index, "right", **{"published at": {"$lt": "2026-02-01"}}) == ["dated.md"]


# -- what is given ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "  ", None, 5, b"docs", "x" * 5000, "a\0b", "no/such/place"])
def test_a_path_that_is_none_is_a_usage_error(index: Index, path: object) -> None:
    with pytest.raises(UsageError):
        index.sync(path)  # type: ignore[arg-type]
    assert ids(index) == []


@pytest.mark.parametrize(
    "options",
    [
        {"include": "*.md"},
        {"exclude": "*.md"},
        {"include": None},
        {"include": [5]},
        {"exclude": {"*.md"}},
        {"prefix": None},
        {"origin": ""},
        {"origin": " "},
        {"origin": 5},
    ],
)
def test_an_option_of_another_kind_is_a_usage_error(index: Index, docs: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        index.sync(docs, **options)  # type: ignore[arg-type]
    assert ids(index) == []


@pytest.mark.parametrize(
    "given",
    [Document(id="a", text="b"), None, 5, "abc", b"abc", {"id": "a"}, [{"id": "a", "text": "b"}], ["abc"], [None]],
)
def test_add_takes_documents_and_nothing_else(index: Index, given: object) -> None:
    with pytest.raises(UsageError, match="add takes an iterable of Document"):
        index.add(given)  # type: ignore[arg-type]
    assert ids(index) == []


def test_front_matter_that_does_not_parse_is_said(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "bad.md").write_text("---\ntitle: [unclosed\n---\nLaptops are lent for a week.\n")
    report = Index.open(":memory:").sync(tmp_path / "docs")
    assert report.complete
    assert [note.id for note in report.notes] == ["bad.md"]
    assert "line" in report.notes[0].reason
    assert "note bad.md: front matter not read" in str(report)


@pytest.mark.promise("B42")
def test_paragraphs_are_walked_cut_collapsed_and_embedded_once(tmp_path: Path) -> None:
    shared = "A paragraph that stands word for word in two files."
    for name in ("one", "two"):
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / f"{name}.md").write_text(f"# Head\n\n{shared}\n\nOnly in {name}, and long enough.\n")
    index = Index.open(":memory:", chunker="paragraph")
    first = index.sync(tmp_path / "docs")
    assert (first.passages, first.embedded) == (4, 3)
    assert index.stats().vectors == 3
    (hit,) = [hit for hit in index.search(shared, cut="off") if hit.text.strip() == shared]
    places = [hit.citation, *(source.citation for source in hit.also_in)]
    assert sorted(places) == ["one.md § Head", "two.md § Head"]
    again = index.sync(tmp_path / "docs")
    assert (again.unchanged, again.passages, again.embedded) == (2, 0, 0)


@pytest.mark.promise("B47")
def test_a_folder_is_left_out_by_its_name(tmp_path: Path) -> None:
    for name in ("raw", "area"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"A page of the {name} folder.")
    index = Index.open(":memory:")
    report = index.sync(tmp_path, exclude=["raw/"])
    assert ids(index) == ["area/page.md"]
    assert report.skipped == {"excluded": 1}
