"""Terms that tokenisers lose: one letter, signs, hyphens, camel case; and questions that are no query language."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from wellhead import Document, Index
from wellhead.testing.fakes import HashEmbedder


def open_with(*texts: str) -> Index:
    index = Index.open(":memory:", embedder=HashEmbedder(), languages=["en"])
    index.add(Document(id=text, text=text) for text in texts)
    return index


LANGUAGES = ("Use C++ for speed", "Use Go", "R is for statistics", "Use C# in .NET", "node.js on S3")


@pytest.mark.promise("B8")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("C++", "Use C++ for speed"),
        ("C#", "Use C# in .NET"),
        ("R", "R is for statistics"),
        (".NET", "Use C# in .NET"),
        ("node.js", "node.js on S3"),
        ("S3", "node.js on S3"),
        ("c++?", "Use C++ for speed"),
        ("(c#)", "Use C# in .NET"),
    ],
)
def test_names_of_one_letter_or_with_signs_find_their_own_document(query: str, first: str) -> None:
    """deepset-ai/haystack PR#10814: one-letter terms were dropped, so C, R and C++ never matched."""
    hits = open_with(*LANGUAGES).search(query, mode="lexical")
    assert [hit.text for hit in hits] == [first]


@pytest.mark.parametrize(
    "query", ["A002", "RULE-A002", "cve 2024", "apply_secrets", "secrets", "rule", "CVE-2024-1234", "secret"]
)
def test_an_identifier_is_found_whole_and_by_its_parts(query: str) -> None:
    """lyonzin/knowledge-rag#140: hyphens kept or stripped, either the part or the whole could not be found."""
    named = "RULE-A002 replaces apply_secrets, see CVE-2024-1234"
    hits = open_with(named, "nothing of the kind stands here").search(query, mode="lexical")
    assert [hit.text for hit in hits] == [named]


@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        ("RULE-A002", "a rule for model A002 of the range"),
        ("apply_secrets", "apply the secrets"),
        ("CVE-2024-1234", "the CVE list of 2024 has 1234 rows"),
    ],
)
def test_the_whole_identifier_outranks_its_parts(whole: str, parts: str) -> None:
    """lyonzin/knowledge-rag#140: the full identifier stands above the texts that hold its parts alone."""
    hits = open_with(f"see {whole} for the reason", parts).search(whole, mode="lexical")
    assert len(hits) == 2
    assert whole in hits[0].text


@pytest.mark.parametrize(
    "query",
    ["OvertimeService", "overtime service", "user", "getUserById", "get user", "GETUSERBYID", "overtimeservice"],
)
def test_camel_case_is_found_however_it_is_written(query: str) -> None:
    """jgravelle/jdocmunch-mcp#94: queries lost their capitals before the camel-case cut: no hit, no error."""
    named = "OvertimeService calls getUserById"
    assert [hit.text for hit in open_with(named, "something else").search(query, mode="lexical")] == [named]


def test_no_second_function_makes_terms_of_a_text(root: Path) -> None:
    """jgravelle/jdocmunch-mcp#94: two functions that should agree did not, so there is one: everything imports it."""
    uses: dict[str, set[str]] = {}
    for path in sorted((root / "src" / "wellhead").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "wellhead.analyze":
                uses.setdefault(path.name, set()).update(alias.name for alias in node.names)
            if isinstance(node, (ast.Import, ast.ImportFrom)) and path.name != "analyze.py":
                assert "Stemmer" not in {alias.name for alias in node.names}, path
    assert "analyze" in uses["rows.py"]
    assert "analyze" in uses["asking.py"]


HARMLESS = [
    "what's (v3.11)?",
    "days:",
    '"unclosed',
    "-x",
    "AND",
    "https://a.b/c",
    "^",
    "a AND (b OR",
    "field:value~2",
    "*",
    "\\",
    "[1 TO",
]


@pytest.mark.parametrize("query", HARMLESS)
@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_a_question_is_never_a_syntax_error(query: str, mode: str) -> None:
    """quickwit-oss/tantivy-py#70: ordinary questions raised, because the query was parsed as a language."""
    index = open_with("days of release v3.11", "unclosed doors", "the value of x at https://a.b/c")
    assert index.search(query, mode=mode).outcome in {"hits", "no_match"}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("what's (v3.11)?", "v3.11"),
        ("days:", "days"),
        ('"unclosed', "unclosed"),
        ("-x", "x"),
        ("x AND unclosed", "x unclosed"),
        ("^days~2*", "days 2"),
    ],
)
def test_signs_change_nothing_about_the_hits(query: str, words: str) -> None:
    """quickwit-oss/tantivy-py#70: a query finds what its bare words find."""
    index = open_with("days of release v3.11", "unclosed doors", "the value of x at https://a.b/c")
    found = index.search(query, mode="lexical")
    assert [(hit.id, hit.score) for hit in found] == [
        (hit.id, hit.score) for hit in index.search(words, mode="lexical")
    ]
    assert found
