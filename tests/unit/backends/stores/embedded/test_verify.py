"""What verify names: every kind of damage, in the tables and in what is derived; and nothing when all is well."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from wellhead.backends.stores.embedded import verify_searches
from wellhead.backends.stores.embedded.checksum import checksum
from wellhead.backends.stores.embedded.keeper import Job, carry_out
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.segment import file_of, read_segment, write_segment
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.records import Document
from wellhead.testing.contracts import put
from wellhead.testing.fakes import document_row

WORDS = [f"word{n}" for n in range(40)]


def document(number: int, lines: int = 3, **fields) -> Document:
    chance = random.Random(number)
    text = "\n".join(" ".join(chance.choices(WORDS, k=6)) for _ in range(lines))
    metadata = {"n": number % 5, "tags": ("x", number % 2)} if number % 3 else {}
    return Document(id=f"{number}.md", text=text, metadata=metadata, language=("en", "de", None)[number % 3], **fields)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    store = EmbeddedStore(folder)
    put(store, [document(n) for n in range(20)])
    put(store, [document(n) for n in range(20, 30)], scope="acme")
    carry_out(store._database, Job((), 1, 90))
    store.delete("", ["3.md", "4.md"])
    put(store, [document(n) for n in range(30, 33)])
    store.close()
    return folder


@pytest.fixture
def folder(made, tmp_path):
    """A closed index of two scopes: a segment with deleted rows in it, and newer rows."""
    return Path(shutil.copytree(made, tmp_path / "kb"))


def run_sql(folder, *statements: str) -> list[tuple]:
    """Change the file behind the store's back; what the last statement gives."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        for sql in statements:
            rows = raw.execute(sql).fetchall()
        raw.commit()
    return rows


def found(folder) -> list:
    store = EmbeddedStore(folder, read_only=True)
    try:
        return store.verify()[3]
    finally:
        store.close()


def kinds(folder) -> set[str]:
    return {finding.kind for finding in found(folder)}


def segments(folder) -> list[tuple]:
    return run_sql(folder, "SELECT name, first, last, rows, version FROM segments ORDER BY first")


def replace_segment(folder, change) -> None:
    """Write the first segment anew with other arrays, under a digest that fits: what a faulty merge would leave."""
    name, first, last, rows, version = segments(folder)[0]
    (digest,) = run_sql(folder, f"SELECT digest FROM segments WHERE name = '{name}'")[0]
    path = file_of(folder, name)
    part = read_segment(path, digest)
    for array, wrong in change(part).items():
        part.arrays[array] = np.asarray(wrong, dtype=part.arrays[array].dtype)
    path.unlink()
    values = (name, first, last, rows, version, write_segment(path, part))
    with closing(sqlite3.connect(folder / FILE_NAME)) as raw:
        raw.execute("DELETE FROM segments WHERE name = ?", (name,))
        raw.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", (*values, checksum("segments", *values)))
        raw.commit()


