from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from wellhead.records import Coverage, Degraded, Hits, Source, Threshold


def test_every_setting_reaches_the_search(run: Any, fake: Any) -> None:
    words = "search why -k 3 --filter area=guides --mode lexical --fusion rrf --per-document 2 --max-tokens 99"
    ended = run(*words.split(), "--cut", "hit", "--threshold", "0.4", "--scope", "tenant=acme")
    assert ended.exit_code == 0
    assert fake.called("scoped")[1] == {"tenant": "acme"}
    assert fake.called("open")[1]["scope_key"] == "tenant"
    assert fake.called("open")[1]["create"] is False
    assert fake.called("search") == (
        ("why",),
        {
            "k": 3,
            "filters": {"area": "guides"},
            "mode": "lexical",
            "fusion": "rrf",
            "per_document": 2,
            "max_tokens": 99,
            "cut": "hit",
            "threshold": 0.4,
        },
    )


def test_a_hit_reads_rank_score_citation_verdict_text(run: Any, fake: Any, make: Any) -> None:
    elsewhere = Source(passage_id="f" * 64, document_id="copy.md", heading=("Twin",))
    fake.hits = Hits(hits=(make.hit(1, also_in=(elsewhere,)), make.hit(2, verdict="below", score=None)))
    ended = run("search", "x")
    assert ended.exit_code == 0
    first, second = make.passage(1), make.passage(2)
    assert ended.stdout.splitlines() == [
        f"1. 0.750  guides/1.md § Rotation  {first.id[:12]}",
        "   Turn the key.",
        "   also in copy.md § Twin",
        f"2. -  guides/2.md § Rotation  {second.id[:12]}  [below]",
        "   Turn the key.",
    ]


@pytest.mark.parametrize("outcome", ["no_match", "filtered_out", "empty_index"])
def test_no_hits_exit_with_3_and_keep_stdout_empty(run: Any, fake: Any, make: Any, outcome: str) -> None:
    fake.hits = Hits(outcome=outcome, why_empty="because of this", near_misses=(make.hit(1, verdict="below"),))
    ended = run("search", "x")
    assert ended.exit_code == 3
    assert ended.stdout == ""
    first = "nothing here is close enough to the question\n  why: " if outcome == "no_match" else ""
    assert ended.stderr.startswith(f"{outcome}: {first}because of this\n")
    assert "near miss 1. 0.750  guides/1.md § Rotation" in ended.stderr


def test_what_to_do_next_depends_on_the_outcome(run: Any, fake: Any, make: Any) -> None:
    fake.hits = Hits(outcome="empty_index", why_empty="it is empty")
    assert "wellhead index PATH --into kb" in run("search", "x").stderr
    fake.hits = Hits(outcome="filtered_out", why_empty="none")
    assert "--filter" in run("search", "x").stderr
    fake.hits = Hits(outcome="no_match", why_empty="none", near_misses=(make.hit(1),))
    told = run("search", "a b").stderr
    assert "--cut off" in told
    assert f"wellhead explain 'a b' {make.passage(1).id[:12]} --index kb" in told


def test_json_is_the_hits_and_nothing_else(run: Any, fake: Any) -> None:
    ended = run("search", "x", "--json", "--explain")
    told = json.loads(ended.stdout)
    assert (told["schema"], told["outcome"], told["query"]) == (1, "hits", "x")
    assert [hit["citation"] for hit in told["hits"]] == ["guides/1.md § Rotation", "guides/2.md § Rotation"]
    assert [why["rank"] for why in told["explanations"]] == [3, 3]


def test_json_without_hits_keeps_the_code(run: Any, fake: Any) -> None:
    fake.hits = Hits(outcome="no_match", why_empty="too far")
    ended = run("search", "x", "--json")
    assert ended.exit_code == 3
    assert json.loads(ended.stdout)["why_empty"] == "too far"


def test_a_degraded_search_warns_with_the_command_that_mends_it(run: Any, fake: Any, make: Any) -> None:
    lack = Degraded(leg="dense", why="the embedder is another", fix="wellhead index docs --into kb")
    fake.hits = Hits(hits=(make.hit(1),), degraded=(lack,), coverage=Coverage(passages=9, with_vectors=4))
    ended = run("search", "x")
    assert ended.exit_code == 0
    assert "the dense leg is missing\n  why: the embedder is another\n  mend: wellhead index docs" in ended.stderr
    assert "sees only 4 of 9 passages" in ended.stderr
    assert "warning" not in ended.stdout


def test_the_mark_is_explained_apart_from_the_score(run: Any, fake: Any, make: Any) -> None:
    cut = Threshold(signal="probability", value=0.0901, origin="profile")
    fake.hits = Hits(hits=(make.hit(1), make.hit(2, verdict="below", score=0.093)), threshold=cut)
    assert run("search", "x").stderr == (
        "the number on the left is the blended score; no cut is on that\n"
        "[below]: none of the hit's signals reaches its cut (for one, probability >= 0.0901, a starting point, not "
        "calibrated); --cut hit leaves such hits out\n"
    )
    assert "is the rrf score" in run("search", "x", "--fusion", "rrf").stderr
    assert run("search", "x", "--json").stderr == ""
    fake.hits = Hits(hits=(make.hit(1),), threshold=cut)
    assert run("search", "x").stderr == ""


