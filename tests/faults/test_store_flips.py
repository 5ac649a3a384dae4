"""Bits that flip on the disk: what was written is served, or the damage is named. Never something else."""

from __future__ import annotations

import logging
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest

from faults.sample import Answers, answers, build, document, open_sample, segment_files, settle, small_segments, tables
from wellhead import Index
from wellhead.backends.stores.embedded import verify_searches
from wellhead.backends.stores.embedded.place import FILE_NAME
from wellhead.backends.stores.embedded.segment import SUFFIX
from wellhead.backends.stores.embedded.store import EmbeddedStore
from wellhead.errors import CorruptStore, StoreError, WellheadError
from wellhead.records import Document, Explanation, Hits
from wellhead.testing.contracts import put, refusal, vector_of

pytestmark = pytest.mark.faults

# Together 2,000: in eight tests, so that two processes can share the work.
ROUNDS, FLIPS, CUTS = 8, 210, 40


@pytest.fixture(autouse=True)
def _quiet_and_quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each damaged segment is told in the log, a thousand times here; and the sampled searches of `verify` are few."""
    monkeypatch.setattr(verify_searches, "_A_SCOPE", 1)
    logging.getLogger("wellhead").setLevel(logging.ERROR)
    yield
    logging.getLogger("wellhead").setLevel(logging.NOTSET)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A sound sample, closed."""
    build(tmp_path / "kb")
    return tmp_path / "kb"


def chance() -> random.Random:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)
    return random.Random(seed)


def seen(folder: Path) -> Answers:
    """What a reader of the folder sees."""
    try:
        with open_sample(folder, read_only=True) as index:
            return answers(index)
    except WellheadError as error:
        return {("", "open"): error}


def findings(folder: Path) -> list[str]:
    """What `verify` finds; a refusal to open is a finding."""
    try:
        with open_sample(folder, read_only=True) as index:
            return [f"{one.kind} {one.where} {one.why}" for one in index.verify().findings]
    except WellheadError as error:
        return [str(error)]


class Sound:
    """How the sample is before it is damaged, and what must hold after each damage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers = seen(folder)
        assert [name for name, answer in self.answers.items() if isinstance(answer, WellheadError)] == []
        assert findings(folder) == []
        self.tables = tables(folder)

    def check(self, damaged: Path, how: str) -> str:
        """How the damage to a file shows: as an error, by `verify` alone, or not at all."""
        found = seen(self.folder)
        errors = {name: answer for name, answer in found.items() if isinstance(answer, WellheadError)}
        assert wrong(found, self.answers) == [], f"{how}: other answers than before, and no error"
        assert all(error.fix for error in errors.values()), f"{how}: {errors}"
        if damaged.suffix != SUFFIX and not errors and found == self.answers and tables(self.folder) == self.tables:
            return "nothing"  # `verify` may name it or not: no value has changed
        assert errors == {} or damaged.suffix != SUFFIX, f"{how}: what is derived is damaged, and nothing else"
        assert findings(self.folder), f"{how}: verify is silent"
        return "an error" if errors else "verify"


def draw(files: Sequence[Path], dice: random.Random) -> Path:
    """A file to damage: mostly the tables."""
    return files[0] if dice.random() < 0.75 else dice.choice(files[1:])


@pytest.mark.parametrize("number", range(ROUNDS))
def test_any_flip_is_harmless_or_named(sample: Path, number: int) -> None:
    dice, sound = chance(), Sound(sample)
    files = [sample / FILE_NAME, *segment_files(sample)]
    shown = []
    for _ in range(FLIPS):
        path = draw(files, dice)
        offset, bit = dice.randrange(path.stat().st_size), dice.randrange(8)
        flip(path, offset, bit)
        shown.append(sound.check(path, f"bit {bit} of byte {offset} of {path.name}"))
        flip(path, offset, bit)
    assert set(shown) == {"an error", "verify", "nothing"}


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_file_cut_off_anywhere_is_harmless_or_named(sample: Path, number: int) -> None:
    dice, sound = chance(), Sound(sample)
    files = [sample / FILE_NAME, *segment_files(sample)]
    for turn in range(CUTS):
        path = draw(files, dice)
        data = path.read_bytes()
        length = (
            0 if turn < 2 else dice.randrange(len(data) // 4096 + 1) * 4096 if turn % 2 else dice.randrange(len(data))
        )
        replace(path, data[:length])
        shown = sound.check(path, f"{path.name} cut off at {length}")
        assert (shown == "nothing") == (length == len(data))
        replace(path, data)


def flip(path: Path, offset: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def replace(path: Path, data: bytes) -> None:
    """Give a file other contents: as a new file, for the old one may still be mapped."""
    path.unlink()
    path.write_bytes(data)


def test_a_damaged_or_missing_segment_costs_nothing_but_time(sample: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The rows are read from the tables, it is told, and a search by one who may write has the files made again."""
    sound, (first, second, third) = Sound(sample), segment_files(sample)
    flip(first, first.stat().st_size // 2, 3)
    replace(second, second.read_bytes()[:-100])
    third.unlink()
    with caplog.at_level(logging.WARNING, logger="wellhead"):
        assert sound.check(first, "three segments") == "verify"
    told = [record.getMessage() for record in caplog.records]
    assert all(any(path.name in message for message in told) for path in (first, second, third))
    with small_segments(10), open_sample(sample) as index:
        assert answers(index) == sound.answers
        settle(index)
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="wellhead"):
        assert seen(sample) == sound.answers
        assert findings(sample) == []
    assert caplog.records == []
    assert not {first, second, third} & set(segment_files(sample))


