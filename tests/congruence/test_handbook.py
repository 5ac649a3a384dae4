"""What the default search makes of the sample handbook: the floors that a change must not fall through."""

from __future__ import annotations

from pathlib import Path

from wellhead import Index
from wellhead.bench.collection import read_collection
from wellhead.bench.measures import measure_run

HANDBOOK = Path(__file__).parents[2] / "examples" / "handbook"


def test_the_handbook_is_answered_or_refused() -> None:
    collection = read_collection(HANDBOOK)
    assert (len(collection.qrels), len(collection.unanswerable)) == (32, 8)
    assert collection.folder is not None
    with Index.open(":memory:") as index:
        index.sync(collection.folder)
        found = {
            name: [hit.passage.document_id for hit in index.search(text, k=5, per_document=1)]
            for name, text in collection.queries.items()
        }
    run = {name: found[name] for name in collection.qrels}
    values = measure_run(collection.qrels, run, ["R@5", "Success@5"]).values
    assert values["R@5"] >= 0.9
    assert values["Success@5"] >= 0.9
    assert sum(bool(found[name]) for name in collection.unanswerable) <= 2
