"""A corpus out of a seed, of any number of rows: texts, vectors and metadata that cost a search what real ones do.

The same seed and number of rows give the same corpus. It comes in batches, each from a random stream of its own, so
that a million texts never lie in memory and any row can be made again.

texts       about 80 words: two in five are stopwords, the others follow Zipf's law over a vocabulary that grows with
            the rows, and a third of these belong to the text's subject
vectors     256 dimensions, unit length: one centre a subject, something that all have in common, and noise
metadata    `tenant` and `topic`, each with one value that 1 % of the rows carry and one that 0.1 % carry, and `year`
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wellhead import Document
from wellhead.analyze import STOPWORDS

__all__ = [
    "DIMS",
    "ONE_PERCENT",
    "ONE_PER_MILLE",
    "Batch",
    "Corpus",
    "Precomputed",
    "Queries",
    "Stopwatch",
    "documents",
]

Floats: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int32]

DIMS = 256
ONE_PERCENT = "one percent"
ONE_PER_MILLE = "one per mille"

_BATCH = 500
_SUBJECTS = 200
_SUBJECT_WORDS = 300
_WORDS = 80

_GLUE = "the of and to in a is for that with on as are it be by this from or at was not we can which"
_GLUE_SHARE = 0.4
_SUBJECT_SHARE = 0.3

# What words are made of, each as often as it stands there; a dash is nothing.
_ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sh sl sp st str t th tr v w"
_VOWELS = "a e i o u ai ea ee ie oa oo ou"
_CODAS = "- - - - l n r s t m ck nd nt rt st x"
_ENDINGS = "- - - s ed ing er ly al"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Neighbouring rows.

    `words` holds, for each row, the places of its words in `vocabulary`; `vectors` is float32[n, 256].
    """

    rows: range
    words: Sequence[Ints]
    vectors: Floats
    vocabulary: Sequence[str]

    def texts(self) -> list[str]:
        return [" ".join(map(self.vocabulary.__getitem__, places.tolist())) for places in self.words]

    def documents(self) -> list[Document]:
        return [
            Document(
                id=f"doc-{row:07}",
                text=text,
                uri=f"https://docs.example/{row // 1000}/{row}",
                metadata={"tenant": _tenant(row), "topic": _topic(row), "year": 2000 + row % 27},
            )
            for row, text in zip(self.rows, self.texts(), strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Queries:
    """What is asked: four to six words of one subject with some stopwords, and a vector each (float32[n, 256]).

    `words` are the places of the content words in the vocabulary.
    """

    texts: Sequence[str]
    words: Sequence[Ints]
    vectors: Floats

    def __len__(self) -> int:
        return len(self.texts)

    def rehearsed(self) -> list[str]:
        """The same words backwards: they warm what the queries will touch, but no answer can be remembered."""
        return [" ".join(reversed(text.split())) for text in self.texts]

    def save(self, path: Path) -> None:
        """Write what a process needs that only asks."""
        np.savez(path, texts=np.array(self.texts), vectors=self.vectors)

    @classmethod
    def load(cls, path: Path) -> Queries:
        with np.load(path) as held:
            return cls(texts=held["texts"].tolist(), words=(), vectors=held["vectors"])


class Corpus:
    """All rows of one seed. Rows beyond `rows` can be had too: they are what is added later."""

    def __init__(self, rows: int, seed: int) -> None:
        self.rows = rows
        self.seed = seed
        random = np.random.default_rng(seed)
        content = _vocabulary(_vocabulary_size(rows), random)
        glue = _GLUE.split()
        self.vocabulary = [*glue, *content]
        self._first_content = np.int32(len(glue))
        self._glue = _zipf(len(glue), 2)
        self._everyday = _zipf(len(content), 8)
        self._of_subject = _zipf(min(_SUBJECT_WORDS, len(content)), 2)
        self._subjects = _zipf(_SUBJECTS, 20)
        # The words of a subject are none of the most frequent ones.
        self._subject_words = random.integers(len(content) // 50, len(content), (_SUBJECTS, len(self._of_subject)))
        common = 0.6 * _unit(random.standard_normal(DIMS))
        self._centres = common + _unit(random.standard_normal((_SUBJECTS, DIMS)))

    def batches(self, start: int, stop: int) -> Iterator[Batch]:
        """The rows from `start` up to `stop`."""
        for number in range(start // _BATCH, -(-stop // _BATCH)):
            first = number * _BATCH
            here = slice(max(start - first, 0), min(stop - first, _BATCH))
            words, vectors = self._made(number)
            rows = range(first, first + _BATCH)[here]
            yield Batch(rows=rows, words=words[here], vectors=vectors[here], vocabulary=self.vocabulary)

    def queries(self, count: int) -> Queries:
        """Questions as they might be asked of these texts; none is about one row in particular."""
        random = np.random.default_rng([self.seed, count, 1])
        subjects = _draw(self._subjects, count, random)
        words = [self._query_words(int(subject), random) for subject in subjects]
        names = [[self.vocabulary[place] for place in places] for places in words]
        return Queries(
            texts=[f"how can we {first} the {second} of {' and '.join(rest)}" for first, second, *rest in names],
            words=words,
            vectors=self._vectors(subjects, random.uniform(0.5, 0.9, count), random),
        )

    def _made(self, number: int) -> tuple[Sequence[Ints], Floats]:
        random = np.random.default_rng([self.seed, number])
        subjects = _draw(self._subjects, _BATCH, random)
        vectors = self._vectors(subjects, random.uniform(0.6, 1.4, _BATCH), random)
        lengths = np.clip(random.normal(_WORDS, _WORDS / 4, _BATCH), _WORDS // 4, _WORDS * 2).astype(int)
        words = self._content(np.repeat(subjects, lengths), random)
        stop = random.random(len(words)) < _GLUE_SHARE
        words[stop] = _draw(self._glue, int(stop.sum()), random)
        return np.split(words, np.cumsum(lengths)[:-1]), vectors

    def _content(self, subjects: Ints, random: np.random.Generator) -> Ints:
        """A word for each subject given: of the subject, or of everyday."""
        words = _draw(self._everyday, len(subjects), random)
        own = random.random(len(subjects)) < _SUBJECT_SHARE
        words[own] = self._subject_words[subjects[own], _draw(self._of_subject, int(own.sum()), random)]
        return words + self._first_content

    def _query_words(self, subject: int, random: np.random.Generator) -> Ints:
        drawn = self._content(np.full(64, subject, dtype=np.int32), random)
        distinct = list(dict.fromkeys(drawn.tolist()))
        return np.array(distinct[: random.integers(4, 7)], dtype=np.int32)

    def _vectors(self, subjects: Ints, spread: NDArray[np.float64], random: np.random.Generator) -> Floats:
        noise = random.standard_normal((len(subjects), DIMS)) * (spread / np.sqrt(DIMS))[:, None]
        return _unit(self._centres[subjects] + noise).astype(np.float32)


class Stopwatch:
    """Adds up the seconds that are spent inside `with`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += time.perf_counter() - self._began


class Precomputed:
    """An embedder that is told every vector beforehand.

    `aside` counts the seconds that it takes itself, and that making the documents takes: no figure holds them.
    """

    name = "precomputed"
    dims = DIMS

    def __init__(self, seed: int, queries: Queries) -> None:
        self.revision = f"seed-{seed}"
        self.aside = Stopwatch()
        self._waiting: dict[str, Floats] = {}
        self._queries: dict[str, Floats] = {}
        self.tell_queries(queries.texts, queries.vectors)
        self.tell_queries(queries.rehearsed(), queries.vectors)

    def tell(self, texts: Sequence[str], vectors: Floats) -> None:
        """The vectors of documents that come next; each is forgotten once it is asked for."""
        self._waiting.update(zip(texts, vectors, strict=True))

    def tell_queries(self, texts: Sequence[str], vectors: Floats) -> None:
        self._queries.update(zip(texts, vectors, strict=True))

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """float32[len(texts), 256]."""
        with self.aside:
            return np.stack([self._waiting.pop(text) for text in texts])

    def embed_query(self, text: str) -> Floats:
        """float32[256]."""
        with self.aside:
            return self._queries[text]


def documents(corpus: Corpus, embedder: Precomputed, start: int, stop: int) -> Iterator[Document]:
    """The documents from `start` up to `stop`; the embedder is told their vectors as they come."""
    batches = corpus.batches(start, stop)
    while True:
        with embedder.aside:
            batch = next(batches, None)
            made = [] if batch is None else batch.documents()
            if batch is not None:
                embedder.tell([document.text for document in made], batch.vectors)
        if batch is None:
            return
        yield from made


def _tenant(row: int) -> str:
    return _valued(row, 7, 3) or f"tenant {row % 50}"


def _topic(row: int) -> str:
    return _valued(row, 11, 5) or f"topic {row % 40}"


def _valued(row: int, percent: int, per_mille: int) -> str:
    """The value of a row that belongs to the small parts, which share no row: "" for all others."""
    if row % 100 == percent:
        return ONE_PERCENT
    return ONE_PER_MILLE if row % 1000 == per_mille else ""


def _vocabulary_size(rows: int) -> int:
    """Heaps' law: 30,000 words at 20,000 rows, 200,000 at 1,000,000."""
    return max(1000, int(30_000 * (rows / 20_000) ** 0.485))


def _vocabulary(size: int, random: np.random.Generator) -> list[str]:
    """Distinct words of one to three syllables, many of them forms of one another, the shorter ones mostly first."""
    onsets, vowels, codas, endings = map(_pieces, (_ONSETS, _VOWELS, _CODAS, _ENDINGS))
    found: dict[str, None] = {}
    while len(found) < size:
        count = int(random.integers(1, 4))
        syllables = zip(*(random.choice(pieces, count) for pieces in (onsets, vowels, codas)), strict=True)
        root = "".join(map("".join, syllables))
        forms = [root + ending for ending in random.choice(endings, 3)]
        found.update(dict.fromkeys(form for form in forms if form not in STOPWORDS))
    words = list(found)[:size]
    order = np.argsort([len(word) for word in words] + random.normal(0.0, 2.0, size))
    return [words[place] for place in order]


def _pieces(spelled: str) -> list[str]:
    return [piece.strip("-") for piece in spelled.split()]


def _zipf(size: int, offset: int) -> NDArray[np.float64]:
    """Cumulated shares of `size` ranks, each 1 / (rank + offset)."""
    shares = 1.0 / (np.arange(size) + offset + 1)
    cumulated: NDArray[np.float64] = np.cumsum(shares / shares.sum())
    return cumulated


def _draw(cumulated: NDArray[np.float64], count: int, random: np.random.Generator) -> Ints:
    places = np.searchsorted(cumulated, random.random(count))
    return np.minimum(places, len(cumulated) - 1).astype(np.int32)


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled
