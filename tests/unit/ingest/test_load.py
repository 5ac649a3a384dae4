"""Ingest: what is unchanged costs nothing, what is edited costs its own, and what fails is named and tried again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from wellhead.analyze import ANALYZER
from wellhead.backends.stores.memory import MemoryStore
from wellhead.errors import BackendError, ConfigError, IngestStopped
from wellhead.events import Event
from wellhead.ingest.chunk import Chunker, Slice, paragraph, structure
from wellhead.ingest.incoming import Incoming, Unread, batches
from wellhead.ingest.load import load
from wellhead.ingest.rows import Recipe, rows_of, vector_key
from wellhead.ingest.vectors import unit
from wellhead.ports import DocumentState
from wellhead.records import Document, Passage, Refusal, SyncReport
from wellhead.testing.fakes import HashEmbedder

GUIDE = "# Keys\n\nRotate keys monthly.\n\n# Logs\n\nLogs are kept a year.\n\n# Backups\n\nBackups run at night.\n"


class Spy(HashEmbedder):
    """Remembers every text that it was asked to embed; `spoil` says what becomes of a vector."""

    def __init__(self, spoil: Callable[[str, NDArray[np.float32]], NDArray[np.float32]] | None = None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.spoil = spoil

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        made = super().embed_documents(texts)
        return made if self.spoil is None else np.stack(list(map(self.spoil, texts, made)))


class House:
    """A store with its recipe, and what the embedder saw."""

    def __init__(
        self, embedder: HashEmbedder | None = None, *, model: str = "hash:16", chunk: Chunker = structure
    ) -> None:
        self.store = MemoryStore()
        self.spy = embedder or Spy()
        self.recipe = Recipe(
            chunk=chunk, chunker="structure", embedder=self.spy, model=model, analyzer=ANALYZER, languages=("en",)
        )

    def load(
        self, *documents: Document | Refusal, scope: str = "", origin: str = "", dry_run: bool = False
    ) -> SyncReport:
        incoming = (
            one if isinstance(one, Refusal) else Incoming(document=one, scope=scope, origin=origin) for one in documents
        )
        return load(incoming, self.store, self.recipe, dry_run=dry_run)

    def embeds(self, *documents: Document) -> list[str]:
        """What loading these documents asks of the embedder."""
        assert isinstance(self.spy, Spy)
        before = len(self.spy.asked)
        self.load(*documents)
        return self.spy.asked[before:]

    def passages(self, document_id: str, scope: str = "") -> list[Passage]:
        view = self.store.view(scope)
        return view.passages(view.rows_of(document_id))


def guide(text: str = GUIDE, **fields: object) -> Document:
    return Document(id="guide", text=text, media_type="text/markdown", **fields)  # type: ignore[arg-type]


# -- what is embedded -------------------------------------------------------------------------------------------------


@pytest.mark.promise("D24")
def test_an_unchanged_document_embeds_nothing_and_a_new_one_is_found_beside_it() -> None:
    house = House()
    assert len(house.embeds(guide())) == 3
    assert house.embeds(guide()) == []
    assert house.embeds(guide(), Document(id="new", text="A word about tokens.")) == ["A word about tokens."]
    posting = house.store.view("").words.posting("tokens")
    assert posting is not None


@pytest.mark.promise("B30")
def test_an_edit_embeds_only_the_passages_that_changed() -> None:
    house = House()
    house.load(guide())
    (asked,) = house.embeds(guide(GUIDE.replace("a year", "two years")))
    assert "two years" in asked
    assert house.store.counts()[0] == 3, "the vector of the old text is gone"


def test_a_report_counts_what_happened() -> None:
    house = House()
    first = house.load(guide(), Document(id="other", text="Something else."))
    assert (first.read, first.added, first.updated, first.unchanged) == (2, 2, 0, 0)
    assert (first.passages, first.embedded, first.reused) == (4, 4, 0)
    second = house.load(guide(GUIDE.replace("a year", "two years")), Document(id="other", text="Something else."))
    assert (second.read, second.added, second.updated, second.unchanged) == (2, 0, 1, 1)
    assert (second.passages, second.embedded, second.reused) == (3, 1, 2)
    assert second.complete


def test_an_edit_of_the_metadata_alone_is_seen_and_embeds_nothing() -> None:
    house = House()
    house.load(guide(metadata={"team": "a"}))
    assert house.embeds(guide(metadata={"team": "b"})) == []
    assert {passage.metadata["team"] for passage in house.passages("guide")} == {"b"}
    assert house.embeds(guide(metadata={"team": True})) == []
    assert {passage.metadata["team"] for passage in house.passages("guide")} == {True}


@pytest.mark.promise("D29")
def test_title_and_headings_are_embedded_and_searched_and_metadata_is_not() -> None:
    house = House()
    asked = house.embeds(
        guide(title="Handbook", metadata={"label": "topsecret", "team": "blue"}, uri="https://x.test/y")
    )
    assert asked[0].startswith("Handbook\n")
    assert all("Handbook" in text for text in asked)
    assert "Logs" in asked[1]
    assert not any(word in text for text in asked for word in ("topsecret", "blue", "x.test"))
    words = house.store.view("").words
    assert words.posting("handbook") is not None
    assert words.posting("topsecret") is None


def test_another_title_or_heading_is_embedded_again() -> None:
    house = House()
    house.load(guide(title="Handbook"))
    assert len(house.embeds(guide(title="Manual"))) == 3
    assert len(house.embeds(guide(GUIDE.replace("# Logs", "# Journals"), title="Manual"))) == 1


def test_equal_texts_share_one_vector_and_keep_every_place() -> None:
    house = House()
    report = house.load(*(Document(id=f"d{n}", text="The same words.", uri=f"https://x.test/{n}") for n in range(4)))
    assert (report.passages, report.embedded, report.reused) == (4, 1, 3)
    assert house.store.counts()[0] == 1
    assert {house.passages(f"d{n}")[0].uri for n in range(4)} == {f"https://x.test/{n}" for n in range(4)}
    assert house.embeds(Document(id="d9", text="The same words.")) == []


def test_a_dry_run_says_what_would_be_and_writes_nothing() -> None:
    house = House()
    house.load(Document(id="d", text="old"))
    report = house.load(guide(), Document(id="d", text="old"), Document(id="e", text="old"), dry_run=True)
    assert (report.read, report.added, report.unchanged, report.passages, report.embedded) == (3, 2, 1, 4, 3)
    assert report.dry_run
    assert set(house.store.states("")) == {"d"}


# -- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B29")
@pytest.mark.promise("D25")
@pytest.mark.promise("D26")
def test_an_id_survives_edits_elsewhere_and_tells_the_document_and_whether_the_text_changed() -> None:
    house = House()
    house.load(guide())
    before = {passage.heading[-1]: passage for passage in house.passages("guide")}
    house.load(guide("# Preface\n\nRead this first.\n\n" + GUIDE.replace("a year", "two years")))
    after = {passage.heading[-1]: passage for passage in house.passages("guide")}
    for heading in ("Keys", "Backups"):
        assert after[heading].id == before[heading].id
        assert after[heading].content_hash == before[heading].content_hash
        assert after[heading].ordinal == before[heading].ordinal + 1
    assert after["Logs"].id != before["Logs"].id
    assert after["Logs"].content_hash != before["Logs"].content_hash
    for passage in after.values():
        assert passage.document_id == "guide"
        assert passage.content_hash == hashlib.sha256(passage.text.encode()).hexdigest()[:12]


def test_the_same_text_twice_in_one_document_has_two_ids() -> None:
    house = House(chunk=lambda document: [Slice(start=0, end=4), Slice(start=5, end=9)])
    house.load(Document(id="d", text="same same"))
    first, second = house.passages("d")
    assert first.id != second.id
    assert first.content_hash == second.content_hash


def test_the_same_text_in_two_documents_or_scopes_has_two_ids() -> None:
    house = House()
    house.load(Document(id="a", text="same"), Document(id="b", text="same"))
    house.load(Document(id="a", text="same"), scope="acme")
    ids = {house.passages("a")[0].id, house.passages("b")[0].id, house.passages("a", "acme")[0].id}
    assert len(ids) == 3
    assert all(len(name) == 64 for name in ids)


parts = st.lists(st.text(max_size=6), min_size=4, max_size=4)


@given(parts, parts)
@settings(max_examples=80)
def test_no_two_vectors_share_a_key(one: list[str], other: list[str]) -> None:
    assert (vector_key(*one) == vector_key(*other)) == (one == other)


def test_a_key_does_not_run_its_parts_together() -> None:
    assert vector_key("m", "document", "", "ab") != vector_key("m", "documenta", "", "b")
    assert vector_key("m:16", "document", "", "a") != vector_key("m:1", "6document", "", "a")
    assert vector_key("m", "document", "", "a") != vector_key("m", "query", "", "a")
    assert vector_key("m", "document", "a", "b") != vector_key("m", "document", "", "a\nb")


class Placed(Spy):
    """Asks for the context by itself."""

    def embed_passages(self, contexts: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed_documents([f"{text} IN {context}" for context, text in zip(contexts, texts, strict=True)])


def test_an_embedder_gets_the_context_by_itself_where_it_can_weigh_it_and_else_before_the_text() -> None:
    document = Document(id="a", text="Rotate them.", title="Keys")
    assert House(Placed()).embeds(document) == ["Rotate them. IN Keys"]
    assert House(Spy()).embeds(document) == ["Keys\nRotate them."]


def test_a_word_of_the_title_or_a_heading_counts_twice_among_the_terms() -> None:
    document = Document(
        id="a", text="# Rotation\n\nRotate keys.", title="Keys", language="en", media_type="text/markdown"
    )
    (row,) = rows_of(document, "", House().recipe)
    assert row.passage.context == "Keys"
    assert row.terms.words == {"keys": 3, "rotation": 1, "rotate": 1}


@pytest.mark.promise("D27")
def test_another_model_is_another_vector_and_another_document_to_write() -> None:
    house = House()
    house.load(guide())
    other = House(house.spy, model="hash@2:16")
    other.store = house.store
    assert len(other.embeds(guide())) == 3
    assert other.embeds(guide()) == []


# -- what fails -------------------------------------------------------------------------------------------------------


SPOILT = {"nan": np.nan, "inf": np.inf, "zeros": 0.0}


@pytest.mark.parametrize("kind", SPOILT)
def test_a_vector_that_is_none_leaves_its_passage_out_until_the_next_run(kind: str) -> None:
    spy = Spy(lambda text, vector: vector * 0 + SPOILT[kind] if "Logs" in text else vector)
    house = House(spy)
    report = house.load(guide(), Document(id="other", text="Something else."))
    assert [passage.ordinal for passage in house.passages("guide")] == [0, 2]
    assert [(refusal.id, "zeros" in refusal.reason) for refusal in report.failed] == [("guide#1", True)]
    assert not report.complete
    assert house.store.states("")["guide"].incomplete
    assert len(house.passages("other")) == 1
    spy.spoil = None
    assert [text.count("Logs") > 0 for text in house.embeds(guide())] == [True]
    assert len(house.passages("guide")) == 3
    assert not house.store.states("")["guide"].incomplete


@pytest.mark.parametrize("scale", [1e-40, 1e-3, 1e3, 3e38])
def test_vectors_of_any_length_are_scaled_to_unit_length(scale: float) -> None:
    scaled = unit(np.full(8, scale, np.float32))
    assert scaled is not None
    assert float(np.linalg.norm(scaled.astype(np.float64))) == pytest.approx(1.0, abs=1e-6)
    assert scaled.dtype == np.float32


@pytest.mark.parametrize(
    "made",
    [np.zeros((3, 15), np.float32), np.zeros((2, 16), np.float32), np.zeros(16, np.float32), np.zeros((3, 16, 1))],
)
def test_vectors_of_another_shape_are_the_operators_fault(made: NDArray[np.float32]) -> None:
    class Wrong(Spy):
        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return made

    house = House(Wrong())
    with pytest.raises(ConfigError, match="shape"):
        house.load(guide())
    assert house.store.states("") == {}


class FailsAt(Spy):
    """Raises when it meets a text that holds a word."""

    word = ""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.word and any(self.word in text for text in texts):
            raise TimeoutError("no answer")
        return super().embed_documents(texts)


def test_a_run_that_the_embedder_stops_keeps_its_batches_and_the_next_one_goes_on() -> None:
    spy = FailsAt()
    spy.word = "number 99"
    house = House(spy)
    documents = [Document(id=f"d{n:03}", text=f"This is number {n}.") for n in range(150)]
    with pytest.raises(IngestStopped, match="run it again") as caught:
        house.load(*documents)
    report = caught.value.report
    assert isinstance(caught.value, BackendError)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert report is not None
    written = len(house.store.states(""))
    assert 0 < written < 100
    assert (report.read, report.added, report.passages, report.embedded) == (written,) * 4
    assert "TimeoutError" in report.stopped
    assert not report.complete
    spy.word = ""
    asked = house.embeds(*documents)
    assert len(asked) == 150 - written
    assert len(house.store.states("")) == 150


def test_a_chunker_that_gives_no_slice_of_the_text_has_its_document_refused_and_the_others_taken() -> None:
    def chunk(document: Document) -> list[Slice]:
        return [Slice(start=0, end=len(document.text) + (5 if document.id == "bad" else 0))]

    house = House(chunk=chunk)
    report = house.load(
        Document(id="good", text="fine"), Document(id="bad", text="short"), Document(id="too", text="ok")
    )
    assert (report.read, report.added) == (2, 2)
    assert [refusal.id for refusal in report.refused] == ["bad"]
    assert set(house.store.states("")) == {"good", "too"}


BROKEN = {
    "raises": (lambda document: [][1], "IndexError"),
    "gives None": (lambda document: None, "TypeError"),
    "gives tuples": (lambda document: [(0, 5)], "ValidationError"),
    "gives no numbers": (lambda document: [Slice(start=0, end="5")], "ValidationError"),  # type: ignore[arg-type]
    "gives no heading": (lambda document: [Slice(start=0, end=5, heading="A")], "ValidationError"),  # type: ignore[arg-type]
    "gives half a heading": (lambda document: [Slice(start=0, end=5, heading=("\ud800",))], "UnicodeEncodeError"),
    "gives half a context": (lambda document: [Slice(start=0, end=5, context="\ud800")], "UnicodeEncodeError"),
    "goes backwards": (lambda document: [Slice(start=5, end=9), Slice(start=0, end=4)], "out of order"),
    "stands still": (lambda document: [Slice(start=0, end=5), Slice(start=0, end=5)], "out of order"),
    "holds the one before": (lambda document: [Slice(start=1, end=9), Slice(start=2, end=8)], "out of order"),
    "counts from the end": (lambda document: [Slice(start=-5, end=-1)], "outside the text"),
    "is too long": (lambda document: [Slice(start=0, end=500)], "outside the text"),
    "is blank": (lambda document: [Slice(start=4, end=5)], "blank slice"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_chunker_that_fails_at_a_document_has_it_refused_and_the_run_goes_on(kind: str) -> None:
    broken, says = BROKEN[kind]
    house = House(chunk=lambda document: broken(document) if document.id == "bad" else structure(document))  # type: ignore[no-any-return, no-untyped-call]
    report = house.load(
        Document(id="good", text="fine"), Document(id="bad", text="four words of text"), Document(id="too", text="ok")
    )
    assert [(refusal.id, says in refusal.reason) for refusal in report.refused] == [("bad", True)]
    assert set(house.store.states("")) == {"good", "too"}


def test_windows_of_a_chunker_may_overlap() -> None:
    house = House(chunk=lambda document: [Slice(start=0, end=10), Slice(start=5, end=18)])
    assert house.load(Document(id="d", text="four words of text")).passages == 2


def test_a_title_or_heading_without_end_is_clipped_in_what_is_embedded() -> None:
    house = House(chunk=lambda document: [Slice(start=n, end=n + 4, heading=("head " * 9000,)) for n in (0, 5, 10)])
    house.load(Document(id="d", text="some text here", title="long\n" * 9000))
    contexts = [passage.context.split("\n") for passage in house.passages("d")]
    assert [[len(line) for line in context] for context in contexts] == [[200, 200]] * 3
    assert contexts[0][0].startswith("long long")


def test_a_tokenizer_that_fails_stops_the_run_as_an_embedder_does() -> None:
    class Broken(Windowed):
        def token_starts(self, text: str) -> list[int]:
            raise KeyError(text)

    house = House(Broken())
    with pytest.raises(IngestStopped, match="KeyError") as caught:
        house.load(guide())
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_was_embedded_before_the_embedder_failed_is_kept_as_far_as_it_makes_whole_documents() -> None:
    class Tires(Spy):
        def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(self.asked) >= 128:
                raise TimeoutError
            return super().embed_documents(texts)

    tired = Tires()
    house = House(tired)
    documents = [
        Document(id=f"d{n:02}", text=GUIDE.replace(".", f" {n}."), media_type="text/markdown") for n in range(60)
    ]
    with pytest.raises(IngestStopped) as caught:
        house.load(*documents)
    report = caught.value.report
    assert report is not None
    assert len(tired.asked) == 128
    assert (report.read, report.passages, report.embedded) == (42, 126, 126), "two passages of a 43rd were embedded too"
    assert sorted(house.store.states("")) == [f"d{n:02}" for n in range(42)]
    tired.asked.clear()
    assert len(house.embeds(*documents[:60:2])) == 9 * 3
    assert house.load(*documents[:42]).unchanged == 42


def test_a_blank_document_has_no_passage_and_is_no_failure() -> None:
    house = House()
    blank, empty = Document(id="blank", text=" \n\n\t"), Document(id="empty", text="")
    report = house.load(blank, empty, guide())
    assert (report.read, report.added, report.passages, report.complete) == (3, 3, 3, True)
    assert report.without_passages == 2, "nothing of them can be found, and that is said"
    assert "2 documents hold no passage" in str(report)
    assert len(house.store.view("")) == 3


@pytest.mark.parametrize("dry_run", [False, True])
def test_paragraphs_that_the_chunker_drops_are_told(dry_run: bool) -> None:
    house = House(chunk=paragraph)
    report = house.load(Document(id="d", text="Short one.\n\nShort two."), dry_run=dry_run)
    assert (report.added, report.passages, report.without_passages) == (1, 0, 1)


def test_two_documents_of_one_id_in_one_run_are_refused_but_for_the_first() -> None:
    house = House()
    report = house.load(Document(id="a", text="first"), Document(id="a", text="second"))
    assert [(refusal.id, refusal.reason) for refusal in report.refused] == [
        ("a", "another document of this run has the same id")
    ]
    assert house.passages("a")[0].text == "first"
    assert not report.complete


def test_a_folder_does_not_take_over_what_another_one_holds() -> None:
    house = House()
    house.load(Document(id="a", text="ours"), origin="docs")
    report = house.load(Document(id="a", text="theirs"), origin="wiki")
    assert "'docs'" in report.refused[0].reason
    assert house.passages("a")[0].text == "ours"


@pytest.mark.parametrize("text", ["ours", "by hand"])
def test_what_a_program_adds_is_its_own_from_then_on(text: str) -> None:
    house = House()
    house.load(Document(id="a", text="ours"), origin="docs")
    assert house.load(Document(id="a", text=text)).updated == 1
    assert house.store.states("")["a"].origin == ""
    assert house.load(Document(id="a", text=text)).unchanged == 1
    report = house.load(Document(id="a", text="ours"), origin="docs")
    assert "a program that added it" in report.refused[0].reason
    assert house.passages("a")[0].text == text


@pytest.mark.parametrize(
    ("owner", "origin", "says"),
    [
        ("docs", "docs/guide.md", "index the folder 'docs' instead"),
        ("docs", "docs/team", "index the folder 'docs' instead"),
        (".", "docs", "index the folder '.' instead"),
        ("..", "../other", "index the folder '..' instead"),
        ("docs/guide.md", "docs", "was indexed by itself"),
        ("docs", "../docs", "pass origin='docs' (--origin docs)"),
        ("docs", "../../elsewhere/docs", "pass origin='docs' (--origin docs)"),
        ("docs", "docs2", "a prefix of their own"),
        (".", "../other", "a prefix of their own"),
    ],
)
def test_a_refused_id_comes_with_the_way_out(owner: str, origin: str, says: str) -> None:
    house = House()
    house.load(Document(id="a", text="first"), origin=owner)
    assert says in house.load(Document(id="a", text="second"), origin=origin).refused[0].reason


def test_equal_content_shows_that_a_folder_was_renamed() -> None:
    house = House()
    house.load(Document(id="a", text="same"), origin="docs")
    reason = house.load(Document(id="a", text="same"), origin="handbook").refused[0].reason
    assert "pass origin='docs' (--origin docs)" in reason


def test_refusals_of_the_stream_are_reported_and_the_run_goes_on() -> None:
    refusal = Refusal(id="broken.pdf", reason="no reader")
    report = House().load(Document(id="a", text="one"), refusal, Document(id="b", text="two"))
    assert (report.read, report.refused, report.complete) == (2, (refusal,), False)


class Windowed(Spy):
    """Reads six words at most."""

    window = 6

    def token_starts(self, text: str) -> list[int]:
        return [
            place
            for place, letter in enumerate(text)
            if not letter.isspace() and (place == 0 or text[place - 1].isspace())
        ]


def test_a_text_longer_than_the_models_window_is_named_and_not_cut_in_silence() -> None:
    house = House(Windowed())
    report = house.load(
        Document(id="long", text="one two three four five six seven"), Document(id="short", text="one two")
    )
    assert [refusal.id for refusal in report.failed] == ["long#0"]
    assert "7 tokens" in report.failed[0].reason
    assert "reads 6" in report.failed[0].reason
    assert house.spy.asked == ["one two"]  # type: ignore[attr-defined]


def test_progress_and_events_count_up_to_the_end() -> None:
    house = House()
    steps: list[tuple[int, int, str]] = []
    events: list[Event] = []
    documents = [
        Incoming(document=Document(id=f"d{n:03}", text=f"number {n}"), scope="", origin="") for n in range(130)
    ]
    load(
        documents,
        house.store,
        house.recipe,
        total=130,
        progress=lambda *step: steps.append(step),
        sinks=[events.append],
    )
    assert [done for done, _, _ in steps] == sorted(done for done, _, _ in steps)
    assert steps[-1] == (130, 130, "d129")
    assert len(events) == len(steps) > 1


def test_a_run_asks_once_and_only_for_the_documents_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding one by one would otherwise read the whole index each time, and adding many ask for each."""
    house = House()
    house.load(*(Document(id=f"d{n}", text=f"text {n}") for n in range(5)))
    asked: list[Sequence[str] | None] = []
    states = house.store.states

    def spied(scope: str, ids: Sequence[str] | None = None) -> dict[str, DocumentState]:
        asked.append(ids)
        return states(scope, ids)

    monkeypatch.setattr(house.store, "states", spied)
    assert house.load(Document(id="d3", text="text 3"), Document(id="new", text="x")).unchanged == 1
    assert asked == [["d3", "new"]]


