"""The file of a segment: what goes in comes out, and no other file passes for it."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from histories import folder
from parts import loaded, part_of, plain, same_arrays
from wellhead.backends.stores.embedded import failpoint, segment
from wellhead.backends.stores.embedded.part import Part
from wellhead.backends.stores.embedded.segment import (
    FOLDER,
    SUFFIX,
    SegmentDamaged,
    _header,
    file_of,
    read_segment,
    write_segment,
)

UNIT = [0.6, -0.8]
rows = st.tuples(
    st.lists(st.sampled_from(["cat", "cats", "café", "日本"]), max_size=4).map(" ".join),
    st.sampled_from(["", "acme", "日本"]),
    st.sampled_from(["", "en"]),
    st.dictionaries(st.text(min_size=1, max_size=9), st.sampled_from([True, 1, 1.0, '"', ("a", 1)]), max_size=4),
    st.sampled_from([None, UNIT]),
)


def small() -> Part:
    return part_of(
        loaded(1, "cat cats café", scope="acme", metadata={"k": "v"}, vector=UNIT), loaded(2, "dog", language="en")
    )


@pytest.fixture
def written(tmp_path):
    """A file of two rows, and its digest."""
    path = file_of(tmp_path, "one")
    return path, write_segment(path, small())


def header_of(path):
    data = path.read_bytes()
    size = int.from_bytes(data[8:16], "little")
    return json.loads(data[16 : 16 + size]), 16 + size


class TestRoundTrip:
    @given(st.lists(rows, max_size=8))
    @settings(max_examples=100)
    def test_a_part_comes_back_as_it_was(self, drawn):
        part = part_of(
            *(
                loaded(n, text, scope=scope, language=language, metadata=metadata, vector=vector)
                for n, (text, scope, language, metadata, vector) in enumerate(drawn)
            )
        )
        with folder() as place:
            path = file_of(place, "x")
            again = read_segment(path, write_segment(path, part))
        assert again.names == part.names
        assert same_arrays(again.arrays, part.arrays)
        assert plain(again) == plain(part)

    def test_the_file_lies_in_a_folder_of_its_own(self, written, tmp_path):
        path, _ = written
        assert path == tmp_path / FOLDER / f"one{SUFFIX}"
        assert [each.name for each in path.parent.iterdir()] == [path.name]

    def test_it_is_the_same_file_each_time(self, written, tmp_path):
        path, digest = written
        assert write_segment(file_of(tmp_path, "two"), small()) == digest
        assert file_of(tmp_path, "two").read_bytes() == path.read_bytes()

    def test_what_is_mapped_cannot_be_written_to(self, written):
        part = read_segment(*written)
        assert [name for name, array in part.arrays.items() if array.size and array.flags.writeable] == []

    def test_a_file_that_is_in_use_may_be_deleted(self, written):
        path, digest = written
        part = read_segment(path, digest)
        path.unlink()
        assert plain(part) == plain(small())


class TestPlaces:
    @pytest.mark.parametrize("keys", [0, 1, 3, 10, 60])
    @pytest.mark.parametrize("length", [1, 7, 30, 61])
    def test_arrays_stand_behind_the_header_aligned_and_apart(self, tmp_path, keys, length):
        part = part_of(loaded(1, "cat", metadata={f"{n:0{length}}": n for n in range(keys)}, vector=UNIT), loaded(2))
        path = file_of(tmp_path, "x")
        again = read_segment(path, write_segment(path, part))
        assert plain(again) == plain(part)
        header, end = header_of(path)
        for name, (kind, shape, offset) in header["arrays"].items():
            assert offset % 64 == 0, name
            assert offset >= end, name
            end = offset + int(np.dtype(kind).itemsize * np.prod(shape))
        assert end <= path.stat().st_size < end + 64

    @pytest.mark.parametrize("size", [10, 10**6, 10**9, 10**12, 2**56])
    @pytest.mark.parametrize("many", [1, 2, 20, 90])
    def test_the_header_never_outgrows_the_room_that_is_left_for_it(self, size, many):
        # The places are not known before the header is, so room for 32 characters an array is left.
        names = small().names
        arrays = {f"a{n}": np.broadcast_to(np.uint8(0), (size,)) for n in range(many)}
        first = len(_header(names, arrays, 0))
        assert len(_header(names, arrays, first + 32 * many + 64)) <= first + 32 * many


class TestDamage:
    def assert_refused(self, path, digest) -> str:
        with pytest.raises(SegmentDamaged) as caught:
            read_segment(path, digest)
        return str(caught.value)

    def test_a_file_cut_off_anywhere_is_refused(self, written):
        path, digest = written
        data = path.read_bytes()
        assert len(data) > 3_000
        for length in reversed(range(len(data))):
            os.truncate(path, length)
            assert "not as it was written" in self.assert_refused(path, digest)
        path.write_bytes(data)
        assert plain(read_segment(path, digest)) == plain(small())

    def test_no_flipped_bit_goes_unnoticed(self, written):
        path, digest = written
        data = path.read_bytes()
        with path.open("r+b", buffering=0) as file:
            for place, byte in enumerate(data):
                for bit in range(place % 3, 8, 3):
                    os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                    self.assert_refused(path, digest)
                os.pwrite(file.fileno(), bytes([byte]), place)
        assert plain(read_segment(path, digest)) == plain(small())

    @pytest.mark.parametrize("change", [b"", b"x", b"garbage" * 50])
    def test_another_file_is_refused(self, written, change):
        path, digest = written
        path.write_bytes(change)
        self.assert_refused(path, digest)

    def test_bytes_behind_the_end_are_refused(self, written):
        path, digest = written
        path.write_bytes(path.read_bytes() + b"\0")
        self.assert_refused(path, digest)

    def test_a_sound_file_under_another_name_is_refused(self, written, tmp_path):
        path, digest = written
        other = file_of(tmp_path, "other")
        write_segment(other, part_of(loaded(1, "cat")))
        self.assert_refused(other, digest)
        other.replace(path)
        self.assert_refused(path, digest)

    def test_no_file_and_no_plain_file_are_refused(self, written, tmp_path):
        path, digest = written
        assert "cannot be read" in self.assert_refused(tmp_path / "none.seg", digest)
        path.unlink()
        path.mkdir()
        self.assert_refused(path, digest)

    def test_a_file_of_another_format_is_refused_though_its_digest_fits(self, tmp_path):
        import xxhash

        path = file_of(tmp_path, "x")
        write_segment(path, small())
        data = bytearray(path.read_bytes())
        data[7] ^= 2  # the number of the format
        path.write_bytes(data)
        assert "another format" in self.assert_refused(path, xxhash.xxh3_128_digest(bytes(data)))


class TestFailure:
    @pytest.mark.parametrize("moment", ["segment.written", "segment.synced", "segment.folder_synced"])
    def test_nothing_is_left_of_a_file_that_could_not_be_written(self, tmp_path, monkeypatch, moment):
        def fail(name: str) -> None:
            if name == moment:
                raise OSError(errno.ENOSPC, "no space")

        monkeypatch.setattr(failpoint, "hook", fail)
        path = file_of(tmp_path, "x")
        with pytest.raises(OSError, match="no space"):
            write_segment(path, small())
        assert list(path.parent.iterdir()) == []

    def test_a_segment_is_never_written_over(self, written):
        path, digest = written
        with pytest.raises(FileExistsError):
            write_segment(path, part_of(loaded(9, "other")))
        assert plain(read_segment(path, digest)) == plain(small())

    def test_the_folder_is_made_when_it_is_missing(self, tmp_path):
        path = file_of(tmp_path, "x")
        assert not path.parent.exists()
        assert plain(read_segment(path, write_segment(path, small()))) == plain(small())


@pytest.mark.parametrize("header", [b"{}", b"[]", b"no json", b'{"names": 1, "arrays": {}}'])
def test_a_file_whose_digest_fits_but_whose_header_is_nonsense_is_damaged(tmp_path, header):
    path = tmp_path / "forged.seg"
    path.write_bytes(segment._MAGIC + len(header).to_bytes(8, "little") + header)
    with pytest.raises(SegmentDamaged, match="holds no arrays of ours"):
        read_segment(path, xxhash.xxh3_128_digest(path.read_bytes()))