def test_with_the_cut_off_the_mark_has_its_legend_too(run: Any, fake: Any, make: Any) -> None:
    fake.hits = Hits(hits=(make.hit(1), make.hit(2, verdict="below")))
    assert "[below]: none of the hit's signals reaches its cut; --cut hit" in run("search", "x", "--cut", "off").stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_hits_that_are_all_below_their_cut_are_warned_of(run: Any, fake: Any, make: Any, form: tuple[str, ...]) -> None:
    cut = Threshold(signal="probability", value=0.09, origin="profile")
    fake.hits = Hits(hits=(make.hit(1, verdict="below"), make.hit(2, verdict="below")), threshold=cut)
    ended = run("search", "x", *form)
    assert ended.exit_code == 0
    assert "warning: no hit reaches the cut by itself\n" in ended.stderr
    assert "warning" not in ended.stdout
    fake.hits = Hits(hits=(make.hit(1, verdict="below"), make.hit(2)), threshold=cut)
    assert "warning" not in run("search", "x", *form).stderr


def test_what_is_suggested_asks_with_the_same_options(run: Any, fake: Any, make: Any) -> None:
    fake.hits = Hits(outcome="no_match", why_empty="none", near_misses=(make.hit(1),))
    given = ["--index", "kb", "--scope", "tenant=acme", "-k", "3", "--filter", "area=guides", "--filter", 'n="5"']
    given += ["--filter", 'price={"$gt": 5}', "--mode", "dense", "--fusion", "rrf", "--threshold", "0.4"]
    told = run("search", "a b", *given).stderr
    assert "--cut off" not in told
    again = _suggested(told)
    assert again[:3] == ["explain", "a b", make.passage(1).id[:12]]
    asked = fake.called("search")[1]
    run(*again)
    assert fake.called("explain")[1] == asked
    assert [options for call, _, options in fake.calls if call == "scoped"] == [{"tenant": "acme"}] * 2


def test_a_question_that_begins_with_a_dash_stays_one_when_suggested(run: Any, fake: Any, make: Any) -> None:
    fake.hits = Hits(outcome="no_match", why_empty="none", near_misses=(make.hit(1),))
    told = run("search", "--threshold", "coverage=0.25", "--", "--all-projects").stderr
    assert run(*_suggested(told)).exit_code == 0
    args, options = fake.called("explain")
    assert args == ("--all-projects", make.passage(1).id)
    assert options["threshold"] == {"coverage": 0.25}


def test_an_empty_scope_is_filled_under_that_scope(run: Any, fake: Any) -> None:
    fake.hits = Hits(outcome="empty_index", why_empty="it is empty")
    told = run("search", "x", "--scope", "tenant=acme").stderr
    assert "next: wellhead index PATH --into kb --scope tenant=acme\n" in told


def test_without_a_candidate_no_advice_gives_the_same_answer(run: Any, fake: Any) -> None:
    fake.hits = Hits(outcome="no_match", why_empty="no passage holds a word of the query", evidence={"coverage": 0.0})
    told = run("search", "x", "--mode", "lexical", "--filter", "area=guides").stderr
    assert "--cut off" not in told
    assert "--mode hybrid" in told
    assert _suggested(told) == ["search", "x", "--index", "kb", "--filter", "area=guides"]


def test_hits_that_do_not_fit_are_not_called_far_from_the_question(run: Any, fake: Any) -> None:
    fake.hits = Hits(outcome="no_match", why_empty="none fits into max_tokens=1", evidence={"coverage": 0.5})
    told = run("search", "x", "--max-tokens", "1", "--mode", "lexical").stderr
    assert told == "no_match: none fits into max_tokens=1\ntry: a larger --max-tokens\n"


def _suggested(told: str) -> list[str]:
    """The words of the suggested command, as a shell reads them."""
    (line,) = [line for line in told.splitlines() if line.startswith("next: wellhead ")]
    return shlex.split(line)[2:]


def test_explained_hits_show_signals_and_words(run: Any, fake: Any) -> None:
    out = run("search", "x", "--explain").stdout
    assert "signals: bm25 2.500 (rank 4), coverage 0.250, cosine 0.125 (rank 7)" in out
    assert "2.500  polici (stem; 2× here, in 9 documents)" in out
    assert "not here: absent\n" in out
    assert "only by their stem: policing" in out
    assert fake.called("explain")[1]["k"] == 10


def test_explain_takes_the_short_id_and_says_why_it_is_not_returned(run: Any, fake: Any, make: Any) -> None:
    wanted = make.passage(1).id
    ended = run("explain", "policies", wanted[:12].upper(), "-k", "2")
    assert ended.exit_code == 0
    assert fake.called("explain")[0] == ("policies", wanted)
    assert "not returned: rank 3, score 0.500, verdict below" in ended.stdout
    assert "it is below k" in ended.stdout
    assert json.loads(run("explain", "policies", wanted[:12], "--json").stdout)["returned"] is False


def test_explain_of_an_unknown_passage_is_a_usage_error(run: Any, fake: Any) -> None:
    ended = run("explain", "x", "ffffffffffff")
    assert ended.exit_code == 2
    assert "ffffffffffff" in ended.stderr
