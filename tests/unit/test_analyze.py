"""Text to terms: what is found by what, in which language, and that no text is ever an error."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wellhead.analyze as analyze_module
from wellhead import Document, Index
from wellhead.analyze import (
    LANGUAGES,
    STOPWORDS,
    analyze,
    detect,
    fold_accents,
    identifiers,
    query_language,
    stems_of,
)

any_text = st.text(st.characters(min_codepoint=0, max_codepoint=sys.maxunicode, exclude_categories=()), max_size=200)
any_language = st.sampled_from([None, "", "xx", *LANGUAGES])


def words(text: str, language: str | None = "en") -> set[str]:
    return set(analyze(text, language).words)


def stems(text: str, language: str | None = "en") -> set[str]:
    return set(analyze(text, language).stems)


@pytest.mark.promise("B6")
@pytest.mark.parametrize(
    "written", ["work?", "(work)", "work.", '"work"', "¿work!", "work…", "'work'", "`work`", "*work*"]
)
def test_punctuation_around_a_word_is_no_part_of_it(written: str) -> None:
    assert words(written) == {"work"}


@pytest.mark.promise("B7")
def test_question_words_leave_the_words_that_matter() -> None:
    assert words("How does the Game of Life work?") == {"game", "life", "work"}


@pytest.mark.promise("B8")
@pytest.mark.parametrize("term", ["S3", "AI", "UI", "Go", "k8", "7z", "Ωb"])
def test_terms_of_two_characters_survive(term: str) -> None:
    assert words(f"what about {term}, then?") >= {term.casefold()}


@pytest.mark.promise("B9")
@pytest.mark.parametrize(
    ("inner", "outer"), [("cell", "excellent"), ("ant", "important"), ("art", "start"), ("net", "planet")]
)
def test_a_word_is_not_found_inside_another(inner: str, outer: str) -> None:
    assert not (words(inner) | stems(inner)) & (words(outer) | stems(outer))


@pytest.mark.promise("B10")
@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("automata", "automaton"),
        ("criteria", "criterion"),
        ("matrices", "matrix"),
        ("indices", "index"),
        ("indexes", "index"),
        ("hypotheses", "hypothesis"),
        ("children", "child"),
        ("mice", "mouse"),
        ("queries", "query"),
        ("caches", "cache"),
        ("rules", "rule"),
    ],
)
def test_plurals_and_singulars_share_a_stem(plural: str, singular: str) -> None:
    assert stems(plural) == stems(singular)
    assert words(plural) != words(singular)


def test_english_plurals_are_english_only() -> None:
    assert stems("matrices", "fr") != stems("matrix", "fr")


@pytest.mark.promise("B14")
def test_text_is_cut_where_no_letter_or_digit_stands() -> None:
    assert words("red/green,blue|white;\tthe grey\nfox") == {"red", "green", "blue", "white", "grey", "fox"}


@pytest.mark.promise("B15")
def test_few_words_are_stopwords_and_none_that_names_a_thing() -> None:
    assert words("state set type value cell") == {"state", "set", "type", "value", "cell"}
    assert len(STOPWORDS) < 90
    assert not STOPWORDS & {
        "state",
        "set",
        "type",
        "value",
        "cell",
        "get",
        "key",
        "new",
        "first",
        "system",
        "use",
        "off",
    }


def test_stopwords_are_english_only() -> None:
    assert words("die in an", "de") == {"die", "in", "an"}


@pytest.mark.parametrize(
    ("name", "found_by"),
    [
        ("getUserById", {"getuserbyid", "get", "user", "id"}),
        ("HTTPServer2", {"httpserver2", "http", "server", "2"}),
        ("apply_secrets", {"apply_secrets", "apply", "secrets"}),
        ("RULE-A002", {"rule-a002", "rule", "a002", "002"}),
        ("node.js", {"node.js", "node", "js"}),
        ("v3.11.4", {"v3.11.4", "3.11.4", "3.11"}),
        ("__init__", {"init"}),
        (".NET", {".net", "net"}),
        ("C++17", {"c++17", "c++"}),
    ],
)
def test_a_name_is_found_whole_and_by_its_parts(name: str, found_by: set[str]) -> None:
    assert words(f"see {name}, please") == found_by | {"see", "please"}


def test_marks_tell_languages_apart() -> None:
    assert words("C") == {"c"}
    assert words("C++") == {"c++"}
    assert words("C#") == {"c#"}
    assert words("g++ and F#") == {"g++", "f#"}


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("don't", {"don"}),
        ("the user's guide", {"user", "guide"}),
        ("O’Brien", {"brien"}),
        ("rock'n'roll", {"rock", "roll"}),
    ],
)
def test_an_apostrophe_parts_a_word_and_single_letters_fall_away(text: str, apart: set[str]) -> None:
    assert words(text) == apart


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ", "abc"),
        ("ﬁne", "fine"),
        ("cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("½", "1⁄2"),
    ],
)
def test_forms_that_read_the_same_are_the_same(one: str, other: str) -> None:
    assert words(one) == words(other)


def test_accents_are_kept_and_folded_on_request_only() -> None:
    assert words("café") == {"café"}
    assert fold_accents("café") == "cafe"
    assert fold_accents("Ångström") == "Angstrom"
    assert fold_accents("हिन्दी") == "हिन्दी", "a vowel sign is no accent"
    assert fold_accents("plain") == "plain"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("أحمد", "احمد"),
        ("إلى", "الى"),
        ("مدرسة", "مدرسه"),
        ("مُحَمَّد", "محمد"),
        ("كتـــاب", "كتاب"),
        ("ی", "ي"),
        ("ک", "ك"),
    ],
)
@pytest.mark.parametrize("language", ["ar", None])
def test_arabic_letters_written_in_several_ways_are_one(one: str, other: str, language: str | None) -> None:
    assert words(one, language) == words(other, language)
    assert stems(one, language) == stems(other, language)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [("東京都", {"東", "京", "都", "東京", "京都"}), ("学", {"学"}), ("ไทย", {"ไท", "ทย"}), ("カナ", {"カナ"})],
)
def test_scripts_without_spaces_become_pairs(text: str, pairs: set[str]) -> None:
    assert words(text, "ja") == pairs


def test_a_run_without_spaces_ends_where_other_letters_begin() -> None:
    assert words("東京tower2020年", "ja") == {"東", "京", "東京", "tower2020", "tower", "2020", "年"}


def test_hindi_words_keep_their_vowel_signs() -> None:
    assert words("हिन्दी की किताबें", "hi") == {"हिन्दी", "की", "किताबें"}
    assert stems("किताबें", "hi") == stems("किताब", "hi")


def test_the_turkish_i_keeps_its_dot_in_turkish() -> None:
    assert words("İSTANBUL IŞIK", "tr") == {"istanbul", "ışık"}
    assert words("INDEX", "en") == {"index"}


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("de", "Häuser", "Hauses"),
        ("fr", "continuellement", "continuelle"),
        ("ru", "книгами", "книга"),
        ("es", "cosas", "cosa"),
    ],
)
def test_each_language_has_its_own_stems(language: str, one: str, other: str) -> None:
    assert stems(one, language) == stems(other, language)


def test_an_unknown_language_means_no_stemming() -> None:
    assert stems("running the rules", "xx") == stems("running the rules", None) == {"running", "the", "rules"}


def test_repeats_are_counted_in_both_fields() -> None:
    terms = analyze("rule Rules RULE", "en")
    assert (terms.stems, terms.words) == ({"rule": 3}, {"rule": 2, "rules": 1})


def test_both_fields_hold_as_many_terms() -> None:
    terms = analyze("getUser 東京都 مدرسة policies C++17 don't", "en")
    assert sum(terms.stems.values()) == sum(terms.words.values())


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("what does FRY-4012 mean?", ["fry-4012"]),
        ("call getUser then apply_secrets", ["getuser", "apply_secrets"]),
        ("C++ or .NET", ["c++", ".net"]),
        ("S3, s3 and S3", ["s3"]),
        ("a real-time system in 2024, on 2024-01-02", []),
        ("How do I rotate a key?", []),
    ],
)
def test_words_spelled_like_names_are_told_from_prose(query: str, names: list[str]) -> None:
    assert identifiers(query) == names


@pytest.mark.parametrize(
    "name", ["FRY-4012", "apply_secrets", "getUser", "C++", ".NET", "S3", "node.js", "v3.11", "C++17"]
)
def test_a_name_stands_in_the_field_of_exact_words_as_identifiers_say(name: str) -> None:
    assert set(identifiers(name)) <= words(f"the {name} of old")


@pytest.mark.parametrize(
    "token", ["x" * 8000, "é" * 8000, "a-" * 4000, "aB" * 4000, "a." * 4000, "x'" * 4000, "9" * 8000]
)
def test_a_token_of_thousands_of_letters_costs_little(token: str) -> None:
    started = time.perf_counter()
    analyze(token, "en")
    assert isinstance(identifiers(token), list)
    assert time.perf_counter() - started < 0.25


@given(any_text, any_language)
@settings(max_examples=100)
def test_any_text_is_data(text: str, language: str | None) -> None:
    terms = analyze(text, language)
    assert sum(terms.stems.values()) == sum(terms.words.values())
    assert all(term and not term.isspace() for term in [*terms.stems, *terms.words])
    assert set(stems_of(text, language)) == set(terms.words)
    assert set(stems_of(text, language).values()) <= set(terms.stems)
    assert all(identifiers(text))


@given(any_text)
@settings(max_examples=60)
def test_any_text_has_a_language(text: str) -> None:
    assert detect(text) in LANGUAGES
    assert detect(text, ["de", "fr"]) in {"de", "fr"}


@given(any_text, any_language)
@settings(max_examples=60)
def test_the_terms_of_a_text_are_always_the_same(text: str, language: str | None) -> None:
    assert analyze(text, language) == analyze(text, language)


@given(st.text(max_size=50), st.text(max_size=50), any_language)
@settings(max_examples=60)
def test_a_line_break_between_two_texts_joins_nothing(one: str, other: str, language: str | None) -> None:
    together = analyze(f"{one}\n{other}", language).words
    first, second = analyze(one, language).words, analyze(other, language).words
    assert together == {term: first.get(term, 0) + second.get(term, 0) for term in {*first, *second}}


@pytest.mark.parametrize("text", ["", "how", "id name", "123 456", "print(x) def foo", "bonjour", "FRY-4012"])
def test_too_little_text_is_taken_for_english(text: str) -> None:
    assert detect(text) == "en"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "Der schnelle braune Fuchs springt über den faulen Hund."),
        ("fr", "Les fenêtres de la maison étaient ouvertes toute la nuit."),
        ("ru", "Индекс хранит отрывки документов и их векторы."),
        ("ja", "東京の天気は晴れです。明日は雨が降るでしょう。"),
        ("th", "ภาษาไทยเป็นภาษาที่ใช้ในประเทศไทย"),
        ("hi", "यह किताब हिन्दी में लिखी गई है।"),
        ("ar", "هذا الكتاب مكتوب باللغة العربية"),
    ],
)
def test_the_language_of_a_sentence_is_told(language: str, text: str) -> None:
    assert detect(text) == language


def nothing(stem: str) -> bool:
    return False


def test_a_query_takes_the_only_language_of_the_index_without_a_guess() -> None:
    assert query_language("the quick brown fox jumps", {"de": 3, "": 2}, nothing) == "de"
    assert query_language("Wie wird der Schlüssel gewechselt, wenn er abläuft?", {"de": 3, "en": 9}, nothing) == "de"
    assert query_language("how", {"de": 3, "en": 9}, nothing) == "en"
    assert query_language("how", {}, nothing) == "en"


def test_a_query_too_short_to_tell_takes_the_language_whose_stems_the_index_knows() -> None:
    german = set(analyze("Rechnungen und Kundennummern", "de").stems)
    assert query_language("Rechnungen", {"de": 3, "en": 9}, german.__contains__) == "de"
    assert query_language("policies", {"de": 3, "en": 9}, german.__contains__) == "en"


def test_one_han_character_is_a_word() -> None:
    index = Index.open(":memory:")
    index.add(
        [Document(id="a", text="猫が好きです。", language="ja"), Document(id="b", text="犬です。", language="ja")]
    )
    assert [hit.passage.document_id for hit in index.search("猫", mode="lexical")] == ["a"]


def test_a_language_that_the_index_lacks_is_never_detected() -> None:
    assert detect("The windows of the house were open all night long.", ["fr", "de"]) in {"fr", "de"}


def test_threads_get_the_same_terms() -> None:
    texts = [f"policies{number} automata running rules getUser{number} العربية 東京都" for number in range(200)]
    alone = [analyze(text, "en") for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: analyze(text, "en"), texts * 3)) == alone * 3


@given(st.text(st.characters(max_codepoint=127), max_size=40) | st.text("aAbZ09 .._-'+#", max_size=20))
@settings(max_examples=500)
def test_ascii_text_is_cut_as_any_other(text: str) -> None:
    assert analyze_module._ASCII_TOKEN.findall(text) == analyze_module._TOKEN.findall(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The keys of the vault are rotated by a job, and the job is not part of this page.", True),
        ("Die Schluessel werden von einem Dienst erneuert, und dieser Dienst ist nicht Teil der Seite.", False),
        ("De sleutels worden door een dienst vernieuwd en dat is geen deel van deze pagina.", False),
        ("for (int i = 0; i < n; i++) { total += rows[i]; } return total;", False),
        ("The café and the naïve one, which are not this and that by it.", False),  # for the detector
        ("the the the the", False),
        ("", False),
    ],
)
def test_plain_english_is_told_without_a_detector(monkeypatch: pytest.MonkeyPatch, text: str, plain: bool) -> None:
    asked: list[object] = []

    class Detector:
        def classify(self, sample: str) -> tuple[str, float]:
            asked.append(sample)
            return "de", 1.0

    monkeypatch.setattr(analyze_module, "_detector", lambda languages: Detector())
    assert (analyze_module.detect(text) == "en") == (plain or not text)
    assert bool(asked) == (not plain and bool(text))