class TestSound:
    def test_an_index_with_segments_deleted_rows_and_newer_ones_is_sound(self, folder):
        store = EmbeddedStore(folder)
        assert len(segments(folder)) == 1
        assert run_sql(folder, "SELECT count(*) FROM gone") == [(6,)]
        assert store.verify() == (31, 93, store.counts()[0], [])
        store.close()

    def test_everything_deleted_is_sound_too(self, folder):
        store = EmbeddedStore(folder)
        store.delete("", [f"{n}.md" for n in range(40)])
        store.delete("acme", [f"{n}.md" for n in range(40)])
        store.settle()
        assert [row[3] for row in segments(folder)] == [0]
        assert store.verify() == (0, 0, 0, [])
        store.close()

    def test_the_rows_are_looked_at_in_pieces(self, folder, monkeypatch):
        from wellhead.backends.stores.embedded import verify, verify_segments

        monkeypatch.setattr(verify, "_ROWS_AT_ONCE", 7)
        monkeypatch.setattr(verify_segments, "_PIECE", 7)
        monkeypatch.setattr(verify_segments, "_POSTINGS", 50)
        monkeypatch.setattr(verify_searches, "_PIECE", 7)
        assert found(folder) == []
        run_sql(folder, "DELETE FROM terms WHERE term = 9")
        assert "term" in kinds(folder)

    def test_a_segment_that_is_merged_away_meanwhile_is_no_damage(self, folder, monkeypatch):
        store = EmbeddedStore(folder)
        opened = []

        def opening(path, digest):
            opened.append(path)
            if len(opened) == 1:  # between the list and the file: another process has put a new one in its place
                other = EmbeddedStore(folder)
                other.delete("", [f"{n}.md" for n in range(10)])
                other.settle()
                other.close()
            return read_segment(path, digest)

        monkeypatch.setattr("wellhead.backends.stores.embedded.verify_segments.read_segment", opening)
        assert store.verify()[3] == []
        assert len({path.name for path in opened}) > 1
        store.close()

    def test_many_scopes_are_sampled(self, tmp_path, monkeypatch):
        store = EmbeddedStore(tmp_path)
        for n in range(130):
            put(store, [document(n, lines=1)], scope=f"s{n}")
        asked = []
        monkeypatch.setattr(
            verify_searches, "_compare", lambda view, truth, queries, where: asked.append(queries) or []
        )
        assert store.verify()[3] == []
        assert len(asked) == 100
        store.close()


TABLES = {
    "a setting": ("UPDATE settings SET value = 'other'", "setting", "--embedder"),
    "a counter": ("UPDATE counters SET value = 99 WHERE name = 'version'", "counter", "wellhead repair"),
    "a counter is gone": ("DELETE FROM counters WHERE name = 'passage'", "counter", "wellhead repair"),
    "a row": ("UPDATE documents SET title = 'x' WHERE doc = 2", "document", "wellhead rm 1.md"),
    "a text": ("UPDATE texts SET text = 'x' WHERE doc = 2", "document", "wellhead index FOLDER"),
    "a text is gone": ("DELETE FROM texts WHERE doc = 2", "document", "wellhead index FOLDER"),
    "a passage": ("UPDATE passages SET start = 1 WHERE passage = 4", "passage", "wellhead rm 1.md"),
    "a passage is gone": ("DELETE FROM passages WHERE passage = 4", "passages", "wellhead rm 1.md"),
    "a document is gone": ("DELETE FROM documents WHERE doc = 2", "orphan_passage", "wellhead repair"),
    "a document and its passages": (
        "DELETE FROM passages WHERE doc = 2; DELETE FROM documents WHERE doc = 2",
        "orphan_text",
        "wellhead repair",
    ),
    "the counts": ("UPDATE scopes SET passages = 1 WHERE scope = 'acme'", "count", "wellhead repair"),
    "a term": ("UPDATE terms SET word = 'x' WHERE term = 3", "term", "wellhead repair"),
    "a term is gone": ("DELETE FROM terms WHERE term = 3", "term", "wellhead repair"),
    "a vector": ("UPDATE vectors SET data = zeroblob(64) WHERE rowid = 4", "vector", "wellhead rm"),
    "a vector is gone": ("DELETE FROM vectors WHERE rowid = 4", "missing_vector", "wellhead rm"),
}


