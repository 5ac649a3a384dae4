"""Which reader takes which file, and what becomes of those that none takes."""

from __future__ import annotations

import importlib
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wellhead.backends.readers import FileSkipped, Reading, read_bytes
from wellhead.backends.readers.formats import has_binary_name
from wellhead.errors import DocumentError

SHARED = (Path(__file__).parents[4] / ".." / "shared" / "messy").resolve()
MESSY = sorted(SHARED.glob("*/*")) if SHARED.is_dir() else []
NO_READER = {".pdf", ".docx", ".pptx", ".xlsx", ".epub", ".eml"}
needs_messy = pytest.mark.skipif(not MESSY, reason=f"the collection of messy files is not at {SHARED.name}")


names = st.text("aA./p ng", max_size=12).map(
    lambda name: f"x{name}".replace("//", "/").replace("/.", "/x.").rstrip("/.")
)


@given(st.one_of(names, names.map("{}.PnG".format), names.map("{}/.png".format), names.map("{}.png.".format)))
@settings(max_examples=200)
def test_a_suffix_is_what_pathlib_says(name: str) -> None:
    assert has_binary_name(name) == (PurePosixPath(name.lower()).suffix == ".png")


def messy(name: str) -> Reading:
    return read_bytes((SHARED / name).read_bytes(), name)


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("A.MD", b"# x", "text/markdown"),
        ("a.mdx", b"# x", "text/markdown"),
        ("a.htm", b"<p>x", "text/markdown"),
        ("a.tsv", b"x\ty\n1\t2", "text/markdown"),
        ("a.ndjson", b"{\"a\": 1}", "text/plain"),
        ("page", b"\xef\xbb\xbf\n<!DOCTYPE html><p>x", "text/markdown"),
        ("LICENSE", b"x", "text/plain"),
        ("x.rs", b"x", "text/x-rust"),
    ],
)  # fmt: skip
def test_the_name_then_the_content_chooses(name: str, data: bytes, media_type: str) -> None:
    assert read_bytes(data, name).media_type == media_type


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", b"PK\x03\x04"),
        ("a.PDF", b"text"),
        ("noname", b"%PDF-1.7 ..."),
        ("x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    ],
)
def test_documents_without_a_reader_are_refused_not_skipped(name: str, data: bytes) -> None:
    with pytest.raises(DocumentError, match="no reader for") as caught:
        read_bytes(data, name)
    assert not isinstance(caught.value, FileSkipped)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.png", b"any text", "binary"),
        ("a.md", b"\x00\x01\x02\x03" * 9, "binary"),
        ("noname", b"PK\x03\x04xx", "binary"),
        ("a.md", b" \n\t", "empty"),
        ("a.md", b"---\na: 1\n---\n", "empty"),
        ("a.json", b"{}", "empty"),
    ],
)
def test_nothing_to_index_is_skipped_with_its_reason(name: str, data: bytes, reason: str) -> None:
    with pytest.raises(FileSkipped) as caught:
        read_bytes(data, name)
    assert caught.value.reason == reason


@pytest.mark.promise("B47")
def test_an_unforeseen_error_of_a_library_fails_that_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes, name: str) -> Reading:
        raise ZeroDivisionError("inside a library")

    monkeypatch.setattr(importlib.import_module("wellhead.backends.readers.plain"), "read_plain", broken)
    with pytest.raises(DocumentError, match="ZeroDivisionError: inside a library") as caught:
        read_bytes(b"x", "a.txt")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@given(
    st.binary(max_size=200),
    st.sampled_from(["a.md", "a.html", "a.csv", "a.json", "a.jsonl", "a.ipynb", "a.rst", "a.py"]),
)
@settings(max_examples=100, deadline=None)
def test_any_bytes_under_any_name_give_text_or_a_reason(data: bytes, name: str) -> None:
    try:
        said = read_bytes(data, name).text
    except DocumentError as error:
        said = error.what
    said.encode("utf-8")
    assert said.strip()


