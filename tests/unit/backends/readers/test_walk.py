"""What the walk finds, skips and refuses, in which order and why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.readers.walk import INDEX_MARK, Entry, Found, Refused, Skipped, walk
from wellhead.errors import UsageError

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes files under a folder, each with a line of text unless content is given, and returns the folder."""

    def build(*names: str, **contents: str) -> Path:
        root = tmp_path / "root"
        for name in names:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(contents.get(name, "text\n"))
        return root

    return build


def found(root: Path, **options: object) -> list[str]:
    return [entry.id for entry in walk(root, **options) if isinstance(entry, Found)]  # type: ignore[arg-type]


def reasons(root: Path, **options: object) -> dict[str, str]:
    entries: list[Entry] = list(walk(root, **options))  # type: ignore[arg-type]
    return {entry.id: entry.reason for entry in entries if not isinstance(entry, Found)}


def ignore(folder: Path, *lines: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("\n".join(lines) + "\n")


def test_order_is_that_of_the_ids(make: Make) -> None:
    root = make("b.md", "a/x.md", "a.md", "a-b/y.md", "a/B/z.md", "Z.md", "ä.md")
    assert found(root) == sorted(["b.md", "a/x.md", "a.md", "a-b/y.md", "a/B/z.md", "Z.md", "ä.md"])
    one = next(entry for entry in walk(root) if isinstance(entry, Found))
    assert (one.path, one.size) == (root.resolve() / one.id, 5)


@given(st.sets(st.text(alphabet="ab./-", min_size=1, max_size=6), max_size=8))
@settings(max_examples=40, deadline=None)
def test_walking_twice_gives_the_same_sorted_ids(tmp_path_factory: pytest.TempPathFactory, names: set[str]) -> None:
    root = tmp_path_factory.mktemp("walk")
    for name in sorted(names):
        path = root.joinpath(*[part for part in name.split("/") if part not in ("", ".", "..")])
        if path != root and not path.exists() and not any(parent.is_file() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    entries = list(walk(root))
    assert entries == list(walk(root))
    assert [entry.id for entry in entries] == sorted(entry.id for entry in entries)


def test_hidden_and_vendored_are_told_once_and_not_entered(make: Make) -> None:
    root = make(
        ".env", ".git/config", ".cache/a.md", "node_modules/m/i.js", "vendor/v.go", "py/__pycache__/a.txt",
        "py/site-packages/p.py", "p-1.dist-info/METADATA", "env1/pyvenv.cfg", "env1/lib/a.py", "c/CACHEDIR.TAG",
        "c/a.txt", "venv/guide.md", "docs/a.md",
    )  # fmt: skip
    assert found(root) == ["docs/a.md", "venv/guide.md"]
    assert reasons(root) == {
        ".env": "hidden",
        ".git/": "hidden",
        ".cache/": "hidden",
        "node_modules/": "vendored",
        "vendor/": "vendored",
        "py/__pycache__/": "vendored",
        "py/site-packages/": "vendored",
        "p-1.dist-info/": "vendored",
        "env1/": "vendored",
        "c/": "vendored",
    }


def test_build_folders_are_output_only_beside_a_manifest_outside_a_repository(make: Make) -> None:
    root = make("a/Cargo.toml", "a/target/x.txt", "b/target/x.txt", "b/build/x.md", "c/package.json", "c/dist/x.js")
    assert found(root) == ["a/Cargo.toml", "b/build/x.md", "b/target/x.txt", "c/package.json"]
    (root / ".git").mkdir()
    assert "a/target/x.txt" in found(root)


def test_gitignore_nests_negates_and_ends_at_the_repository(make: Make, tmp_path: Path) -> None:
    root = make(
        ".git/info/exclude", "a.log", "keep.log", "out/x.md", "sub/b.log", "sub/c.tmp", "sub/deep/d.log", "e.bak"
    )
    (root / ".git/info/exclude").write_text("*.bak\n*.tmp\n")
    ignore(tmp_path, "*.md")  # outside the repository
    ignore(root, "*.log", "!keep.log", "/out/", "\\", "# a comment", "")
    ignore(root / "sub", "!b.log", "!c.tmp")
    assert found(root) == ["keep.log", "sub/b.log", "sub/c.tmp"]
    assert reasons(root)["out/"] == "ignored by .gitignore"
    assert reasons(root)["e.bak"] == "ignored by .gitignore"
    assert found(root / "sub") == ["b.log", "c.tmp"], "the rules of the folders above hold"


def test_a_root_that_is_itself_ignored_was_named_on_purpose(make: Make) -> None:
    root = make(".git/HEAD", "build/docs/a.md", "build/docs/b.log")
    ignore(root, "build/", "*.log")
    assert found(root) == []
    assert "a.md" in found(root / "build" / "docs")


@pytest.mark.skipif(os.system("git --version > /dev/null 2>&1") != 0, reason="git is not installed")
def test_the_walk_agrees_with_git(make: Make) -> None:
    names = [
        "a.txt",
        "b.log",
        "x/a.txt",
        "x/b.log",
        "x/y/a.txt",
        "x/y/c.md",
        "doc/frotz/a.md",
        "a/doc/frotz/b.md",
        "foo/bar",
    ]
    root = make(*names)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    ignore(root, "*.log", "/x/y/*", "!/x/y/c.md", "doc/frotz/", "foo/**", "!foo/bar")
    ignore(root / "x", "a.txt", "!b.log")
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-o", "--exclude-standard"], check=True, capture_output=True, text=True
    ).stdout.split()
    assert found(root) == sorted(name for name in listed if not name.endswith(".gitignore"))


def test_include_and_exclude(make: Make) -> None:
    root = make("a.md", "a.txt", "drafts/b.md", "docs/c.md", "docs/d.rst")
    assert found(root, include=["*.md"]) == ["a.md", "docs/c.md", "drafts/b.md"]
    assert found(root, include=["docs/"]) == ["docs/c.md", "docs/d.rst"]
    assert found(root, include=["*.md", "!a.md"], exclude=["drafts/"]) == ["docs/c.md"]
    told = reasons(root, include=["*.md"], exclude=["drafts"])
    assert told == {"a.txt": "not included", "docs/d.rst": "not included", "drafts/": "excluded"}


def test_an_include_opens_what_it_spells_out_and_nothing_else(make: Make) -> None:
    root = make(
        ".github/w.md", ".github/.secret.md", "vendor/ours/a.md", "vendor/b.md", "gen/c.md", ".x/d.md", ".git/e.md"
    )
    ignore(root, "gen/")
    assert found(root, include=["*.md"]) == []
    assert found(root, include=[".github/**"]) == [".github/w.md"]
    assert found(root, include=["vendor/ours/*.md"]) == ["vendor/ours/a.md"]
    assert found(root, include=["gen/"]) == ["gen/c.md"]
    assert found(root, include=[".git/**"]) == []
    assert found(root, include=[".github/"], exclude=["w.md"]) == []


@pytest.mark.parametrize("pattern", ["", "!", "# x", "\\"])
def test_a_pattern_that_matches_nothing_is_an_error(make: Make, pattern: str) -> None:
    with pytest.raises(UsageError, match="matches nothing"):
        walk(make("a.md"), exclude=[pattern])


def test_patterns_given_as_one_text_are_an_error(make: Make) -> None:
    with pytest.raises(UsageError, match="as a list"):
        walk(make("a.md"), include="*.md")


def test_index_folders_are_left_out(make: Make) -> None:
    root = make(f"kb/{INDEX_MARK}", "kb/notes.md", "other/a.md", "a.md")
    assert found(root, skip=[root / "other"]) == ["a.md"]
    assert set(reasons(root, skip=[root / "other"]).values()) == {"index folder"}
    assert found(root, include=["kb/"]) == [], "no pattern opens an index"


def test_size_kind_and_emptiness(make: Make) -> None:
    root = make("big.md", "empty.md", "pic.PNG", "ok.md")
    (root / "big.md").write_bytes(b"x" * 101)
    (root / "empty.md").write_bytes(b"")
    os.mkfifo(root / "pipe.md")
    entries = {entry.id: entry for entry in walk(root, max_bytes=100)}
    assert isinstance(entries["big.md"], Refused)
    assert entries["empty.md"] == Skipped(id="empty.md", reason="empty")
    assert entries["pic.PNG"] == Skipped(id="pic.PNG", reason="binary")
    assert entries["pipe.md"] == Skipped(id="pipe.md", reason="special file")
    assert isinstance(entries["ok.md"], Found)


def test_fifty_megabytes_is_the_limit(make: Make) -> None:
    root = make("at.md", "over.md")
    os.truncate(root / "at.md", 50 * 2**20)
    os.truncate(root / "over.md", 51 * 2**20)
    assert found(root) == ["at.md"]
    assert reasons(root) == {"over.md": "larger than 50 MB (51 MB)"}


def test_links_are_never_followed(make: Make) -> None:
    root = make("a/b.md", "c.md")
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "a" / "up").symlink_to("..", target_is_directory=True)
    (root / "etc").symlink_to("/etc", target_is_directory=True)
    (root / "passwd.txt").symlink_to("/etc/passwd")
    (root / "same.md").symlink_to("c.md")
    (root / "dangling.md").symlink_to("nowhere")
    assert found(root) == ["a/b.md", "c.md"]
    assert reasons(root) == dict.fromkeys(["a/up", "dangling.md", "etc", "loop", "passwd.txt", "same.md"], "symlink")


