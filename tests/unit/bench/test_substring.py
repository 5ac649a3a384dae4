"""The baseline scorer, and that nothing but the bench can reach it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import wellhead
from wellhead.bench.substring import SubstringSearch
from wellhead.records import Passage


def passages(*texts: str) -> list[Passage]:
    return [
        Passage(id=f"p{9 - place}", document_id=f"d{place}", ordinal=0, text=text, start=0, end=len(text))
        for place, text in enumerate(texts)
    ]


def order(query: str, *texts: str, limit: int | None = 10) -> list[str]:
    return [passage.document_id for passage in SubstringSearch(passages(*texts)).search(query, limit=limit)]


@pytest.mark.promise("B50")
def test_a_point_for_each_term_of_three_characters_that_occurs() -> None:
    assert order("rotate the key", "key", "rotate key", "rotate the key") == ["d2", "d1", "d0"]


@pytest.mark.promise("B50")
def test_a_term_counts_inside_a_word_and_in_any_case() -> None:
    assert order("CAT", "concatenate", "dog") == ["d0"]


@pytest.mark.promise("B50")
def test_terms_of_two_characters_count_nothing() -> None:
    assert order("is it so", "is it so", "it") == []


@pytest.mark.promise("B50")
def test_punctuation_stays_with_its_term() -> None:
    assert order("refund?", "a refund", "a refund?") == ["d1"]


@pytest.mark.promise("B50")
def test_ties_keep_the_order_of_the_files_not_of_the_ids() -> None:
    assert order("key", "a key", "no", "key key key", "the key") == ["d0", "d2", "d3"]


@pytest.mark.promise("B50")
def test_ten_are_returned_unless_asked_otherwise() -> None:
    texts = ["key"] * 12
    assert len(order("key", *texts)) == 10
    assert len(order("key", *texts, limit=None)) == 12
    assert order("key", *texts, limit=2) == ["d0", "d1"]


def imports_of(file: Path) -> set[str]:
    """The modules that a file names in an import, and every text in it (dynamic imports, tables of names)."""
    found: set[str] = set()
    for part in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(part, ast.Import):
            found |= {alias.name for alias in part.names}
        elif isinstance(part, ast.ImportFrom):
            found |= {f"{part.module}", *(f"{part.module}.{alias.name}" for alias in part.names)}
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value) < 100:
            found.add(part.value)
    return found


@pytest.mark.promise("B37")
def test_only_the_bench_reaches_the_baseline() -> None:
    root = Path(wellhead.__file__).parent
    reaching = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if any("bench.substring" in name or name == "substring" for name in imports_of(file))
    }
    assert "bench/pipelines.py" in reaching
    assert [file for file in sorted(reaching) if not file.startswith("bench/")] == []
