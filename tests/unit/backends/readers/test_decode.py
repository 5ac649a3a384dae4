"""Bytes to text: marks, guesses, declared encodings, damage, and what is no text."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.readers.decode import clean, decode, is_binary
from wellhead.backends.readers.reading import FileSkipped
from wellhead.errors import DocumentError

TEXTS = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\r\t"), max_size=200)


@given(TEXTS.filter(lambda text: not text.startswith("\ufeff")))
@settings(max_examples=60, deadline=None)
def test_unicode_text_comes_back_exactly(text: str) -> None:
    assert decode(text.encode("utf-8")).text == text
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ):
        decoded = decode(mark + text.encode(encoding))
        assert (decoded.text, decoded.encoding, decoded.replaced) == (text, encoding, 0)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_seen(encoding: str) -> None:
    text = "Rotate the key.\r\nGrüße aus Köln.\r\n"
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Le café est très agréable, à côté de l’église – déjà vu. “Oui”", "cp1252"),
        ("naïve", "cp1252"),
        ("price £5", "cp1252"),
        ("El niño comió piña en la montaña; ¿qué pasó después? Información útil.", "cp1252"),
        ("# Preise\n\nDie Größe der Tür beträgt 5 €. Größere Türen können geändert werden.", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Dokument popisuje vyhledávání v textech.", "cp1250"),
        ("Привет мир, это небольшой документ о поиске текста и кодировках.", "koi8_r"),
        ("Привет мир, это небольшой документ о поиске текста и кодировках.", "cp1251"),
        ("Αυτό είναι ένα έγγραφο για την αναζήτηση κειμένου.", "cp1253"),
        ("日本語のテキストです。検索エンジンの文書。", "cp932"),
        ("日本語のテキストです。検索エンジンの文書。", "euc_jp"),
        ("日本語のテキスト", "iso2022_jp"),
        ("这是一个中文文档,用于测试编码检测。", "gb18030"),
        ("這是一個中文文件,用於測試編碼偵測。", "big5"),
        ("이것은 검색 엔진을 위한 한국어 문서입니다.", "cp949"),
    ],
)
def test_legacy_encodings_are_guessed_and_told(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.metadata["encoding"] == decoded.encoding


def test_a_sound_utf8_file_says_nothing_of_its_encoding() -> None:
    assert decode("naïve".encode()).metadata == {}


def test_a_declared_encoding_decides_before_a_guess() -> None:
    data = "ñandú".encode("iso8859_5", "replace") + b"\xd0\xd1"
    assert decode(data, declared="ISO-8859-5").encoding == "iso8859-5"
    assert decode("café".encode("latin-1"), declared="latin1").text == "café"


@pytest.mark.parametrize("label", ["unicode_escape", "utf-7", "rot13", "base64", "no such thing", "a\x00b", ""])
def test_a_label_that_could_rewrite_the_text_is_ignored(label: str) -> None:
    assert decode("caf\\u0041 é".encode("latin-1"), declared=label).text == "caf\\u0041 é"


def test_a_few_damaged_bytes_do_not_turn_utf8_into_something_else() -> None:
    decoded = decode("Grüße, Köln, Zürich, Düsseldorf ".encode() * 3 + b"\xff end")
    assert decoded.text.endswith("\ufffd end")
    assert decoded.text.count("ü") == 9
    assert decoded.metadata == {"encoding": "utf-8, 1 invalid replaced"}


def test_an_escape_sequence_alone_makes_no_japanese() -> None:
    text = "terminal log: \x1b$B über Köln\n"
    assert decode(text.encode()).text == text


def test_line_ends_are_kept_and_nothing_shifts() -> None:
    assert decode(b"a\r\nb\rc\nd" + b"." * 100 + b"\x00e").text == "a\r\nb\rc\nd" + "." * 100 + "\ufffde"
    assert clean("a\ud800b\x00c") == "a\ufffdb\ufffdc"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + b"x" * 100,
        b"PK\x03\x04" + b"word" * 50,
        b"\x7fELF\x02\x01\x01" + b"text" * 100,
        bytes(range(256)) * 4,
        b"\x00\x01\x02",
        b"abc\x00\xff\xfe\xfd" * 20,
    ],
)
def test_binary_bytes_are_skipped(data: bytes) -> None:
    assert is_binary(data)
    with pytest.raises(FileSkipped) as caught:
        decode(data, where="x.dat")
    assert caught.value.reason == "binary"
    assert caught.value.where == "x.dat"


def test_colour_codes_and_form_feeds_are_text() -> None:
    assert not is_binary(b"\x1b[31mred\x1b[0m\x0c\n" * 10)
    assert not is_binary("short".encode("utf-16"))


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes_give_storable_text_or_a_reason(data: bytes) -> None:
    try:
        said = decode(data).text
    except DocumentError as error:
        said = error.why
    said.encode("utf-8")
    assert "\x00" not in said