def test_a_flip_in_the_log_takes_back_whole_writes_or_is_named(sample: Path, tmp_path: Path) -> None:
    """SQLite ends its log at the first frame that is not sound: an older state, and a whole one."""
    dice, states = chance(), [Sound(sample).answers]
    copy, log = tmp_path / "copy", FILE_NAME + "-wal"
    with open_sample(sample) as index:
        for edition in (1, 2, 3):
            index.add([document(7, edition), document(12, edition), document(39, edition)])
            shutil.copytree(sample, copy, ignore=shutil.ignore_patterns("*-shm"), dirs_exist_ok=True)
            states.append(seen(copy))
    assert len({repr(state["acme", "documents"]) for state in states}) == 4
    data = (copy / log).read_bytes()
    reached = set()
    for turn in range(60):
        (copy / log).write_bytes(spoiled(data, dice) if turn % 3 else data[: dice.randrange(len(data))])
        found = seen(copy)
        fitting = [number for number, state in enumerate(states) if fits(found, state)]
        assert fitting, "answers of no whole state"
        if found == states[fitting[-1]]:
            reached.add(fitting[-1])
        else:
            assert findings(copy)
    assert reached >= {0, 1, 2}, "the damage was not spread over the log"


def fits(found: Answers, state: Answers) -> bool:
    """Whether each answer is that of a state, or an error, or tells by itself that vectors are missing."""
    return not wrong(found, state)


def wrong(found: Answers, state: Answers) -> list[tuple[str, str]]:
    blind = any(isinstance(one, Hits) and one.coverage.with_vectors < one.coverage.passages for one in found.values())
    told = (WellheadError, Hits, Explanation) if blind else WellheadError
    return [name for name, one in found.items() if not isinstance(one, told) and one != state[name]]


