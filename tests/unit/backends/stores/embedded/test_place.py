"""The file that was opened is the file that is read and written, wherever it went; and a file is never half made."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from wellhead.backends.stores.embedded import place
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore, StaleView, StoreError
from wellhead.records import Document
from wellhead.testing.contracts import put, refusal

READER = """
import os, sys
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.testing.contracts import live_rows

def told(store):
    view = store.view("")
    return f"{sorted(store.states(''))} {len(view)} {len(view.passages(live_rows(view)))}"

# Once as the owner, for what is imported late: the other user may not be allowed to read the environment.
owner = EmbeddedStore(sys.argv[1])
told(owner)
owner.close()
os.setgid(65534)
os.setuid(65534)
store = EmbeddedStore(sys.argv[1])
assert store.read_only
for _ in sys.stdin:
    print(told(store), flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    """A closed index of two documents."""
    store = EmbeddedStore(tmp_path / "kb")
    put(store, [Document(id="a", text="one\ntwo"), Document(id="b", text="three")])
    store.close()
    return tmp_path / "kb"


def refuses_everything(store: EmbeddedStore, view) -> None:
    for use in (
        lambda: put(store, [Document(id="c", text="lost")]),
        lambda: store.delete("", ["a"]),
        lambda: store.set_settings({"x": "y"}),
        store.version,
        store.verify,
        lambda: store.view(""),
        lambda: view.rows_of("a"),
        lambda: store.get("", "a"),
    ):
        assert "removed or replaced" in refusal(StoreError, use).what


class TestRemoved:
    def test_a_deleted_folder_is_neither_read_nor_written(self, folder):
        store = EmbeddedStore(folder)
        view = store.view("")
        shutil.rmtree(folder)
        refuses_everything(store, view)
        assert not folder.exists()
        store.close()

    def test_a_replaced_folder_is_neither_read_nor_written(self, folder):
        store = EmbeddedStore(folder)
        view = store.view("")
        shutil.rmtree(folder)
        other = EmbeddedStore(folder)
        put(other, [Document(id="other", text="x")])
        refuses_everything(store, view)
        assert list(other.states("")) == ["other"]
        other.close()
        store.close()

    def test_a_file_deleted_during_a_write_fails_the_write(self, folder):
        store = EmbeddedStore(folder)
        with pytest.raises(StoreError, match="removed or replaced"), store._database.write():
            (folder / FILE_NAME).unlink()
        store.close()

    def test_a_change_of_the_working_directory_is_no_removal(self, folder, monkeypatch):
        monkeypatch.chdir(folder.parent)
        store = EmbeddedStore("kb")
        monkeypatch.chdir("/")
        put(store, [Document(id="c", text="x")])
        assert len(store.view("")) == 4
        store.close()


class TestUnwritable:
    @pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs the right to become another user")
    def test_a_reader_without_write_permission_sees_the_owners_writes(self, folder):
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                parent.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, "-c", READER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:

            def seen() -> str:
                reader.stdin.write("now\n")
                reader.stdin.flush()
                return reader.stdout.readline().strip()

            assert seen() == "['a', 'b'] 3 3"
            owner = EmbeddedStore(folder)
            owner.delete("", ["a"])
            assert seen() == "['b'] 1 1"
            put(owner, [Document(id="c", text="new\nnewer")])
            assert seen() == "['b', 'c'] 3 3"
            owner.close()
            assert seen() == "['b', 'c'] 3 3"
            again = EmbeddedStore(folder)
            again.delete("", ["c"])
            again.close()
            assert seen() == "['b'] 1 1"
            reader.stdin.close()

    def test_a_file_that_changed_is_opened_again(self, folder, monkeypatch):
        owner = EmbeddedStore(folder)
        monkeypatch.setattr(place.os, "access", lambda path, mode: False)
        reader = EmbeddedStore(folder)
        assert len(reader.view("")) == 3
        owner.delete("", ["a"])
        assert len(reader.view("")) == 1
        owner.close()
        assert (len(reader.view("")), list(reader.states(""))) == (1, ["b"])
        reader.close()

    def test_a_write_during_a_read_without_locks_is_noticed(self, folder, monkeypatch):
        owner = EmbeddedStore(folder)
        monkeypatch.setattr(place.os, "access", lambda path, mode: False)
        reader = EmbeddedStore(folder)
        with pytest.raises(StaleView), reader._database.read():
            owner.delete("", ["a"])
        assert list(reader.states("")) == ["b"]
        owner.close()
        reader.close()


class TestMaking:
    @pytest.mark.parametrize("read_only", [True, False])
    def test_a_file_cut_off_is_no_new_index(self, folder, read_only):
        (folder / FILE_NAME).write_bytes(b"")
        error = refusal(CorruptStore, lambda: EmbeddedStore(folder, read_only=read_only))
        assert "restore a backup" in error.fix
        assert (folder / FILE_NAME).read_bytes() == b""

    def test_a_making_that_fails_leaves_nothing(self, tmp_path, monkeypatch):
        monkeypatch.setattr("wellhead.backends.stores.embedded.connection.create_schema", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            EmbeddedStore(tmp_path / "kb")
        assert list((tmp_path / "kb").iterdir()) == []

    def test_an_index_is_made_where_there_are_no_hard_links(self, tmp_path, monkeypatch):
        def link(*_paths):
            raise PermissionError("no links here")

        monkeypatch.setattr(place.os, "link", link)
        store = EmbeddedStore(tmp_path)
        put(store, [Document(id="a", text="x")])
        store.close()
        assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
