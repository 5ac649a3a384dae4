"""Text to terms, the same way for passages and for queries.

Two fields come out of every text: `stems` (folded by the language's Snowball stemmer) and `words` (the exact forms),
so that an exact form can outrank its stem-mates. Both hold identifiers whole and in parts: `getUserById` is found by
itself, by `user` and by `get user`. Stopwords are few, on purpose: `state`, `set` and `type` are search terms.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import regex

from wellhead.records import Terms

__all__ = [
    "ANALYZER",
    "LANGUAGES",
    "STOPWORDS",
    "analyze",
    "detect",
    "fold_accents",
    "identifiers",
    "query_language",
    "stems_of",
]

# Part of every index's fingerprint: raise it whenever a passage could yield other terms than before.
ANALYZER = "wellhead-2"

_ENGLISH = """
a an and are as at be been but by can did do does for from had has have how i if in into is it its may me my no not of
on or our shall should so than that the their them then there these they this those to was we were what when where
which while who whom why will with would you your
"""
STOPWORDS = frozenset(_ENGLISH.split())

# English plurals that no rule of endings finds, each before its singular: words of Latin and Greek that technical texts
# keep, and the old English ones. Left out are those that are common as something else (leaves, lives, media, data).
_IRREGULAR = """
addenda addendum algae alga analyses analysis appendices appendix automata automaton axes axis bacteria bacterium
cacti cactus children child codices codex corpora corpus crises crisis criteria criterion
diagnoses diagnosis errata erratum feet foot foci focus fungi fungus geese goose genera genus halves half
hypotheses hypothesis indices index knives knife loci locus matrices matrix men man mice mouse moduli modulus
nuclei nucleus oxen ox parentheses parenthesis people person phenomena phenomenon polyhedra polyhedron quanta quantum
radii radius schemata schema shelves shelf spectra spectrum stimuli stimulus strata stratum syllabi syllabus
symposia symposium syntheses synthesis teeth tooth theses thesis thieves thief vertices vertex vortices vortex
wives wife wolves wolf women woman
"""
_SINGULAR = dict(zip(*[iter(_IRREGULAR.split())] * 2, strict=True))

# ISO 639-1 -> Snowball's name of the algorithm.
_SNOWBALL = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
# Words of English that are none in the other languages: of prose they are about one in eight.
_TELLING = frozenset(("the", "and", "that", "with", "this", "from", "which", "have", "are", "not", "it", "by"))
_TELLING_LEAST, _TELLING_SHARE = 3, 0.08
# Languages that are analysed without a stemmer.
_UNSTEMMED = ("bg", "cs", "fa", "he", "hr", "ja", "ko", "pl", "sk", "sl", "th", "uk", "ur", "vi", "zh")
LANGUAGES: tuple[str, ...] = tuple(sorted((*_SNOWBALL, *_UNSTEMMED)))
_DEFAULT_LANGUAGE = "en"

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}\u200c\u200d]--[{_UNSPACED}]]"
# A run of a script that puts no spaces between words, or a word with what may join its parts. `.NET`, `C++`, `C#`,
# `F#` and `g++` keep their marks, `C++17` too; a sign at the end of an ordinary word (`work?`) is dropped.
_TOKEN = regex.compile(
    rf"[{_UNSPACED}]+"
    rf"|(?:(?<![\p{{L}}\p{{N}}.])\.(?=\p{{Lu}}){_LETTER}+"
    rf"|\b[A-Za-z]{{1,2}}(?:\+\+|\#)\d*(?![\p{{L}}\p{{N}}+\#])"
    rf"|{_LETTER}+(?:[._\-'’]+{_LETTER}+)*)",
    regex.VERSION1,
)
# The same for text that is ASCII alone, several times as fast.
_ASCII_TOKEN = re.compile(
    r"(?<![A-Za-z0-9.])\.(?=[A-Z])[A-Za-z0-9]+"
    r"|\b[A-Za-z]{1,2}(?:\+\+|\#)\d*(?![A-Za-z0-9+\#])"
    r"|[A-Za-z0-9]+(?:[._\-']+[A-Za-z0-9]+)*",
    re.ASCII,
)
_HAN = regex.compile(r"\p{Han}")
_APOSTROPHE = regex.compile(r"['’]+")
_JOINT = regex.compile(r"[._\-]+")
_MARKED = regex.compile(r"(.*[+#])\d*")
# Parts of one camelCase or mixed word: HTTPServer -> HTTP Server, getUser2 -> get User 2.
_CAMEL = regex.compile(r"\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|\p{Lu}+|\p{N}+|[^\p{Lu}\p{Ll}\p{N}]+")
# Anchored where it looks ahead without end, so that a token of thousands of letters costs one pass.
_IDENTIFIER = regex.compile(
    r"^(?>.*?\p{L}).*[\p{N}_+#]|^(?>.*?\p{N}).*\p{L}|_|^\.\p{L}|\p{Ll}\p{Lu}|\p{Lu}\p{Lu}-|\p{L}\.\p{L}{2}"
)
_NUMBER = regex.compile(r"[vV]?\p{N}+(?:\.\p{N}+)+")
_ARABIC_MARKS = regex.compile(r"[\u064b-\u065f\u0670\u0640]")
_ARABIC_LETTERS = str.maketrans("أإآٱىیکة", "اااايیكه".replace("ی", "ي"))
_JOINERS = {0x200C: None, 0x200D: None}
_CACHE_LIMIT = 200_000


class _Forms(NamedTuple):
    """What one token of the text adds to each field."""

    stems: tuple[str, ...]
    words: tuple[str, ...]


def analyze(text: str, language: str | None) -> Terms:
    """The terms of a text in a language (ISO 639-1; None or an unknown one means no stemming, no stopwords).

    Normalised by NFKC and case folded; Arabic letters unified; Chinese, Japanese, Thai, Lao, Khmer and Burmese as
    overlapping pairs of characters, Han characters also alone. Never fails: any text is data.
    """
    counted = Counter(_tokens(text))
    stems: dict[str, int] = {}
    words: dict[str, int] = {}
    forms = _expander(language or "").all(counted)
    for (of_stems, of_words), count in zip(forms, counted.values(), strict=True):
        for stem in of_stems:
            stems[stem] = stems.get(stem, 0) + count
        for word in of_words:
            words[word] = words.get(word, 0) + count
    return Terms(stems=stems, words=words)


def query_language(text: str, languages: Mapping[str, int], known: Callable[[str], bool]) -> str:
    """The language to analyse a query in, for an index that holds passages in `languages` (passages by language).

    One language: that one, without a guess. Several: the one detected among them; where a query is too short to tell,
    the one whose stems the index knows most of (`known`: whether a passage holds this stem).
    """
    present = sorted(name for name in languages if name)
    if len(present) == 1:
        return present[0]
    language, sure = _guess(text, present)
    if sure or not present:
        return language
    # The default comes first, so that it wins a tie.
    return max([language, *present], key=lambda name: sum(map(known, analyze(text, name).stems)))


def stems_of(text: str, language: str | None) -> dict[str, str]:
    """The stem of every exact word of a text: what joins the two fields."""
    forms = _expander(language or "").all(_tokens(text))
    return {word: stem for one in forms for stem, word in zip(one.stems, one.words, strict=True)}


def identifiers(text: str) -> list[str]:
    """The words of a text that are spelled like a name of something (`FRY-4012`, `apply_secrets`, `getUser`, `C++`).

    As they stand in the field of exact words: whole and case folded, in order, without repeats. A letter is needed
    (numbers and dates name nothing); a hyphen alone (`real-time`) is prose.
    """
    return list(dict.fromkeys(token.casefold() for token in _tokens(text) if _is_identifier(token)))


@lru_cache(maxsize=4096)
def _is_identifier(token: str) -> bool:
    return _IDENTIFIER.search(token) is not None and not token.isnumeric()


def fold_accents(term: str) -> str:
    """The term without its accents, where Unicode decomposes them: `café` -> `cafe`."""
    if term.isascii():
        return term
    return unicodedata.normalize("NFC", "".join(c for c in unicodedata.normalize("NFD", term) if not _is_mark(c)))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) == "Mn" and "\u0300" <= character <= "\u036f"


@lru_cache(maxsize=16)
def _tokens(text: str) -> Sequence[str]:
    """The tokens in order; kept for a moment, for a query is asked for its terms, its stems and its names."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    tokens: Sequence[str] = _TOKEN.findall(unicodedata.normalize("NFKC", text))
    return tokens