# -- files that are still bytes ---------------------------------------------------------------------------------------


class Files:
    """Files by name, as a folder hands them in; remembers which were read into documents."""

    def __init__(self, house: House, origin: str = "docs") -> None:
        self.house = house
        self.origin = origin
        self.read: list[str] = []

    def unread(self, name: str, text: str | None, revision: str = "") -> Unread:
        """A file whose source is over its text and how it is read; None for one that holds nothing to index."""
        source = hashlib.sha256(f"{text}{revision}".encode()).digest()

        def read() -> Incoming | None:
            self.read.append(name)
            if text is None:
                return None
            document = Document(id=name, text=text.strip())
            return Incoming(document=document, scope="", origin=self.origin, source=source)

        return Unread(id=name, scope="", origin=self.origin, source=source, size=len(text or ""), read=read)

    def load(self, *items: Unread | Refusal, dry_run: bool = False) -> SyncReport:
        self.read.clear()
        return load(items, self.house.store, self.house.recipe, dry_run=dry_run)


@pytest.mark.promise("D24")
def test_a_file_whose_source_is_stored_is_not_read() -> None:
    files = Files(House())
    both = [files.unread("a", "one"), files.unread("b", "two")]
    assert (files.load(*both).added, files.read) == (2, ["a", "b"])
    report = files.load(*both)
    assert (report.read, report.unchanged, files.read) == (2, 2, [])
    report = files.load(files.unread("a", "one"), files.unread("b", "three"))
    assert (report.unchanged, report.updated, files.read) == (1, 1, ["b"])


