"""From a query to hits: filters before ranking, outcomes with reasons, equal texts, caps, k that changes no order."""

from __future__ import annotations

import itertools
import math
import socket
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from wellhead import Document, Index, wiring
from wellhead.backends.embedders.profiles import Profile
from wellhead.index.asking import request
from wellhead.records import Hits
from wellhead.search.bm25 import idf
from wellhead.search.rank import POOL, rank
from wellhead.search.request import MOST_K, check
from wellhead.search.threshold import Cuts
from wellhead.testing.fakes import HashEmbedder

LIFE = [
    Document(
        id="under",
        text="Underpopulation: an individual with fewer than two living neighbours does not survive to the next one.",
    ),
    Document(id="glider", text="The glider is a small pattern that moves diagonally across the board."),
    Document(id="sum", text="Growth mappings turn the neighbourhood sum into a change of state."),
    Document(id="tax", text="Invoices are sent by the accounting office at the end of each month."),
]


class Spectrum:
    """A text's vector is the mix of colours that it names: red, green, blue; grey for none of them."""

    name = "spectrum"
    dims = 3

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(-1, 3)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.array([text.count(colour) for colour in ("red", "green", "blue")], np.float32) + np.float32(0.001)


def open_with(*documents: Document | str, embedder: object = "spectrum") -> Index:
    index = Index.open(":memory:", embedder=Spectrum() if embedder == "spectrum" else embedder)  # type: ignore[arg-type]
    numbered = (Document(id=f"d{n}", text=one) if isinstance(one, str) else one for n, one in enumerate(documents))
    report = index.add(numbered)
    assert report.complete, report
    return index


def with_cuts(monkeypatch: pytest.MonkeyPatch, **cuts: float) -> None:
    lines = {name: (cut, 0.0) for name, cut in cuts.items()}
    profile = Profile(weight=0.5, cuts=Cuts(hybrid=lines, dense=lines, lexical=lines))
    monkeypatch.setattr(wiring, "profile", lambda model: profile)


def ids(hits: Hits) -> list[str]:
    return [hit.passage.document_id for hit in hits]


# -- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("B51")
def test_a_passage_without_a_word_of_the_question_is_found_by_meaning() -> None:
    index = open_with(*LIFE, embedder="static")
    assert ids(index.search("how do cells die", mode="lexical")) == []
    assert ids(index.search("how do cells die", mode="dense"))[0] == "under"
    assert ids(index.search("how do cells die", cut="off"))[0] == "under"


@pytest.mark.promise("D3")
def test_a_question_that_words_it_otherwise_finds_its_answer() -> None:
    index = open_with(
        "Kafka consumers read messages in batches.",
        "MySQL indexes: a B+ tree over a frequently queried column makes slow statements fast.",
        "The Redis pool keeps connections open between requests.",
        embedder="static",
    )
    hits = index.search("Why are lookups against my relational tables so sluggish?")
    assert ids(hits)[0] == "d1"
    assert hits[0].signals.bm25 == 0.0


@pytest.mark.promise("B24")
def test_each_leg_finds_what_the_other_one_cannot() -> None:
    crowd = [f"Ticket TCK-{number} was closed by the support team." for number in range(1000, 1060)]
    index = open_with(*LIFE, *crowd, embedder="static")
    by_name = index.search("TCK-1042", k=1)
    assert by_name[0].text == crowd[42]
    assert by_name[0].signals.lexical_rank == 1
    assert index.search("TCK-1042", k=1, mode="dense")[0].text != crowd[42]
    by_meaning = index.search("how do cells die", k=1, cut="off")
    assert ids(by_meaning) == ["under"]
    assert by_meaning[0].signals.lexical_rank is None
    assert by_meaning[0].signals.dense_rank == 1


@pytest.mark.promise("A3")
def test_the_default_pipeline_opens_no_socket_and_reads_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with Index.open(":memory:") as index:
        index.add(LIFE)
        assert ids(index.search("a pattern that moves"))[0] == "glider"