class TestTables:
    @pytest.mark.parametrize("what", TABLES)
    def test_damage_is_named_with_what_mends_it(self, folder, what):
        sql, kind, fix = TABLES[what]
        if what == "a setting":
            store = EmbeddedStore(folder)
            store.set_settings({"embedder": "hash"})
            store.close()
        run_sql(folder, *sql.split(";"))
        mine = [finding for finding in found(folder) if finding.kind == kind]
        assert mine
        assert all(finding.where and finding.why and fix in finding.fix for finding in mine)

    @pytest.mark.parametrize("what", ["a text", "a text is gone", "a passage", "a vector"])
    def test_a_repair_is_advised_only_where_it_would_keep_the_document(self, folder, what):
        sql, kind, _ = TABLES[what]
        run_sql(folder, sql)
        (finding, *_) = [finding for finding in found(folder) if finding.kind == kind]
        assert ("repair" in finding.fix) == (not what.startswith("a text"))

    def test_a_counter_that_went_back_is_named_though_its_checksum_fits(self, folder):
        values = "'passage', 5"
        row = checksum("counters", "passage", 5).hex()
        run_sql(folder, f"INSERT OR REPLACE INTO counters VALUES ({values}, x'{row}')")
        assert any("99 was given already" in finding.why for finding in found(folder) if finding.kind == "counter")

    def test_a_vector_that_nobody_uses_is_harmless(self, folder):
        data = np.ones(16, dtype="<f4").tobytes()
        values = f"x'{b'k'.hex()}', x'{data.hex()}', x'{checksum('vectors', b'k', data).hex()}'"
        run_sql(folder, f"INSERT INTO vectors VALUES ({values})")
        (finding,) = found(folder)
        assert (finding.kind, "wellhead compact" in finding.fix) == ("orphan_vector", True)

    def test_one_fault_counts_once(self, folder):
        run_sql(folder, "UPDATE terms SET word = 'x' WHERE term = 3")
        assert [finding.kind for finding in found(folder)].count("term") == 1


def with_gone(number: int, version: int) -> str:
    return f"INSERT OR REPLACE INTO gone VALUES ({number}, {version}, x'{checksum('gone', number, version).hex()}')"


