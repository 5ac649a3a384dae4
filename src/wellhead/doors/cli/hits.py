"""How hits, and explanations of them, read on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wellhead.doors.cli.output import INDENT, Part, counted, excerpt, one_line, put, say, warn

if TYPE_CHECKING:
    from wellhead.doors.cli.again import Again
    from wellhead.records import Explanation, Hit, Hits, Signals, Threshold

__all__ = ["put_explanation", "put_hit", "say_empty", "say_legend", "say_near_misses", "say_warnings"]

SHORT_ID = 12
TOP_TERMS = 8
NEAR_MISSES = 3


def put_hit(hit: Hit, again: Again) -> None:
    """One hit: rank, score, citation, id, verdict unless it passed; then the text and where else it stands."""
    put(*_headline(hit))
    text, shortened = excerpt(hit.text)
    put(text)
    if shortened:
        put((f"{INDENT}… {again.show(hit.id[:SHORT_ID])}", "dim"))
    for source in hit.also_in:
        put((f"{INDENT}also in {one_line(source.citation)}", "dim"))


def put_explanation(explanation: Explanation) -> None:
    """The signals, the words that gave most, and those that matched by their stem only."""
    put(f"{INDENT}signals: {_signals(explanation.signals)}")
    for line in _terms(explanation):
        put(f"{INDENT}{line}")


def say_empty(hits: Hits, again: Again) -> None:
    """Why there are no hits, the nearest misses, and what to try."""
    too_long = _too_long(hits, again)
    if hits.outcome == "no_match" and not too_long:
        say((f"{hits.outcome}: ", "warning"), "nothing here is close enough to the question")
        say(f"  why: {hits.why_empty}")
    else:
        say((f"{hits.outcome}: ", "warning"), hits.why_empty)
    say_near_misses(hits)
    if hits.outcome == "empty_index":
        say(("next: ", "dim"), again.index_here())
        return
    say(("try: ", "dim"), "a larger --max-tokens" if too_long else _advice(hits, again))
    if hits.near_misses:
        say(("next: ", "dim"), again.explain(hits.near_misses[0].id[:SHORT_ID]))
    elif again.settings["mode"] == "lexical" and hits.outcome == "no_match" and not too_long:
        say(("next: ", "dim"), again.search(mode="hybrid", threshold=None))


def say_near_misses(hits: Hits) -> None:
    """The best of what was cut, with what was measured."""
    for miss in hits.near_misses[:NEAR_MISSES]:
        say(*_headline(miss, label="near miss "), (f"  {_signals(miss.signals)}", "dim"))


def say_warnings(hits: Hits) -> None:
    """What made this search worse than the one asked for, and when no hit vouches for itself."""
    for lack in hits.degraded:
        warn(f"this search is degraded: the {lack.leg} leg is missing", why=lack.why, fix=lack.fix)
    seen, total = hits.coverage.with_vectors, hits.coverage.passages
    if seen < total:
        warn(f"the dense leg sees only {seen} of {counted(total, 'passage')}", fix="run wellhead index again")
    if hits and all(hit.verdict == "below" for hit in hits):
        why = "only the best evidence of the whole scope does" if hits.threshold else "nothing was cut (--cut off)"
        fix = "read them with doubt, or leave such hits out with --cut hit"
        warn("no hit reaches the cut by itself", why=why, fix=fix)


def say_legend(hits: Hits, again: Again) -> None:
    """What the number and the mark mean, where a hit that is shown carries the mark."""
    if not any(hit.verdict == "below" for hit in hits):
        return
    fusion = "blended" if again.settings["fusion"] == "blend" else again.settings["fusion"]
    score = f"{fusion} score" if again.settings["mode"] == "hybrid" else "score"
    say((f"the number on the left is the {score}; no cut is on that", "dim"))
    cut = f" ({_cut(hits.threshold)})" if hits.threshold else ""
    say((f"[below]: none of the hit's signals reaches its cut{cut}; --cut hit leaves such hits out", "dim"))


def _too_long(hits: Hits, again: Again) -> bool:
    """Whether passages were found and none fits: then nothing was cut, and something was measured."""
    limited = again.settings["max_tokens"] is not None
    return limited and hits.outcome == "no_match" and not hits.near_misses and any(hits.evidence.values())


def _advice(hits: Hits, again: Again) -> str:
    """What else to ask; never what would give the same answer again."""
    if hits.outcome == "filtered_out":
        return "drop or widen --filter"
    if not hits.near_misses:
        by_words = again.settings["mode"] == "lexical"
        return "other words, or --mode hybrid, which looks for the meaning too" if by_words else "other words"
    if again.settings["threshold"] is not None:
        return "other words, or a lower --threshold"
    return "other words, or --cut off to see what is nearest all the same"


def _cut(threshold: Threshold) -> str:
    """The cut that let the question through, and whether anybody fitted it."""
    origin = {
        "profile": "a starting point, not calibrated",
        "calibrated": "calibrated on this index",
        "user": "given by you",
    }[threshold.origin]
    return f"for one, {threshold.signal} >= {threshold.value:.3g}, {origin}"


def _headline(hit: Hit, label: str = "") -> list[Part]:
    score = "-" if hit.score is None else f"{hit.score:.3f}"
    line: list[Part] = [label, f"{hit.rank}. {score}  ", (one_line(hit.citation), "cite")]
    line.append((f"  {hit.id[:SHORT_ID]}", "dim"))
    if hit.verdict != "pass":
        line.append((f"  [{hit.verdict}]", "warning" if hit.verdict == "below" else "dim"))
    return line


def _signals(signals: Signals) -> str:
    ranks = {"bm25": signals.lexical_rank, "cosine": signals.dense_rank}
    told = []
    for name in ("bm25", "coverage", "cosine", "probability", "rerank"):
        value = getattr(signals, name)
        if value is not None:
            rank = f" (rank {ranks[name]})" if ranks.get(name) is not None else ""
            told.append(f"{name} {value:.3f}{rank}")
    return ", ".join(told) or "none"


def _terms(explanation: Explanation) -> Sequence[str]:
    giving = [term for term in explanation.terms if term.score > 0]
    absent = {term.term for term in explanation.terms if term.field == "word" and term.score <= 0}
    silent = sorted(absent.difference(explanation.stem_only))
    lines = [
        f"{term.score:7.3f}  {one_line(term.term)} ({term.field}; {term.passage_count}× here, "
        f"in {counted(term.documents, 'document')})"
        for term in giving[:TOP_TERMS]
    ]
    if len(giving) > TOP_TERMS:
        lines.append(f"{'…':>7}  and {len(giving) - TOP_TERMS} smaller ones")
    if silent:
        lines.append(f"not here: {', '.join(silent)}")
    if explanation.stem_only:
        lines.append(f"only by their stem: {', '.join(explanation.stem_only)}")
    return lines