@needs_messy
@pytest.mark.parametrize("path", MESSY, ids=lambda path: path.name)
def test_every_messy_file_gives_text_or_the_expected_reason(path: Path) -> None:
    if path.suffix in NO_READER:
        with pytest.raises(DocumentError, match=f"no reader for {path.suffix}"):
            messy(f"{path.parent.name}/{path.name}")
    elif path.name == "random.bin":
        with pytest.raises(FileSkipped, match="binary"):
            messy(f"{path.parent.name}/{path.name}")
    else:
        assert messy(f"{path.parent.name}/{path.name}").text.strip()


@needs_messy
def test_messy_tables() -> None:
    assert messy("docling/csv-too-many-columns.csv").text.splitlines()[3] == "| a | b | c | d | e |"
    assert messy("docling/csv-comma-in-cell.csv").text.splitlines()[3] == "| a | , | c | d |"
    semicolons = messy("docling/csv-semicolon.csv").text.splitlines()
    assert semicolons[0].startswith("| Index | Customer Id | First Name |")
    assert "Dominguez;Mcmillan and Donovan" in semicolons[5]
    japanese = messy("markitdown/test_mskanji.csv")
    assert japanese.text.splitlines()[0] == "| 名前 | 年齢 | 住所 |"
    assert "髙橋淳" in japanese.text
    assert japanese.metadata == {"encoding": "cp932"}


@needs_messy
def test_messy_web_pages_give_their_main_content_only() -> None:
    encyclopedia = messy("markitdown/test_wikipedia.html")
    assert (encyclopedia.title, encyclopedia.language) == ("Microsoft - Wikipedia", "en")
    assert encyclopedia.text.startswith("# Microsoft\n")
    assert "\n\n## Corporate affairs\n\n" in encyclopedia.text
    assert "\n\n### Board of directors\n\n" in encyclopedia.text
    assert "| Founders | Bill Gates; Paul Allen |" in encyclopedia.text
    for frame in ("Jump to navigation", "Main menu", "Privacy policy", "[edit]", "mw-parser-output", "Afrikaans", "{"):
        assert frame not in encyclopedia.text
    blog = messy("markitdown/test_blog.html")
    assert blog.text.startswith("# Does Model and Inference Parameter Matter")
    assert "\n## Experiment Setup\n" in blog.text
    assert "`flaml.tune`" in blog.text
    for frame in ("Skip to main content", "Copyright", "Recent posts", "Direct link", "function("):
        assert frame not in blog.text


@needs_messy
def test_messy_html_has_headings_tables_and_code() -> None:
    code = messy("docling/html_code_snippets.html").text
    assert '```\nfrom docling.document_converter import DocumentConverter\n\nsource = "https' in code
    assert "`pip install docling`" in code
    assert "| 2025 | Q1 | January | $134 | $162 |" in messy("docling/example_08.html").text
    assert messy("docling/html_heading_in_p.html").text.startswith("# 1\n\n1st paragraph\n\n| 2 | 3 | 4 |")
    assert "Coffee\n: Black hot drink\n" in messy("docling/html_description_list.html").text


@needs_messy
def test_the_messy_notebook() -> None:
    reading = messy("markitdown/test_notebook.ipynb")
    assert reading.title == "Test Notebook"
    assert '```python\nprint("markitdown")\n```\n\n```\nmarkitdown\n```' in reading.text


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.md", f"# {'long ' * 2000}\n\ntext\n"),
        ("b.md", f"---\ntitle: >\n  {'long ' * 2000}\n---\ntext\n"),
        ("a.html", f"<title>{'long ' * 2000}</title><p>text"),
        ("b.html", f"<h1>{'long ' * 2000}</h1><p>text"),
        ("a.rst", f"{'long ' * 2000}\n{'=' * 10_000}\n\ntext\n"),
    ],
)
def test_a_title_is_clipped_to_what_a_title_can_be(name: str, source: str) -> None:
    title = read_bytes(source.encode(), name).title
    assert title.startswith("long long")
    assert (len(title), title[-1]) == (200, "…")