class _Seen(dict[str, _Forms]):
    """The forms of the tokens that were seen; those of others are made when they are asked for."""

    def __init__(self, expand: Callable[[str], _Forms]) -> None:
        self._expand = expand

    def __missing__(self, token: str) -> _Forms:
        forms = self[token] = self._expand(token)
        return forms


class _Expander(threading.local):
    """Remembers the forms of tokens seen: text repeats itself. One per thread, for stemmers are not shared."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._forms = _Seen(self._expand)
        self._stemmer = _stemmer(language)

    def all(self, tokens: Iterable[str]) -> list[_Forms]:
        """The forms of each token, in order."""
        if len(self._forms) >= _CACHE_LIMIT:
            self._forms.clear()
        return list(map(self._forms.__getitem__, tokens))

    def _expand(self, token: str) -> _Forms:
        if token.isascii() and token.isalpha() and token.islower():  # most are: nothing to fold, and no parts
            return _Forms((), ()) if token in self._stopwords else _Forms((self._stem(token),), (token,))
        if regex.match(f"[{_UNSPACED}]", token, regex.VERSION1):
            pairs = tuple(_pairs(token))
            return _Forms(pairs, pairs)
        words = [form for part in _parts(token) for form in (self._fold(part),) if form and form not in self._stopwords]
        return _Forms(tuple(map(self._stem, words)), tuple(map(_unify_arabic, words)))

    @property
    def _stopwords(self) -> frozenset[str]:
        return STOPWORDS if self._language == "en" else frozenset()

    @property
    def _singular(self) -> Mapping[str, str]:
        return _SINGULAR if self._language == "en" else {}

    def _fold(self, word: str) -> str:
        if self._language == "tr":
            word = word.replace("İ", "i").replace("I", "ı")
        return word.translate(_JOINERS).casefold()

    def _stem(self, word: str) -> str:
        if word.isascii() and not word.isalpha():
            return word
        if not word.isascii():
            word = _ARABIC_MARKS.sub("", word)
        if self._stemmer is not None:
            word = self._stemmer.stemWord(self._singular.get(word, word)) if self._stemmer is not None else word
        return _unify_arabic(word)


@lru_cache(maxsize=64)
def _expander(language: str) -> _Expander:
    return _Expander(language)


def _stemmer(language: str):  # type: ignore[no-untyped-def]
    if language not in _SNOWBALL:
        return None
    import Stemmer

    return Stemmer.Stemmer(_SNOWBALL[language])


def _unify_arabic(word: str) -> str:
    if word.isascii():
        return word
    return _ARABIC_MARKS.sub("", word).translate(_ARABIC_LETTERS)


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs of a run without spaces; and each Han character, which is a word of its own."""
    if len(run) == 1:
        yield run
        return
    yield from _HAN.findall(run)
    yield from (first + second for first, second in itertools.pairwise(run))