def test_a_file_is_read_when_its_document_is_incomplete_or_gone() -> None:
    files = Files(House())
    files.load(files.unread("a", "one"), files.unread("b", "two"))
    files.house.store.delete("", ["a"])
    key = vector_key(files.house.recipe.model, "document", "", "two")
    del files.house.store._vectors[key]
    report = files.load(files.unread("a", "one"), files.unread("b", "two"))
    assert (report.added, report.updated, report.embedded, files.read) == (1, 1, 2, ["a", "b"])


def test_a_file_of_another_origin_is_read_and_compared() -> None:
    house = House()
    Files(house).load(Files(house).unread("a", "one"))
    other = Files(house, origin="handbook")
    (refusal,) = other.load(other.unread("a", "one")).refused
    assert "pass origin='docs'" in refusal.reason
    assert other.read == ["a"]


def test_a_document_that_a_program_added_is_no_file_any_more() -> None:
    files = Files(House())
    files.load(files.unread("a", "one"))
    files.house.load(Document(id="a", text="one"))
    assert files.house.store.states("")["a"].source == b""
    assert "a program that added it" in files.load(files.unread("a", "one")).refused[0].reason


def test_bytes_that_hold_the_same_document_are_read_once() -> None:
    files = Files(House())
    files.load(files.unread("a", "one"), files.unread("b", "two"))
    version = files.house.store.version()
    edited = [files.unread("a", "one  "), files.unread("b", "two")]
    assert (files.load(*edited, dry_run=True).unchanged, files.read) == (2, ["a"])
    assert (files.load(*edited).unchanged, files.read) == (2, ["a"]), "a dry run remembers nothing"
    assert (files.load(*edited).unchanged, files.read) == (2, [])
    assert files.house.store.version() == version


