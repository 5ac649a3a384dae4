"""Accents are folded only where the exact form is missing, and then the whole word is taken as it is spelled here."""

from __future__ import annotations

import pytest

from wellhead import Document, Index


def french(*texts: str) -> Index:
    index = Index.open(":memory:")
    index.add(Document(id=f"d{number}", text=text, language="fr") for number, text in enumerate(texts))
    return index


def found(index: Index, query: str, **options: object) -> list[str]:
    hits = index.search(query, mode="lexical", cut="off", **options)  # type: ignore[arg-type]
    return [hit.passage.document_id for hit in hits]


def test_an_unaccented_word_reaches_accented_ones_only_where_the_exact_form_is_missing() -> None:
    assert found(french("une théière", "un thé vert"), "theiere") == ["d0"]
    both = french("une théière", "une theiere")
    assert found(both, "theiere") == ["d1"]
    assert found(both, "théière") == ["d0"]


@pytest.mark.parametrize(("typed", "written"), [("theiere", "théière"), ("eleves", "élèves")])
def test_a_word_without_its_accents_scores_as_if_it_had_them(typed: str, written: str) -> None:
    index = french(f"Une {written} verte sur la table", "Un chat dort")
    plain, exact = (index.search(word, mode="lexical") for word in (typed, written))
    assert plain.outcome == exact.outcome == "hits"
    assert plain[0].signals.bm25 == pytest.approx(exact[0].signals.bm25)
    assert plain[0].signals.coverage == pytest.approx(exact[0].signals.coverage)


def test_of_several_spellings_that_of_most_passages_is_taken() -> None:
    index = french("les élevés", "les élevés encore", "un élève")
    assert found(index, "eleves") == ["d0", "d1"] or found(index, "eleves")[:2] == ["d0", "d1"]


def test_explain_names_the_word_as_it_is_spelled_here() -> None:
    index = french("une théière")
    explained = index.explain("theiere", index.passages("d0")[0], mode="lexical")
    assert {match.term for match in explained.terms if match.field == "word"} == {"théière"}
    assert explained.stem_only == ()


def test_a_word_that_is_nowhere_stays_as_it_is() -> None:
    index = french("café noir")
    assert found(index, "zebra") == []
    explained = index.explain("zebra", index.passages("d0")[0], mode="lexical")
    assert {match.term for match in explained.terms if match.field == "word"} == {"zebra"}
