"""Files become documents: ids, areas, and what happens between listing and reading."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wellhead.backends.readers import FileSkipped, Found, read_file, read_folder
from wellhead.errors import DocumentError


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.promise("B53")
def test_the_top_level_folder_is_the_area_and_wins_over_the_file(tmp_path: Path) -> None:
    own = "---\narea: elsewhere\nlevel: 2\n---\ntext"
    folder = read_folder(write(tmp_path, guides__deep__a_md=own, b_md=own))
    documents = {document.id: document for document in map(folder.read, folder.found)}
    assert documents["guides/deep/a.md"].metadata == {"area": "guides", "level": 2}
    assert documents["b.md"].metadata == {"level": 2}


@pytest.mark.promise("B41")
def test_no_document_knows_where_on_this_machine_it_lay(tmp_path: Path) -> None:
    text = "# T\n\nbody"
    first, second = (
        [folder.read(entry) for entry in folder.found]
        for folder in (read_folder(write(tmp_path / name, x__a_md=text, b_md=text)) for name in ("one", "two"))
    )
    assert first == second
    assert [(document.id, document.uri, document.title) for document in first] == [
        ("b.md", "b.md", "T"),
        ("x/a.md", "x/a.md", "T"),
    ]
    assert str(tmp_path) not in repr(first)


def test_the_prefix_stands_before_id_and_uri(tmp_path: Path) -> None:
    folder = read_folder(write(tmp_path, x__a_md="text"), prefix="docs/")
    document = folder.read(folder.found[0])
    assert (document.id, document.uri, document.metadata) == ("docs/x/a.md", "docs/x/a.md", {"area": "x"})


def test_a_single_file_has_its_name_as_id(tmp_path: Path) -> None:
    folder = read_folder(write(tmp_path, a_md="text") / "a.md")
    assert [folder.read(entry).id for entry in folder.found] == ["a.md"]


def test_a_file_that_vanished_or_was_replaced_is_refused(tmp_path: Path) -> None:
    folder = read_folder(write(tmp_path, a_md="text", b_md="text", c_md="text", d_md="text", e_md="text"))
    gone, pipe, link, grown, huge = folder.found
    for entry in (gone, pipe, link):
        entry.path.unlink()
    os.mkfifo(pipe.path)
    link.path.symlink_to("/etc/passwd")
    grown.path.write_text("longer text")
    os.truncate(huge.path, 51 * 2**20)
    for entry, why in (
        (huge, "beyond the limit"),
        (gone, "No such file"),
        (pipe, "no regular file"),
        (link, "symbolic link"),
    ):
        with pytest.raises(DocumentError, match=why) as caught:
            folder.read(entry)
        assert caught.value.where == entry.id
    assert folder.read(grown).text == "longer text", "what is read is what is there now, whole"


def test_a_file_that_changes_under_the_reader_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = read_folder(write(tmp_path, a_md="text"))
    fstat, calls = os.fstat, []

    def growing(descriptor: int) -> os.stat_result:
        calls.append(fstat(descriptor))
        with (tmp_path / "a.md").open("a") as file:
            file.write("more")
        return calls[-1]

    monkeypatch.setattr(os, "fstat", growing)
    with pytest.raises(DocumentError, match="changed while it was read"):
        folder.read(folder.found[0])


def test_skips_and_refusals_are_told_apart_when_reading(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(bytes(range(256)))
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.4")
    binary, unread = read_folder(tmp_path).found
    with pytest.raises(FileSkipped):
        read_file(binary)
    with pytest.raises(DocumentError, match=r"no reader for \.pdf"):
        read_file(unread)


def test_what_could_not_be_listed_is_unknown_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, x__a_md="text", y__b_md="text")
    scandir = os.scandir

    def denied(path: Path) -> object:
        if Path(path).name == "x":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    folder = read_folder(tmp_path, prefix="p/")
    assert [entry.id for entry in folder.refused] == ["x/"]
    assert [folder.is_unknown(name) for name in ("p/x/a.md", "p/y/b.md", "p/x", "x/a.md")] == [
        True,
        False,
        False,
        False,
    ]


def test_found_is_plain_data(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("text")
    assert read_folder(tmp_path).entries == (Found(path=tmp_path.resolve() / "a.md", id="a.md", size=4),)


def test_a_file_is_read_from_the_bytes_that_were_taken(tmp_path: Path) -> None:
    folder = read_folder(write(tmp_path, x__a_md="# First\n\ntext"), prefix="docs/")
    (entry,) = folder.found
    content = folder.content(entry)
    before = folder.read(entry)
    entry.path.write_text("# Second\n\ntext")
    assert content == b"# First\n\ntext"
    assert folder.document(entry, content) == before
    assert before.title == "First"


def test_a_file_that_no_reader_takes_is_refused_by_its_name_without_being_opened(tmp_path: Path) -> None:
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.4")
    folder = read_folder(tmp_path)
    (entry,) = folder.found
    entry.path.unlink()
    with pytest.raises(DocumentError, match=r"no reader for \.pdf"):
        folder.content(entry)