def test_a_store_that_may_not_be_written_to_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(House())
    files.load(files.unread("a", "one"))
    monkeypatch.setattr(MemoryStore, "read_only", True)
    assert files.load(files.unread("a", "one ")).unchanged == 1
    assert files.load(files.unread("a", "one ")).unchanged == 1
    assert files.read == ["a"]


def test_a_file_that_holds_nothing_is_in_no_batch() -> None:
    files = Files(House())
    told: list[tuple[int, int, str]] = []
    items = [files.unread(f"d{n:03}", None if n % 2 else f"number {n}") for n in range(150)]
    report = load(items, files.house.store, files.house.recipe, total=150, progress=lambda *step: told.append(step))
    assert (report.read, report.added, report.refused) == (75, 75, ())
    assert told == [(64, 150, "d126"), (75, 150, "d148")]
    told.clear()
    load(items, files.house.store, files.house.recipe, total=150, progress=lambda *step: told.append(step))
    assert told == [(64, 150, "d126"), (75, 150, "d148")], "unchanged files are told as those that were read"


def test_a_file_and_a_document_of_one_id_in_one_run_do_not_both_count() -> None:
    files = Files(House())
    files.load(files.unread("a", "one"))
    same = files.unread("a", "one")
    other = Incoming(document=Document(id="a", text="two"), scope="", origin="docs")
    report = load([same, other], files.house.store, files.house.recipe)
    assert (report.unchanged, [refusal.id for refusal in report.refused]) == (1, ["a"])


