"""Where labels stand now: in place, moved, stale; and which passages cover them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellhead import Document, Index
from wellhead.bench.labels import Label, LabelledQuery, Labels, Span
from wellhead.bench.resolve import Resolved, Standing, check_fresh, covering, resolve, resolve_in
from wellhead.errors import UsageError
from wellhead.ingest.chunk import Slice
from wellhead.records import Passage

TEXT = "# Keys\n\nRotate a key once a year. The old one stays valid for an hour.\n\nRotate a key.\n"


def labels(*given: Label, query_id: str = "q1") -> Labels:
    return Labels(queries=(LabelledQuery(query_id=query_id, answers=given),))


def standing(text: str | None, *, quote: str = "", span: Span | None = None) -> Standing:
    (found,) = resolve(labels(Label(document_id="d", quote=quote, span=span, grade=1)), {"d": text}).standings
    return found


def at(quote: str, text: str = TEXT, nth: int = 0) -> Span:
    start = -1
    for _ in range(nth + 1):
        start = text.index(quote, start + 1)
    return start, start + len(quote)


def passage(start: int, end: int) -> Passage:
    return Passage(id=f"{start}-{end}", document_id="d", ordinal=start, text="x" * (end - start), start=start, end=end)


class TestInPlace:
    def test_a_quote_at_its_span(self) -> None:
        found = standing(TEXT, quote="once a year", span=at("once a year"))
        assert (found.state, found.span, found.note) == ("in place", at("once a year"), "")

    def test_a_quote_without_a_span_is_found(self) -> None:
        found = standing(TEXT, quote="once a year")
        assert (found.state, found.span, found.note) == ("in place", at("once a year"), "")

    def test_of_several_the_first_is_taken_and_said_so(self) -> None:
        found = standing(TEXT, quote="Rotate a key")
        assert (found.state, found.span) == ("in place", at("Rotate a key"))
        assert found.note == "it stands there 2 times, the first was taken"

    def test_a_quote_without_a_span_may_have_other_white_space(self) -> None:
        found = standing(TEXT, quote="an hour. Rotate")
        assert (found.state, found.span) == ("in place", at("an hour.\n\nRotate"))
        assert found.note == "found with white space collapsed"

    def test_a_label_of_a_document_stands_while_the_document_does(self) -> None:
        found = standing("anything else")
        assert (found.state, found.span, found.note) == ("in place", None, "")

    def test_a_span_without_a_quote_is_taken_at_its_word(self) -> None:
        found = standing(TEXT, span=(0, 6))
        assert (found.state, found.span) == ("in place", (0, 6))
        assert "whether it moved cannot be told" in found.note


class TestMoved:
    def test_a_quote_that_stands_elsewhere(self) -> None:
        edited = "A new line.\n\n" + TEXT
        found = standing(edited, quote="once a year", span=at("once a year"))
        assert (found.state, found.span, found.note) == ("moved", at("once a year", edited), "")

    def test_of_several_the_nearest_is_taken(self) -> None:
        near_the_end = (len(TEXT) - 13, len(TEXT) - 1)
        assert standing(TEXT, quote="Rotate a key", span=near_the_end).span == at("Rotate a key", nth=1)
        assert standing(TEXT, quote="Rotate a key", span=(9, 21)).span == at("Rotate a key")

    def test_of_two_that_are_equally_near_the_first_is_taken(self) -> None:
        assert standing("ab..ab", quote="ab", span=(2, 4)).span == (0, 2)

    def test_places_may_overlap(self) -> None:
        assert standing("aaaab", quote="aaa", span=(2, 5)).span == (1, 4)

    def test_exact_goes_before_collapsed_however_far(self) -> None:
        text = "one\ntwo" + "." * 50 + "one two"
        assert standing(text, quote="one two", span=(0, 7)).span == at("one two", text)

    def test_a_text_that_was_wrapped_anew(self) -> None:
        wrapped = TEXT.replace("once a year", "once\n   a year")
        found = standing(wrapped, quote="once a year", span=at("once a year"))
        assert (found.state, found.span) == ("moved", at("once\n   a year", wrapped))
        assert found.note == "found with white space collapsed"

    def test_what_looks_like_a_pattern_is_text(self) -> None:
        text = "call f(x)  [a-z]* now"
        assert standing(text, quote="f(x) [a-z]*").span == at("f(x)  [a-z]*", text)


class TestStale:
    def test_a_quote_that_is_gone(self) -> None:
        found = standing(TEXT, quote="twice a year", span=(3, 15))
        assert (found.state, found.span, found.note) == ("stale", None, "the text does not hold the quote")

    def test_a_document_that_is_gone(self) -> None:
        for resolved in (resolve(labels(Label(document_id="x", grade=1)), {}), Resolved(standings=(standing(None),))):
            (found,) = resolved.stale
            assert found.note == "the document is gone"

    def test_a_span_beyond_the_text(self) -> None:
        found = standing("short", span=(3, 30))
        assert (found.state, found.span) == ("stale", None)
        assert "the text ends at 5" in found.note

    def test_it_goes_by_query_document_and_the_quote_shortened(self) -> None:
        found = standing("", quote="One two\nthree " * 9)
        assert found.name == f"q1, d, {('One two three ' * 9)[:57] + '...'!r}"
        assert standing(None).name == "q1, d"


@given(st.text("ab \n", max_size=40), st.text("ab \n", min_size=1, max_size=4), st.integers(0, 40))
def test_what_is_found_holds_the_quote_and_what_is_stale_does_not(text: str, quote: str, start: int) -> None:
    if not quote.strip():
        quote = "a" * len(quote)
    found = standing(text, quote=quote, span=(start, start + len(quote)))
    if found.span is None:
        assert " ".join(quote.split()) not in " ".join(text.split()) or quote.strip() != quote
        return
    held = text[found.span[0] : found.span[1]]
    assert held == quote if quote in text else held.split() == quote.split()
    if found.state == "moved" and quote in text:
        nearer = range(max(0, start - abs(found.span[0] - start) + 1), start + abs(found.span[0] - start))
        assert [place for place in nearer if text[place : place + len(quote)] == quote] == []


class TestCovering:
    def test_one_that_holds_it_whole_is_enough(self) -> None:
        passages = [passage(0, 10), passage(8, 20), passage(5, 15)]
        assert covering(passages, (9, 12)) == [passage(8, 20), passage(5, 15)]

    def test_else_all_that_hold_a_part(self) -> None:
        passages = [passage(0, 10), passage(10, 20), passage(20, 30), passage(30, 40)]
        assert covering(passages, (5, 25)) == passages[:3]

    def test_a_neighbour_that_only_touches_it_holds_nothing(self) -> None:
        assert covering([passage(0, 5), passage(9, 12)], (5, 9)) == []


@given(st.data())
def test_the_passages_that_cover_a_span_together_hold_all_of_it(data: st.DataObject) -> None:
    text = data.draw(st.text(min_size=1, max_size=60))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text)), max_size=8)) | {0, len(text)})
    overlap = data.draw(st.integers(0, 5))
    passages = [passage(max(0, start - overlap), end) for start, end in itertools.pairwise(cuts)]
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    covers = covering(passages, (start, end))
    held = {place for one in covers for place in range(one.start, one.end)}
    assert set(range(start, end)) <= held
    assert all(one.start < end and start < one.end for one in covers)
    whole = [one for one in passages if one.start <= start and end <= one.end]
    assert covers == (whole or covers)


class TestCheckFresh:
    RESOLVED = Resolved(
        standings=(
            standing(TEXT, quote="once a year"),
            standing("", quote="an hour"),
            Standing(query_id="q2", label=Label(document_id="e", grade=1), state="stale", note="the document is gone"),
        )
    )

    def test_each_stale_label_is_named_with_its_reason(self) -> None:
        with pytest.raises(UsageError, match="2 labels are stale") as caught:
            check_fresh(self.RESOLVED, where="labels.jsonl")
        assert caught.value.where == "labels.jsonl"
        assert caught.value.why == ("q1, d, 'an hour': the text does not hold the quote; q2, e: the document is gone")

    @pytest.mark.parametrize("name", ["q1", "q1:d"])
    def test_what_is_allowed_by_name_is_not_named(self, name: str) -> None:
        with pytest.raises(UsageError, match="1 label is stale") as caught:
            check_fresh(self.RESOLVED, allow=[name])
        assert caught.value.why == "q2, e: the document is gone"

    def test_nothing_is_refused_where_all_is_allowed(self) -> None:
        assert check_fresh(self.RESOLVED, allow=["q1:d", "q2"]) == ()

    def test_an_allowance_that_is_not_needed_is_given_back(self) -> None:
        fresh = Resolved(standings=(standing(TEXT, quote="once a year"),))
        assert check_fresh(fresh, allow=["q1"]) == ("q1",)

    def test_an_allowance_for_nobody_is_a_slip(self) -> None:
        with pytest.raises(UsageError, match="no label has the name 'q11'") as caught:
            check_fresh(self.RESOLVED, allow=["q11"])
        assert "'q1'" in caught.value.fix


def by_line(document: Document) -> list[Slice]:
    starts = [0, *(place + 1 for place, character in enumerate(document.text) if character == "\n")]
    ends = [*starts[1:], len(document.text)]
    places = zip(starts, ends, strict=True)
    return [Slice(start=start, end=end) for start, end in places if document.text[start:end].strip()]


def halves(document: Document) -> list[Slice]:
    middle = len(document.text) // 2
    return [Slice(start=0, end=middle), Slice(start=middle, end=len(document.text))]


def head_only(document: Document) -> list[Slice]:
    return [Slice(start=0, end=6)]


@pytest.mark.parametrize("chunker", [by_line, halves])
def test_an_index_gives_the_passages_whatever_cut_them(chunker: object) -> None:
    index = Index.open(":memory:", chunker=chunker)  # type: ignore[arg-type]
    index.add([Document(id="d", text=TEXT), Document(id="d2", text=TEXT)])
    quote = "for an hour.\n\nRotate"
    resolved = resolve_in(index, labels(Label(document_id="d", quote=quote, grade=2)))
    (found,) = resolved.in_place
    texts = {one.id: one.text for one in index.passages("d")}
    assert set(found.passages) <= set(texts)
    assert "".join("".join(texts[name] for name in found.passages).split()).count("foranhour.Rotate") == 1


def test_a_document_that_the_index_lacks_is_stale() -> None:
    index = Index.open(":memory:")
    index.add([Document(id="d", text=TEXT)])
    resolved = resolve_in(index, labels(Label(document_id="d", grade=1), Label(document_id="e", grade=1)))
    assert [(one.label.document_id, one.state, one.note) for one in resolved.standings] == [
        ("d", "in place", ""),
        ("e", "stale", "the document is gone"),
    ]


def test_a_place_that_no_passage_covers_is_stale() -> None:
    index = Index.open(":memory:", chunker=head_only)
    index.add([Document(id="d", text=TEXT)])
    (found,) = resolve_in(index, labels(Label(document_id="d", quote="an hour", grade=1))).stale
    assert found.note == "no passage of the index covers it"


@pytest.mark.promise("A40")
def test_a_label_may_name_just_a_document_and_is_told_by_its_id() -> None:
    """Equal texts, and an id that begins like another one, do not mislead."""
    index = Index.open(":memory:", chunker=by_line)
    text = "Refunds are available for 45 days.\n"
    index.add([Document(id=name, text=text + f"Note {name}.\n") for name in ("kb:1", "kb:12", "kb:3")])
    (found,) = resolve_in(index, labels(Label(document_id="kb:1", grade=1))).in_place
    assert found.passages == tuple(one.id for one in index.passages("kb:1"))
    first = index.search("note kb:1", k=3, mode="lexical", cut="off")
    assert {hit.passage.document_id for hit in first if hit.id in found.passages} == {"kb:1"}
    assert {hit.passage.document_id for hit in first if hit.id not in found.passages} <= {"kb:12", "kb:3"}


@pytest.mark.promise("A41")
def test_a_pair_labelled_by_hand_is_judged_by_the_passage_that_holds_its_words() -> None:
    index = Index.open(":memory:", chunker=by_line)
    text = "# Payments\n\nThe refund window is 45 days after purchase.\n\nCards are charged at once.\n"
    index.add([Document(id="payments", text=text), Document(id="hours", text="We are open from nine to five.\n")])
    pair = Label(document_id="payments", quote="refund window", grade=2)
    (found,) = resolve_in(index, labels(pair)).in_place
    hits = index.search("How long are refunds available after purchase?", k=3)
    answered = [hit for hit in hits if hit.id in found.passages]
    assert [pair.quote in hit.text for hit in answered] == [True]