@pytest.mark.promise("B28")
def test_a_lexical_match_is_returned_however_far_its_meaning_lies() -> None:
    index = open_with("red red red zebra", *(f"blue {'blue ' * n}" for n in range(20)))
    hits = index.search("blue zebra", k=21)
    assert "d0" in ids(hits)
    assert hits[ids(hits).index("d0")].signals.lexical_rank is not None


# -- filters ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D40")
@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_k_is_filled_from_what_the_filter_admits_though_all_the_best_are_others(mode: str) -> None:
    others = [Document(id=f"o{n}", text="red " * (2 + n), metadata={"shop": "other"}) for n in range(40)]
    ours = [Document(id=f"m{n}", text=f"red blue green number{n}", metadata={"shop": "mine"}) for n in range(5)]
    index = open_with(*others, *ours)
    assert not {"m0", "m1", "m2", "m3", "m4"} & set(ids(index.search("red", k=5, mode=mode)))  # type: ignore[arg-type]
    hits = index.search("red", k=5, mode=mode, filters={"shop": "mine"})  # type: ignore[arg-type]
    assert sorted(ids(hits)) == ["m0", "m1", "m2", "m3", "m4"]


@pytest.mark.promise("D43")
def test_a_filter_that_admits_nothing_gives_no_hit_and_says_so() -> None:
    index = open_with(Document(id="a", text="red", metadata={"shop": "mine"}))
    for filters in ({"shop": "nobody"}, {"shop": {"$in": []}}, {"colour": "red"}):
        hits = index.search("red", filters=filters)
        assert (len(hits), hits.outcome, bool(hits)) == (0, "filtered_out", False)
        assert hits.why_empty.startswith("the filters admit 0 of 1 passages")


# -- outcomes ---------------------------------------------------------------------------------------------------------


def test_the_probability_asks_what_share_of_the_words_one_passage_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = Profile(weight=0.5, cuts=Cuts(fit=(0.0, 0.0, 1.0, 0.0)))
    monkeypatch.setattr(wiring, "profile", lambda model: profile)
    index = open_with("red gate", "red green tower " * 20, "blue")
    hits = index.search("red green gate tower", cut="off")
    weights = {word: idf(3, frequency) for word, frequency in (("red", 2), ("green", 1), ("gate", 1), ("tower", 1))}
    held = {
        document: sum(weights[word] for word in words) / sum(weights.values())
        for document, words in (("d0", ["red", "gate"]), ("d1", ["red", "green", "tower"]), ("d2", []))
    }
    expected = {document: 1 / (1 + math.exp(-share * math.sqrt(4))) for document, share in held.items()}
    assert {hit.passage.document_id: hit.signals.probability for hit in hits} == pytest.approx(expected)
    assert hits.evidence["held"] == pytest.approx(held["d1"])
    assert hits.evidence["probability"] == pytest.approx(expected["d1"])
    assert index.explain("red green gate tower", hits[0].id).signals == hits[0].signals


def test_an_empty_index_is_told_from_a_miss() -> None:
    empty = Index.open(":memory:", embedder=Spectrum()).search("red")
    assert (empty.outcome, empty.why_empty) == ("empty_index", "nothing is indexed here yet")
    miss = open_with("green").search("red", mode="lexical")
    assert (miss.outcome, miss.why_empty) == ("no_match", "no passage holds a word of the query")


def test_a_query_of_stopwords_says_that_it_has_no_word_to_look_for() -> None:
    hits = open_with(Document(id="a", text="red", language="en")).search("how is it?", mode="lexical")
    assert hits.outcome == "no_match"
    assert "only stopwords" in hits.why_empty


def test_a_query_far_from_everything_is_no_match_with_its_near_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red red", "red green", "grey")
    with_cuts(monkeypatch, cosine=0.9, coverage=0.9)
    hits = index.search("blue")
    assert (hits.outcome, len(hits)) == ("no_match", 0)
    assert len(hits.near_misses) == 3
    assert {hit.verdict for hit in hits.near_misses} == {"below"}
    assert "profile cut, not calibrated" in hits.why_empty
    assert hits.threshold is not None
    assert hits.evidence["cosine"] < 0.9
    assert index.search("red").outcome == "hits"


