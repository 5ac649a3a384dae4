"""Text as it is: kinds by name, titles of reStructuredText, declared encodings."""

from __future__ import annotations

import pytest

from wellhead.backends.readers.languages import is_code, media_type_of
from wellhead.backends.readers.plain import read_plain


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.py", "text/x-python"),
        ("src/A.TS", "text/x-typescript"),
        ("x.cpp", "text/x-c++"),
        ("Makefile", "text/x-make"),
        ("deploy/Dockerfile", "text/x-dockerfile"),
        ("CMakeLists.txt", "text/x-cmake"),
        ("notes.txt", "text/plain"),
        ("README", "text/plain"),
        ("x.unknown", "text/plain"),
        ("guide.rst", "text/x-rst"),
        ("config.yaml", "text/x-yaml"),
    ],
)
def test_media_type_by_name(name: str, media_type: str) -> None:
    assert media_type_of(name) == media_type


def test_about_sixty_languages_are_known() -> None:
    from wellhead.backends.readers.languages import _BY_SUFFIX

    assert len({kind for kind in _BY_SUFFIX.values() if is_code(kind)}) >= 60


def test_a_shebang_names_the_language_where_the_name_does_not() -> None:
    assert media_type_of("run", "#!/usr/bin/env -S python3 -u") == "text/x-python"
    assert media_type_of("run", "#!/bin/sh") == "text/x-shell"
    assert media_type_of("run", "#!/opt/other") == "text/plain"


def test_code_is_english_and_untouched() -> None:
    source = b"def f():\r\n\treturn 'x'  \r\n"
    reading = read_plain(source, "f.py")
    assert reading.text.encode() == source
    assert (reading.language, reading.title, reading.media_type) == ("en", "", "text/x-python")
    assert read_plain(b"hello", "a.txt").language is None


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (".. comment\n\n======\nTitle\n======\n\ntext\n\nOther\n-----\n", "Title"),
        ("Intro\r\n~~~~~\r\n\r\ntext", "Intro"),
        ("too long a title\n---\n\nno", ""),
        ("just text\n\n- item\n", ""),
    ],
)
def test_rst_title(text: str, title: str) -> None:
    assert read_plain(text.encode(), "a.rst").title == title


def test_source_files_may_declare_their_encoding() -> None:
    python = "#!/usr/bin/python\n# -*- coding: iso-8859-5 -*-\n# Привет\n"
    assert read_plain(python.encode("iso8859-5"), "a.py").text == python
    xml = '<?xml version="1.0" encoding="windows-1253"?><a>Αυτό</a>'
    assert read_plain(xml.encode("cp1253"), "a.xml").text == xml