def test_a_link_as_root_is_followed_and_ids_stay_relative(make: Make, tmp_path: Path) -> None:
    root = make("a/b.md")
    (tmp_path / "link").symlink_to(root)
    assert found(tmp_path / "link") == ["a/b.md"]


def test_one_file_as_root(make: Make) -> None:
    root = make(".hidden.md")
    assert found(root / ".hidden.md") == [".hidden.md"]
    with pytest.raises(UsageError, match="no such file"):
        walk(root / "gone.md")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not take such names")
def test_a_name_that_is_no_utf8_is_refused_printably(make: Make) -> None:
    root = make("ok.md")
    (root / os.fsdecode(b"caf\xe9.md")).write_text("x")
    (root / os.fsdecode(b"d\xff")).mkdir()
    refused = [entry for entry in walk(root) if isinstance(entry, Refused)]
    assert [entry.id for entry in refused] == ["caf\\xe9.md", "d\\xff/"]
    "".join(entry.id + entry.reason for entry in refused).encode("utf-8")
    assert found(root) == ["ok.md"]


def test_an_unreadable_folder_is_refused_and_the_walk_goes_on(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make("a/x.md", "b/y.md", "c/z.md", "c/.gitignore")
    scandir, read_text = os.scandir, Path.read_text

    def denied(path: Path) -> object:
        if Path(path).name == "a":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    def unreadable(path: Path, *args: object, **kwargs: object) -> str:
        if path.name == ".gitignore":
            raise PermissionError(13, "Permission denied")
        return read_text(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "scandir", denied)
    monkeypatch.setattr(Path, "read_text", unreadable)
    assert found(root) == ["b/y.md"]
    assert reasons(root) == dict.fromkeys(["a/", "c/"], "cannot be read: Permission denied")


def test_folders_may_be_deep(make: Make) -> None:
    root = make("/".join(["d"] * 900) + "/a.md")
    assert len(found(root)) == 1
