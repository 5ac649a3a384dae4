"""Source trees that nobody wrote for a test: two packages of the standard library."""

from __future__ import annotations

import email
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from wellhead import Hits, Index, SyncReport
from wellhead.backends.readers.folder import read_folder

TREES = {"json": Path(json.__file__).parent, "email": Path(email.__file__).parent}


@pytest.fixture(scope="module")
def synced() -> Iterator[tuple[Index, dict[str, SyncReport]]]:
    with Index.open(":memory:") as index:
        yield index, {name: index.sync(root, prefix=f"{name}/") for name, root in TREES.items()}


@pytest.fixture(scope="module")
def index(synced: tuple[Index, dict[str, SyncReport]]) -> Index:
    return synced[0]


def documents(hits: Hits) -> list[str]:
    return list(dict.fromkeys(hit.passage.document_id for hit in hits))


@pytest.mark.parametrize("name", sorted(TREES))
def test_the_report_adds_up(synced: tuple[Index, dict[str, SyncReport]], name: str) -> None:
    index, reports = synced
    report, folder = reports[name], read_folder(TREES[name])
    assert report.complete, report
    assert report.read == report.added + report.updated + report.unchanged > 4
    by_rule = len(folder.skipped)
    assert len(folder.found) == report.read + len(report.refused) + sum(report.skipped.values()) - by_rule
    assert report.read == sum(one.id.startswith(f"{name}/") for one in index.documents())
    assert report.passages == report.embedded + report.reused
    again = index.sync(TREES[name], prefix=f"{name}/")
    assert (again.read, again.unchanged, again.removed, again.passages) == (report.read, report.read, 0, 0)


def test_every_passage_is_a_slice_of_its_file(index: Index) -> None:
    for document in index.documents():
        name, _, path = document.id.partition("/")
        assert document.text == (TREES[name] / path).read_text(encoding="utf-8")
        for passage in index.passages(document.id):
            assert document.text[passage.start : passage.end] == passage.text


@pytest.mark.parametrize(
    ("query", "words", "document"),
    [
        ("decoder", "JSONDecoder", "json/decoder.py"),  # a part of a name in camel case
        ("py_scanstring", "def py_scanstring", "json/decoder.py"),  # a name in snake case, whole
        ("JSONDecodeError", "class JSONDecodeError", "json/decoder.py"),
        ("make_msgid", "def make_msgid", "email/utils.py"),
        ("encodebytes payload base64", "def encode_base64", "email/encoders.py"),
    ],
)
def test_a_name_is_found_whole_and_by_its_parts(index: Index, query: str, words: str, document: str) -> None:
    hits = index.search(query, k=10)
    found = [hit for hit in hits if words in hit.text]
    assert found, [hit.citation for hit in hits]
    assert document in documents(hits)


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("turn a Python object into JSON formatted text", "json/__init__.py"),
        ("produce a unique message identifier suitable for a Message-ID header", "email/utils.py"),
        ("how is a quoted printable body decoded", "email/quoprimime.py"),
    ],
)
def test_a_function_is_found_by_a_paraphrase_of_its_docstring(index: Index, question: str, document: str) -> None:
    hits = index.search(question, k=5)
    assert document in documents(hits), documents(hits)