@given(st.lists(st.integers(0, 9), max_size=300), st.integers(1, 20), st.integers(1, 64))
@settings(max_examples=60)
def test_batches_keep_the_order_and_end_at_the_limit(sizes: list[int], limit: int, most: int) -> None:
    parts = list(batches(sizes, lambda size: size, limit, lambda: most))
    assert [size for part in parts for size in part] == sizes
    for part in parts:
        assert 0 < len(part) <= most
        assert sum(part[:-1]) < limit
    for part in parts[:-1]:
        assert len(part) == most or sum(part) >= limit


@pytest.mark.parametrize(("quick", "expected"), [(3600.0, [64, 320, 576, 600]), (0.0, [64, 128, 192])])
def test_batches_grow_only_where_they_are_quick(
    monkeypatch: pytest.MonkeyPatch, quick: float, expected: list[int]
) -> None:
    """What a kill can cost is the work of a moment, whatever the embedder."""
    house = House()
    monkeypatch.setattr("wellhead.ingest.load._QUICK_S", quick)
    told: list[int] = []
    incoming = (Incoming(document=Document(id=f"d{n:03}", text=f"text {n}"), scope="", origin="") for n in range(600))
    load(incoming, house.store, house.recipe, progress=lambda done, total, last: told.append(done))
    assert told[: len(expected)] == expected