class TestDerived:
    def test_a_damaged_file_is_named(self, folder):
        name = segments(folder)[0][0]
        path = file_of(folder, name)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        (finding,) = found(folder)
        assert finding.kind == "segment"
        assert name in finding.where
        assert "not as it was written" in finding.why
        assert "wellhead repair" in finding.fix

    def test_a_missing_file_is_named(self, folder):
        file_of(folder, segments(folder)[0][0]).unlink()
        (finding,) = found(folder)
        assert (finding.kind, "cannot be read" in finding.why) == ("segment", True)

    def test_a_damaged_entry_is_named(self, folder):
        run_sql(folder, "UPDATE segments SET version = 0")
        assert kinds(folder) == {"segments"}

    def test_overlapping_ranges_are_named(self, folder):
        _, _, last, rows, version = segments(folder)[0]
        values = ("b" * 32, last, last, rows, version, b"d" * 16)
        row = checksum("segments", *values).hex()
        run_sql(
            folder,
            f"INSERT INTO segments VALUES ('{values[0]}', {last}, {last}, {rows}, {version}, "
            f"x'{values[5].hex()}', x'{row}')",
        )
        assert any("overlap" in finding.why for finding in found(folder) if finding.kind == "segments")

    def test_a_range_that_was_never_numbered_is_named(self, folder):
        values = ("b" * 32, 500, 600, 3, 9999, b"d" * 16)
        row = checksum("segments", *values).hex()
        run_sql(
            folder, f"INSERT INTO segments VALUES ('{values[0]}', 500, 600, 3, 9999, x'{values[5].hex()}', x'{row}')"
        )
        assert any("numbered up to 99" in finding.why for finding in found(folder) if finding.kind == "segments")

    def test_a_damaged_entry_of_a_deletion_is_named(self, folder):
        run_sql(folder, "UPDATE gone SET version = 1 WHERE passage = 10")
        assert kinds(folder) == {"gone", "segment"}
        assert any("passage 10" in finding.why for finding in found(folder))

    def test_a_live_passage_on_the_list_of_deletions_is_named(self, folder):
        run_sql(folder, with_gone(1, 4))
        assert any("is listed as deleted, and is there" in finding.why for finding in found(folder))
        assert "segment" in kinds(folder)

    def test_a_deletion_that_is_missing_from_the_list_is_named(self, folder):
        run_sql(folder, "DELETE FROM gone WHERE passage = 10")
        (finding,) = found(folder)
        assert (finding.kind, "passages" in finding.why) == ("segment", True)

    @pytest.mark.parametrize(
        ("what", "change"),
        {
            "documents": lambda part: {"docs": part.docs + 1},
            "contents": lambda part: {"contents": np.roll(part.contents, 1)},
            "ids": lambda part: {"id.data": np.roll(part.arrays["id.data"], 1)},
            "languages": lambda part: {"languages": np.roll(part.languages, 1)},
            "vectors": lambda part: {"floats": np.roll(part.floats, 1)},
            "codes of vectors": lambda part: {"codes": -part.codes},
            "scales": lambda part: {"scales": part.scales * 2},
            "metadata 'n'": lambda part: {"codes.0": np.roll(part.arrays["codes.0"], 1)},
            "stems": lambda part: {"stems.counts": part.arrays["stems.counts"] + 1},
            "words": lambda part: {"words.lengths": part.arrays["words.lengths"] + 1},
            "postings": lambda part: {"words.terms": np.roll(part.arrays["words.terms"], 1)},
            "vocabulary": lambda part: {"word.terms": np.roll(part.arrays["word.terms"], 1)},
            "order": lambda part: {"content_order": np.roll(part.arrays["content_order"], 1)},
            "scopes": lambda part: {"scope_starts": part.arrays["scope_starts"] - np.array([0, 3, 0])},
        }.items(),
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_sound_file_with_other_rows_than_the_tables_is_named(self, folder, what, change):
        replace_segment(folder, change)
        findings = found(folder)
        assert {finding.kind for finding in findings} == {"segment"}
        assert "differs from the tables" in findings[0].why

    def test_how_values_are_numbered_does_not_count(self, folder):
        def renumber(part):
            codes = part.arrays["codes.0"]
            values = part.column("n")[1]
            place = part.names.keys.index("n")
            turned = bytes(str(values[::-1]).replace("'", '"').encode())
            return {
                f"codes.{place}": np.where(codes < 0, codes, len(values) - 1 - codes),
                f"values.{place}": np.frombuffer(turned, dtype=np.uint8),
            }

        replace_segment(folder, renumber)
        assert found(folder) == []

    def test_the_tables_damaged_too_leave_nothing_to_compare_with(self, folder):
        run_sql(folder, "UPDATE passages SET start = 1 WHERE passage = 4")
        assert kinds(folder) == {"passage"}


class TestSearches:
    """What is sampled is asked of the parts and of the tables: a fault in how parts are searched is seen."""

    @pytest.mark.parametrize("leg", ["words", "vector"])
    def test_another_answer_is_named(self, folder, monkeypatch, leg):
        target = {"words": verify_searches.bm25, "vector": verify_searches.dense}[leg]
        name = {"words": "score", "vector": "cosines"}[leg]
        right = getattr(target, name)

        def wrong(view, *rest):
            given = right(view, *rest)
            if type(view).__name__ != "PartsView":
                return given
            return given._replace(scores=given.scores[::-1]) if leg == "words" else given * 0.5

        monkeypatch.setattr(target, name, wrong)
        findings = found(folder)
        assert {finding.kind for finding in findings} == {"search"}
        assert all(f"by its own {leg}" in finding.why for finding in findings)
        assert any("scope 'acme'" in finding.where for finding in findings)

    def test_a_row_that_the_parts_lose_is_named(self, folder, monkeypatch):
        right = verify_searches.dense.pool
        monkeypatch.setattr(
            verify_searches.dense,
            "pool",
            lambda view, *rest: right(view, *rest)[type(view).__name__ == "PartsView" :],
        )
        assert kinds(folder) == {"search"}

    def test_a_row_near_the_end_of_the_pool_may_differ(self):
        other = [(1.0 - n / 1000, f"{n:03}") for n in range(300)]
        near, far = [(0.6, "x"), *other[1:]], [*other[:20], *other[21:], (0.70, "y")]
        assert verify_searches._as_near(other, other)
        assert not verify_searches._as_near(other[:-1], other)
        assert not verify_searches._as_near(sorted(near, key=verify_searches._by_rank), other)
        assert not verify_searches._as_near(far, other)
        close = [(0.5 + n / 1e6, f"{n:03}") for n in range(400, 0, -1)]
        assert verify_searches._as_near([*close[:7], *close[8:301]], close[:300])

    def test_passages_without_vectors_are_asked_for_by_words_alone(self, tmp_path):
        store = EmbeddedStore(tmp_path)
        store.put([document_row(document(1), with_vectors=False)], {})
        assert store.verify() == (1, 3, 0, [])
        store.close()
