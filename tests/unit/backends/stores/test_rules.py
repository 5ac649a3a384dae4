"""What every store refuses: each rule, and that it names what it refuses."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from wellhead.backends.stores.rules import check_documents, check_owners, text_hash
from wellhead.errors import UsageError
from wellhead.records import Document, Terms
from wellhead.testing.contracts import refusal
from wellhead.testing.fakes import document_row

ROW = document_row(Document(id="a", text="one two\nthree", title="T", metadata={"area": "x"}))


def changed(**passage: object):
    """The row with its first passage changed."""
    first, *rest = ROW.passages
    first = msgspec.structs.replace(first, passage=msgspec.structs.replace(first.passage, **passage))
    return msgspec.structs.replace(ROW, passages=(first, *rest))


def test_sound_rows_pass():
    check_documents([ROW, msgspec.structs.replace(changed(id="f" * 64), scope="other", passages=())])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (changed(document_id="b"), "another document"),
        (changed(text="one  two"), "not the slice"),
        (changed(start=1), "not the slice"),
        (changed(end=99), "outside"),
        (changed(start=-5), "outside"),
        (changed(end=0), "outside"),
        (changed(content_hash="0" * 12), "content_hash"),
        (changed(title="other"), "differs"),
        (changed(metadata={}), "differs"),
        (changed(ordinal=1), "order"),
        (changed(ordinal=-1), "order"),
        (changed(id=ROW.passages[1].passage.id), "twice"),
    ],
)
def test_passages_that_do_not_fit_their_document_are_refused(row, words):
    error = refusal(UsageError, lambda: check_documents([row]))
    assert words in error.what
    assert "'a'" in error.where


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_counts_are_positive_and_fit_the_arrays(count):
    first, *rest = ROW.passages
    terms = Terms(stems={"one": count}, words={})
    row = msgspec.structs.replace(ROW, passages=(msgspec.structs.replace(first, terms=terms), *rest))
    refusal(UsageError, lambda: check_documents([row]))


def test_a_passage_id_of_another_document_is_refused():
    owners = {ROW.passages[0].passage.id: ("acme", "other")}
    assert "'other'" in refusal(UsageError, lambda: check_owners([ROW], owners.get)).why
    check_owners([ROW], {ROW.passages[0].passage.id: ("", "a")}.get)


def test_the_hash_of_a_text_begins_with_its_content_hash():
    assert text_hash("é") == hashlib.sha256("é".encode()).digest()