def spoiled(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def test_a_flip_in_an_index_of_an_older_format_is_harmless_or_stops_its_migration(tmp_path: Path) -> None:
    dice, kept, folder = chance(), Path(__file__).parents[1] / "fixtures" / "format-1" / FILE_NAME, tmp_path / "kb"
    data = kept.read_bytes()

    def migrated(changed: bytes) -> object:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(changed)
        with open_sample(folder) as index:
            handles = [index.scoped(tenant=tenant) for tenant in ("acme", "globex")]
            hits = [handle.search("replica backup FRY-4012 restore", k=50, cut="off") for handle in handles]
            documents = [list(handle.documents()) for handle in handles]
            passages = [handle.passages(one.id) for handle, own in zip(handles, documents, strict=True) for one in own]
            assert index.verify().ok
            return [[(hit.id, hit.score) for hit in one] for one in hits], documents, passages

    sound, refused = migrated(data), 0
    for _ in range(150):
        offset, bit = dice.randrange(len(data)), dice.randrange(8)
        changed = bytearray(data)
        changed[offset] ^= 1 << bit
        try:
            assert migrated(changed) == sound, f"bit {bit} of byte {offset}"
        except WellheadError as error:
            refused += 1
            assert error.fix  # noqa: PT017
    assert 10 < refused < 140


# --- writes over damage --------------------------------------------------------------------------------------------


def replace_two(index: Index) -> None:
    index.add([document(2, edition=5), document(3, edition=5)])


def remove_one(index: Index) -> None:
    index.scoped(tenant="acme").remove(document(7).id)


def after(folder: Path, changes: Sequence[Callable[[Index], None]]) -> tuple[Answers, int]:
    """What is seen after changes to a damaged index, and how many came through before one was refused."""
    done = 0
    try:
        with small_segments(10), open_sample(folder) as index:
            with suppress(WellheadError):
                for change in changes:
                    change(index)
                    done += 1
            with suppress(WellheadError):
                settle(index)
        with open_sample(folder, read_only=True) as index:
            return unnumbered(answers(index)), done
    except WellheadError:
        return {}, done


def unnumbered(found: Answers) -> Answers:
    """Without the version: that of a damaged index may have gone on."""
    return {
        name: msgspec.structs.replace(one, index_version=0) if isinstance(one, Hits) else one
        for name, one in found.items()
    }


@pytest.mark.parametrize("number", range(4))
def test_a_write_over_damage_does_what_it_should_or_is_refused(sample: Path, tmp_path: Path, number: int) -> None:
    """A damaged index of SQLite's leads a write astray: another document would be deleted, a word have two numbers."""
    dice, copy, changes = chance(), tmp_path / "copy", (replace_two, remove_one)
    states = []
    for many in range(3):
        shutil.copytree(sample, copy, dirs_exist_ok=True)
        found, done = after(copy, changes[:many])
        assert done == many
        states.append(found)
        shutil.rmtree(copy)
    assert states[0] != states[1] != states[2]
    leaves = index_leaves((sample / FILE_NAME).read_bytes())
    for turn in range(40):
        shutil.copytree(sample, copy)
        size = (copy / FILE_NAME).stat().st_size
        offset, bit = dice.choice(leaves) if turn % 2 else dice.randrange(size), dice.randrange(8)
        flip(copy / FILE_NAME, offset, bit)
        found, done = after(copy, changes)
        assert wrong(found, states[done]) == [], f"bit {bit} of byte {offset}: other answers after {done} writes"
        shutil.rmtree(copy)


PAGE = 4096


def index_leaves(data: bytes) -> list[int]:
    """The places of all bytes that hold entries of SQLite's indexes."""
    places: list[int] = []
    for start in range(PAGE, len(data), PAGE):
        if data[start] == 0x0A:
            places += range(start + int.from_bytes(data[start + 5 : start + 7], "big"), start + PAGE)
    return places


def entry(*values: bytes, row: int) -> bytes:
    """An entry of an index over texts, as SQLite stores it: the kinds, the texts, the number of the row."""
    kinds = bytes(13 + 2 * len(value) for value in values) + b"\1"
    return bytes([len(kinds) + 1]) + kinds + b"".join(values) + bytes([row])


def spoil(folder: Path, old: bytes, new: bytes) -> None:
    """Change bytes that stand in the file once."""
    data = (folder / FILE_NAME).read_bytes()
    assert data.count(old) == 1
    (folder / FILE_NAME).write_bytes(data.replace(old, new))


def small_store(folder: Path) -> EmbeddedStore:
    """Three documents, numbered from 1; their words are numbered in the order of their texts."""
    store = EmbeddedStore(folder)
    put(store, [Document(id=name, text=f"the {name} stands alone") for name in ("lion", "bear", "wolf")], scope="zoo")
    return store


def texts(store: EmbeddedStore) -> dict[str, str]:
    return {one.id: one.text for one in store.documents("zoo")}


MISLED = {
    "leads elsewhere": (entry(b"zoo", b"bear", row=2), entry(b"zoo", b"bear", row=3)),
    "is lost": (entry(b"zoo", b"bear", row=2), entry(b"zoo", b"bead", row=2)),
}


@pytest.mark.parametrize("how", MISLED)
@pytest.mark.parametrize("verb", ["remove", "replace", "read"])
def test_an_entry_of_a_document_that_is_damaged_harms_no_other(how: str, verb: str, tmp_path: Path) -> None:
    small_store(tmp_path).close()
    spoil(tmp_path, *MISLED[how])
    store = EmbeddedStore(tmp_path)
    try:
        if verb == "remove":
            assert store.delete("zoo", ["bear"]) == 1
            assert texts(store) == {name: f"the {name} stands alone" for name in ("lion", "wolf")}
        elif verb == "replace":
            put(store, [Document(id="bear", text="another text")], scope="zoo")
            assert texts(store) == {
                "bear": "another text",
                "lion": "the lion stands alone",
                "wolf": "the wolf stands alone",
            }
        else:
            view = store.view("zoo")
            assert [one.text for one in view.passages(view.rows_of("bear"))] == ["the bear stands alone"]
    except CorruptStore as error:
        assert error.fix  # noqa: PT017
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as raw:
            kept = raw.execute("SELECT text FROM texts NOT INDEXED ORDER BY doc").fetchall()
        assert kept == [(f"the {name} stands alone",) for name in ("lion", "bear", "wolf")]
    store.close()


def test_an_entry_that_leads_into_another_scope_shows_nothing_of_it(tmp_path: Path) -> None:
    store = small_store(tmp_path)
    put(store, [Document(id="secret", text="the plan stands alone")], scope="lab")
    store.close()
    spoil(tmp_path, entry(b"zoo", b"bear", row=2), entry(b"zoo", b"bear", row=4))
    store = EmbeddedStore(tmp_path)
    for ask in (store.states, store.summaries, lambda scope: list(store.documents(scope))):
        refusal(CorruptStore, lambda ask=ask: ask("zoo"))  # type: ignore[misc]
    store.close()


@pytest.mark.parametrize("how", ["leads elsewhere", "is lost"])
def test_an_entry_of_a_word_that_is_damaged_gives_no_other_answer(how: str, tmp_path: Path) -> None:
    store = small_store(tmp_path)
    with store._database.read() as connection:
        numbers = dict(connection.execute("SELECT word, term FROM terms").fetchall())
    store.close()
    old = entry(b"bear", row=numbers[b"bear"])
    spoil(tmp_path, old, entry(b"bear", row=numbers[b"alone"]) if how == "leads elsewhere" else old.replace(b"r", b"q"))
    store = EmbeddedStore(tmp_path)
    with suppress(CorruptStore):
        put(store, [Document(id="cub", text="a small bear")], scope="zoo")
        found = store.view("zoo").words.posting("bear")
        assert found is not None
        assert len(found.rows) == 2
        alone = store.view("zoo").words.posting("alone")
        assert alone is not None
        assert len(alone.rows) == 3
    store.close()


@pytest.mark.parametrize("name", ["version", "passage"])
def test_a_counter_that_is_gone_is_noticed(name: str, tmp_path: Path) -> None:
    small_store(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as raw:
        raw.execute("DELETE FROM counters WHERE name = ?", (name,))
        raw.commit()
    store = EmbeddedStore(tmp_path)
    refusal(CorruptStore, lambda: store.view("zoo"))
    refusal(CorruptStore, lambda: put(store, [Document(id="cub", text="a small bear")], scope="zoo"))
    assert store.verify()[3]
    store.close()


# --- what must be noticed, one by one ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small sound store, folded into one file."""
    folder = tmp_path_factory.mktemp("sound")
    store = EmbeddedStore(folder)
    documents = [
        Document(
            id=f"guides/{n:02d}.md", text=f"alpha number {n} UNIQUETEXT{n}\nshared line résumé", title=f"Guide {n}"
        )
        for n in range(8)
    ]
    put(store, documents, scope="acme")
    store.close()
    return (folder / FILE_NAME).read_bytes()


def damage(sound: bytes, folder: Path, offset: int, bit: int) -> None:
    """The sound store with one bit flipped, as a file in `folder`."""
    spoiled = bytearray(sound)
    spoiled[offset] ^= 1 << bit
    (folder / FILE_NAME).write_bytes(spoiled)


def verdict(folder: Path) -> list[str]:
    """What `verify` finds, as text."""
    store = EmbeddedStore(folder, read_only=True)
    try:
        return [f"{finding.kind} {finding.where} {finding.why}" for finding in store.verify()[3]]
    finally:
        store.close()


def read_all(folder: Path) -> None:
    store = EmbeddedStore(folder, read_only=True)
    try:
        view = store.view("acme")
        view.passages(range(len(view)))
        list(store.documents("acme"))
    finally:
        store.close()


@pytest.mark.parametrize("words", [b"UNIQUETEXT3", b"guides/05.md", b"Guide 2"])
def test_a_flip_in_stored_text_is_named(sound: bytes, tmp_path: Path, words: bytes) -> None:
    offset = sound.index(words)
    for bit in (0, 5):
        damage(sound, tmp_path, offset + len(words) - 1, bit)
        assert verdict(tmp_path), f"{words!r} bit {bit}"
        with pytest.raises(StoreError):
            read_all(tmp_path)


def test_a_flip_in_a_vector_is_named(sound: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(sound)
    store = EmbeddedStore(tmp_path, read_only=True)
    vector = np.array(vector_of(store.view("acme"), 3), dtype="<f4").tobytes()
    store.close()
    damage(sound, tmp_path, sound.index(vector) + 2, 3)
    assert any(line.startswith("vector ") for line in verdict(tmp_path))
    with pytest.raises(CorruptStore, match="vector"):
        read_all(tmp_path)


def test_a_flip_in_the_terms_of_a_passage_is_named(sound: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(sound)
    store = EmbeddedStore(tmp_path, read_only=True)
    with store._database.read() as connection:
        passage_id, words = connection.execute("SELECT id, words FROM passages WHERE passage = 5").fetchone()
    store.close()
    assert np.frombuffer(words, "<i4").reshape(-1, 2)[:, 1].all()
    damage(sound, tmp_path, sound.index(words) + 4, 1)
    with pytest.raises(CorruptStore, match=passage_id.decode()[:12]):
        read_all(tmp_path)
    assert verdict(tmp_path)


def test_a_damaged_document_can_be_removed_and_indexed_again(sound: bytes, tmp_path: Path) -> None:
    damage(sound, tmp_path, sound.index(b"UNIQUETEXT3") + 3, 1)
    store = EmbeddedStore(tmp_path)
    with pytest.raises(CorruptStore, match=r"guides/03\.md"):
        store.get("acme", "guides/03.md")
    again = store.get("acme", "guides/04.md")
    assert again is not None
    store.delete("acme", ["guides/03.md"])
    put(store, [Document(id="guides/03.md", text=again.text)], scope="acme")
    mended = store.get("acme", "guides/03.md")
    assert mended is not None
    assert mended.text == again.text
    assert store.verify()[3] == []
    store.close()
