"""Labels drawn at random, for the tests of what must come back as it was written."""

from __future__ import annotations

from hypothesis import strategies as st

from wellhead.bench.labels import Label, LabelledQuery, Labels

# Characters with a meaning in one form or another are drawn often.
_ANY = st.text(
    st.one_of(st.sampled_from('",;\t\n\r |{}\u2028\ufeffé'), st.characters(exclude_categories=["Cs"])), max_size=8
)
TEXTS = _ANY
WORDS = st.text("abcé-_./:#", min_size=1, max_size=6)
_NON_BLANK = _ANY.filter(lambda text: bool(text.strip()))
_TIMES = st.one_of(st.just(""), st.datetimes().map(lambda moment: moment.isoformat()))
_TAGS = st.lists(WORDS, max_size=3, unique=True).map(tuple)


@st.composite
def label(draw: st.DrawFn, ids: st.SearchStrategy[str], grades: st.SearchStrategy[int]) -> Label:
    """One judgement, with any of its parts missing."""
    quote = draw(st.one_of(st.just(""), _NON_BLANK))
    start = draw(st.integers(0, 1000))
    length = len(quote) or draw(st.integers(1, 50))
    return Label(
        document_id=draw(ids),
        quote=quote,
        span=draw(st.one_of(st.none(), st.just((start, start + length)))),
        grade=draw(grades),
        rater=draw(_ANY),
        time=draw(_TIMES),
    )


@st.composite
def labelled_query(draw: st.DrawFn, query_id: str, ids: st.SearchStrategy[str]) -> LabelledQuery:
    """A query with up to four judgements; one in a few is unanswerable."""
    unanswerable = draw(st.sampled_from([False, False, True]))
    grades = st.just(0) if unanswerable else st.integers(0, 3)
    answers = draw(st.lists(label(ids, grades), max_size=4, unique_by=lambda one: (one.place, one.rater, one.time)))
    return LabelledQuery(
        query_id=query_id,
        query=draw(_NON_BLANK),
        need=draw(_ANY),
        tags=draw(_TAGS),
        unanswerable=unanswerable,
        answers=tuple(answers),
    )


@st.composite
def labels(draw: st.DrawFn, ids: st.SearchStrategy[str] = _NON_BLANK) -> Labels:
    """Labels of up to four queries, whose ids and documents are drawn from `ids`."""
    names = draw(st.lists(ids, max_size=4, unique=True))
    return Labels(queries=tuple(draw(labelled_query(name, ids)) for name in names))