def test_one_hit_above_the_cut_answers_the_query_and_the_others_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red", "red green", "green", "blue")
    with_cuts(monkeypatch, cosine=0.9)
    hits = index.search("red", mode="dense")
    assert [hit.verdict for hit in hits] == ["pass", "below", "below", "below"]
    assert hits.near_misses == ()


def test_a_rare_name_answers_a_query_that_no_signal_vouches_for(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red FRY-4012 green", "blue", "green")
    with_cuts(monkeypatch, cosine=0.99, coverage=0.99)
    assert ids(index.search("what is FRY-4012 about blue moons"))[0] in {"d0", "d1"}
    assert index.search("what is FRY-9999 about pink moons").outcome == "no_match"


def test_cut_hit_drops_what_is_below_and_keeps_it_as_near_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red", "red green", "green", "blue")
    with_cuts(monkeypatch, cosine=0.9)
    hits = index.search("red", mode="dense", cut="hit")
    assert ids(hits) == ["d0"]
    assert [hit.rank for hit in hits.near_misses] == [1, 2, 3]
    assert ids(index.search("red", mode="dense", cut="off", k=2)) == ["d0", "d1"]


def test_cut_off_never_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red", "green")
    with_cuts(monkeypatch, cosine=0.9999, coverage=0.9999)
    hits = index.search("blue", cut="off")
    assert (hits.outcome, len(hits), hits.threshold) == ("hits", 2, None)


@pytest.mark.promise("A21")
@pytest.mark.promise("D10")
def test_an_explicit_threshold_is_inclusive_and_cuts_before_k() -> None:
    index = open_with("red", "red green", "green", "blue")
    found = index.search("red", mode="dense", cut="off")
    second = found[1].signals.cosine
    assert second is not None
    assert ids(index.search("red", mode="dense", threshold=second)) == ids(found)[:2]
    assert ids(index.search("red", mode="dense", threshold=second + 1e-9)) == ids(found)[:1]
    assert ids(index.search("red", mode="dense", threshold=second, k=1)) == ids(found)[:1]
    none = index.search("red blue", mode="dense", threshold=1.0)
    assert (none.outcome, none.threshold.origin if none.threshold else "") == ("no_match", "user")
    assert "your threshold" in none.why_empty


@pytest.mark.promise("D11")
def test_every_hit_shows_what_was_measured_and_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_with("red car", "red green", "blue")
    with_cuts(monkeypatch, cosine=0.9)
    for hit in index.search("red car"):
        assert hit.verdict in {"pass", "below"}
        assert hit.signals.cosine is not None
        assert -1.0 <= hit.signals.cosine <= 1.0
        assert hit.signals.bm25 is not None
        assert hit.signals.coverage is not None
        assert 0.0 <= hit.signals.coverage <= 1.0
        assert (hit.signals.lexical_rank is None) == (hit.signals.bm25 == 0.0)
        assert hit.signals.dense_rank in {1, 2, 3}


# -- equal texts and caps ---------------------------------------------------------------------------------------------


def test_equal_texts_are_one_hit_with_every_other_place_that_the_filter_admits() -> None:
    places = [Document(id=f"d{n}", text="red door", metadata={"n": n}, uri=f"https://x.test/{n}") for n in range(4)]
    index = open_with(*places, "green door")
    hits = index.search("red door")
    assert len(hits) == 2
    assert {hits[0].passage.document_id, *(source.document_id for source in hits[0].also_in)} == {
        "d0",
        "d1",
        "d2",
        "d3",
    }
    assert [source.passage_id for source in hits[0].also_in] == sorted(source.passage_id for source in hits[0].also_in)
    (narrowed,) = index.search("red door", filters={"n": {"$in": [1, 3]}})
    assert {narrowed.passage.document_id, *(source.document_id for source in narrowed.also_in)} == {"d1", "d3"}


def test_per_document_caps_what_one_document_may_fill() -> None:
    long = "\n\n".join(f"# Part {n}\n\nred words of part {n}" for n in range(6))
    index = open_with(
        Document(id="long", text=long, media_type="text/markdown"),
        "a sky and a sea of green where red is rare",
        "green",
    )
    assert ids(index.search("red", k=3)) == ["long"] * 3
    assert ids(index.search("red", k=3, per_document=1)) == ["long", "d1", "d2"]
    assert ids(index.search("red", k=3, per_document=2))[:2] == ["long", "long"]


@pytest.mark.promise("A29")
def test_what_does_not_fit_is_passed_over_and_smaller_ones_are_still_tried() -> None:
    index = open_with("red " * 40, "red red green", "red " * 30 + "green", "green red blue")
    assert ids(index.search("red", mode="dense")) == ["d0", "d2", "d1", "d3"]
    assert ids(index.search("red", mode="dense", max_tokens=7)) == ["d1", "d3"]
    assert ids(index.search("red", mode="dense", max_tokens=3)) == ["d1"]
    assert ids(index.search("red", mode="dense", max_tokens=43)) == ["d0", "d1"]
    assert ids(index.search("red", mode="dense", max_tokens=7, k=1)) == ["d1"]
    assert [hit.rank for hit in index.search("red", mode="dense", max_tokens=7)] == [1, 2]


def test_where_nothing_fits_it_is_a_miss_that_says_so() -> None:
    hits = open_with("red red red red", "red red red green").search("red", max_tokens=2)
    assert (hits.outcome, len(hits)) == ("no_match", 0)
    assert "max_tokens=2" in hits.why_empty


# -- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B26")
def test_the_pool_of_each_leg_is_three_times_the_most_that_can_be_asked_for() -> None:
    assert POOL >= 3 * MOST_K
    texts = [f"red {'blue ' * (n % 7)}word{n}" for n in range(POOL + 60)]
    index = open_with(*texts)
    view = index._view()
    ranking = rank(view, request(index._house, check("red"), view))
    for ranks in (ranking.lexical_rank, ranking.dense_rank):
        assert sorted(ranks[~np.isnan(ranks)].tolist()) == list(range(1, POOL + 1))


@pytest.mark.promise("B26")
@pytest.mark.parametrize("fusion", ["blend", "rrf", "convex"])
def test_the_order_does_not_depend_on_k(fusion: str) -> None:
    texts = [f"red {'blue ' * (n % 7)}{'green ' * (n % 5)}word{n}" for n in range(POOL + 60)]
    index = open_with(*texts)
    most = index.search("red blue", k=100, fusion=fusion)  # type: ignore[arg-type]
    for k in (1, 2, 10, 50):
        assert index.search("red blue", k=k, fusion=fusion).hits == most[:k]  # type: ignore[arg-type]


@pytest.mark.promise("B19")
@pytest.mark.promise("B12")
@pytest.mark.parametrize(
    ("mode", "fusion"),
    [*itertools.product(["hybrid"], ["blend", "rrf", "convex"]), ("lexical", "blend"), ("dense", "blend")],
)
def test_equal_scores_are_ordered_by_passage_id_whatever_came_first(mode: str, fusion: str) -> None:
    texts = [f"red tie{n}" for n in range(30)]
    for order in (texts, texts[::-1]):
        index = open_with(*(Document(id=text.split()[1], text=text) for text in order))
        hits = index.search("red", k=10, mode=mode, fusion=fusion)  # type: ignore[arg-type]
        if fusion != "rrf":
            assert len({hit.score for hit in hits}) == 1
        found = [hit.id for hit in hits]
        assert found == sorted(hit.id for hit in index.search("red", k=100, mode=mode, fusion=fusion))[:10]  # type: ignore[arg-type]


@pytest.mark.promise("D31")
@pytest.mark.parametrize("fusion", ["blend", "rrf", "convex"])
def test_the_same_query_gives_the_same_hits(fusion: str) -> None:
    texts = [f"red {'blue ' * (n % 3)}note {n}" for n in range(50)]
    index = open_with(*texts, embedder=HashEmbedder())
    first = index.search("red note", k=20, fusion=fusion)  # type: ignore[arg-type]
    for _ in range(5):
        assert index.search("red note", k=20, fusion=fusion).hits == first.hits  # type: ignore[arg-type]


def test_ranks_count_from_one_without_gaps_and_scores_never_rise() -> None:
    hits = open_with(*(f"red {'green ' * n}" for n in range(9)), "red ", embedder=HashEmbedder()).search("red", k=9)
    assert [hit.rank for hit in hits] == list(range(1, 10))
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


# -- citations --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B31")
@pytest.mark.promise("B32")
def test_a_hit_carries_its_file_and_headings_and_a_header_can_be_made_of_its_citation() -> None:
    text = "# Continuous\n\nred\n\n## Growth mappings\n\nThe green growth mapping."
    index = open_with(Document(id="automata/lenia.md", text=text, media_type="text/markdown"))
    (hit,) = index.search("growth mapping", k=1)
    assert hit.passage.heading == ("Continuous", "Growth mappings")
    assert f"--- passage {hit.rank} — {hit.citation} ---" == "--- passage 1 — automata/lenia.md § Growth mappings ---"


@pytest.mark.promise("A20")
def test_a_positional_name_can_be_made_of_a_passage() -> None:
    text = "# One\n\nred\n\n# Two\n\ngreen"
    index = open_with(Document(id="billing", text=text, media_type="text/markdown"))
    named = [f"kb:{passage.document_id}#{passage.ordinal}" for passage in index.passages("billing")]
    assert named == ["kb:billing#0", "kb:billing#1"]


def test_a_rare_name_vouches_for_the_passage_that_holds_it_under_a_cut_per_hit() -> None:
    far = [f"Chapter {number} is on gardening and the weather." for number in range(40)]
    index = open_with("FRY-4012 was retired.", *far, embedder="static")
    query = "please tell me everything that anybody ever wrote about FRY-4012 and its many colourful friends"
    per_query, per_hit = index.search(query), index.search(query, cut="hit")
    assert per_query.outcome == per_hit.outcome == "hits"
    assert ids(per_hit)[0] == "d0"
    assert per_hit[0].verdict == per_query[0].verdict == "pass"


def test_accents_are_folded_where_the_filter_leaves_no_exact_form() -> None:
    index = Index.open(":memory:")
    index.add(
        [
            Document(id="fr", text="un café noir", language="fr", metadata={"l": "fr"}),
            Document(id="en", text="a cafe in town", language="en", metadata={"l": "en"}),
        ]
    )
    assert ids(index.search("cafe", mode="lexical", cut="off")) == ["en"]
    assert ids(index.search("cafe", mode="lexical", cut="off", filters={"l": "fr"})) == ["fr"]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_explain_measures_what_the_search_measured(mode: str) -> None:
    index = open_with(*LIFE, embedder="static")
    for hit in index.search("how do live cells die", mode=mode, cut="off"):  # type: ignore[arg-type]
        explained = index.explain("how do live cells die", hit.id, mode=mode, cut="off")  # type: ignore[arg-type]
        assert explained.signals == hit.signals
        assert explained.verdict == hit.verdict
        assert explained.rank == hit.rank


def test_a_budget_that_leaves_out_all_that_answers_is_no_match() -> None:
    long = "To roll back a release, run the rollback command twice. " * 6
    index = open_with(long, "---- ok", embedder="static")
    hits = index.search("how do I roll back a release?", max_tokens=6)
    assert hits.outcome == "no_match"
    assert "max_tokens=6" in hits.why_empty
    assert index.search("how do I roll back a release?", max_tokens=500)[0].text == long.strip()


@pytest.mark.promise("A21")
@pytest.mark.promise("D10")
def test_a_threshold_is_applied_before_the_cut_to_k() -> None:
    words = [f"zebra zebra stripes number{number}" for number in range(12)]
    index = open_with(*words, "Horses graze in the meadow all day.", embedder="static")
    query = "zebra stripes: do horses graze in meadows?"
    best = index.search(query, mode="dense", k=1, cut="off")[0]
    ranked = index.search(query, k=20, cut="off", weight=1.0)
    place = next(hit.rank for hit in ranked if hit.id == best.id)
    assert place > 1, "the passage nearest by cosine must not be the first by the blended score"
    cut = best.signals.cosine
    assert cut is not None
    hits = index.search(query, k=1, weight=1.0, threshold={"cosine": cut})
    assert [hit.id for hit in hits] == [best.id]
