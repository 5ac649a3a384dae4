"""A document in the types that can be stored, whatever a program gives; what has no meaning is refused by name."""

from __future__ import annotations

import enum
import types
from typing import Any

import msgspec
import numpy as np
import pytest

from wellhead.analyze import LANGUAGES
from wellhead.errors import DocumentError
from wellhead.records import Document, SyncReport


def document(**fields: Any) -> Document:
    return Document(**({"id": "d", "text": "some words"} | fields))


# -- language ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("en-US", "en"),
        ("en_GB", "en"),
        ("zh-Hant-TW", "zh"),
        ("eng", "en"),
        ("ger", "de"),
        ("deu-AT", "de"),
        ("nb-NO", "no"),
        ("haw", "haw"),
        ("und", None),
        ("", None),
        (None, None),
    ],
)
def test_a_language_is_kept_as_the_code_that_the_analyzer_knows(given: str | None, kept: str | None) -> None:
    assert document(language=given).language == kept


@pytest.mark.parametrize("given", ["english", "e", "en us", "en\n", "12", "*", "en-", 5, True, ["en"]])
def test_what_is_no_language_code_is_refused(given: object) -> None:
    with pytest.raises(DocumentError, match="is no language code"):
        document(language=given)


def test_every_language_of_the_analyzer_is_kept_as_it_is() -> None:
    assert [document(language=code).language for code in LANGUAGES] == list(LANGUAGES)


# -- types ------------------------------------------------------------------------------------------------------------


class Kind(enum.StrEnum):
    GUIDE = "guide"


class Level(enum.IntEnum):
    HIGH = 3


PLAIN = {
    "float64": (np.float64(0.5), 0.5),
    "float32": (np.float32(0.5), 0.5),
    "int64": (np.int64(7), 7),
    "uint8": (np.uint8(7), 7),
    "bool": (np.bool_(True), True),
    "str": (np.str_("word"), "word"),
    "string enum": (Kind.GUIDE, "guide"),
    "number enum": (Level.HIGH, 3),
}


@pytest.mark.parametrize("name", PLAIN)
def test_metadata_is_kept_in_plain_types(name: str) -> None:
    given, kept = PLAIN[name]
    metadata = document(metadata={"one": given, "list": [given]}).metadata
    assert metadata == {"one": kept, "list": (kept,)}
    assert type(metadata["one"]) is type(kept)
    assert msgspec.json.decode(msgspec.json.encode(metadata)) == {"one": kept, "list": [kept]}


@pytest.mark.parametrize(
    "value",
    [
        np.float64("nan"),
        np.float32("inf"),
        np.datetime64("2026-01-31T00:00:00.000000000"),
        np.uint64(2**64 - 1),
        np.array([1, 2]),
        b"bytes",
        None,
        {"a": 1},
        2**63,
    ],
)
def test_metadata_that_cannot_be_filtered_on_is_refused(value: object) -> None:
    with pytest.raises(DocumentError, match="cannot be filtered on"):
        document(metadata={"key": value})


@pytest.mark.parametrize("metadata", [None, [], [("a", 1)], "a=1", 5])
def test_metadata_is_a_mapping(metadata: object) -> None:
    with pytest.raises(DocumentError, match="metadata must be a mapping"):
        document(metadata=metadata)


def test_any_mapping_will_do() -> None:
    assert document(metadata=types.MappingProxyType({"a": 1})).metadata == {"a": 1}


@pytest.mark.parametrize("field", ["id", "text", "uri", "title", "media_type"])
def test_texts_are_kept_as_plain_str(field: str) -> None:
    made = document(**{field: np.str_("word")})
    assert type(getattr(made, field)) is str
    assert msgspec.json.decode(msgspec.json.encode(made), type=Document) == made


@pytest.mark.parametrize("field", ["text", "uri", "title", "media_type"])
@pytest.mark.parametrize("value", [None, 5, b"bytes"])
def test_what_is_no_text_is_refused(field: str, value: object) -> None:
    with pytest.raises(DocumentError, match=f"{field} must be text"):
        document(**{field: value})


# -- reports ----------------------------------------------------------------------------------------------------------


def test_a_report_says_which_documents_cannot_be_found() -> None:
    report = SyncReport(read=2, added=2, without_passages=2)
    assert "2 documents hold no passage: nothing of them can be found" in str(report)
    assert report.complete
    assert report.to_dict()["without_passages"] == 2
    assert "no passage" not in str(SyncReport(read=2, added=2))