def _parts(token: str) -> list[str]:
    """The token whole, then its parts where it has any."""
    if marked := _MARKED.fullmatch(token):
        return list(dict.fromkeys([token, marked[1]]))
    pieces = _APOSTROPHE.split(token)
    if len(pieces) > 1:
        return [part for piece in pieces if len(piece) > 1 for part in _parts(piece)]
    if _NUMBER.fullmatch(token):
        return _versions(token)
    parts = [token]
    joined = _JOINT.split(token)
    for piece in joined:
        camel = _CAMEL.findall(piece) if not (piece.islower() and piece.isalpha()) else [piece]
        if len(joined) > 1:
            parts.append(piece)
        if len(camel) > 1:
            parts.extend(camel)
    return parts


def _versions(token: str) -> list[str]:
    """A dotted number and what it begins with: `v3.11.7` is found by `3.11.7` and by `3.11`; `7` means nothing."""
    steps = token.lstrip("vV").split(".")
    shorter = [".".join(steps[:count]) for count in range(len(steps), 1, -1)]
    return list(dict.fromkeys([token, *shorter]))


def detect(text: str, languages: Sequence[str] = LANGUAGES) -> str:
    """The language of a text among `languages` (ISO 639-1): English when there is too little to tell."""
    return _guess(text, languages)[0]


def _guess(text: str, languages: Sequence[str]) -> tuple[str, bool]:
    """The language, and whether there was enough to tell."""
    among = _known(tuple(languages))
    default = _DEFAULT_LANGUAGE if not among or _DEFAULT_LANGUAGE in among else among[0]
    sample = text[:4000]
    if len(among) == 1 or not any(character.isalpha() for character in sample):
        return default, len(among) == 1
    if default == _DEFAULT_LANGUAGE and _is_plainly_english(sample):
        return default, True
    name, probability = _detector(tuple(sorted(among))).classify(sample)
    if probability >= 0.9 or not sample.isascii():
        return str(name), True
    return default, False


@lru_cache(maxsize=8)
def _known(languages: tuple[str, ...]) -> tuple[str, ...]:
    """Those of these languages that text is analysed in, in the order given."""
    return tuple(name for name in languages if name in LANGUAGES)


def _is_plainly_english(sample: str) -> bool:
    """Whether words that no other language has as words of its own say so at a glance: a detector takes much longer."""
    if not sample.isascii():
        return False
    words = sample.lower().split()
    telling = list(filter(_TELLING.__contains__, words))
    return len(telling) >= _TELLING_SHARE * len(words) and len(set(telling)) >= _TELLING_LEAST


@lru_cache(maxsize=8)
def _detector(languages: tuple[str, ...]):  # type: ignore[no-untyped-def]
    # Loaded late: the model takes most of a second, and an index in one language never asks.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(languages or LANGUAGES))
    return identifier
