"""The benchmark of fusions compares what it says, kind by kind where it is asked to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "quality_fusion.py"
TEXTS = {"keys": "rotate the signing key", "backup": "nightly backup of the vault", "limits": "too many requests"}


def test_each_kind_of_query_gets_a_row_of_its_own(tmp_path: Path) -> None:
    tiny = tmp_path / "tiny"
    tiny.mkdir()
    queries = {"en-1": "signing key", "en-2": "requests", "de-1": "zzz"}
    qrels = {"en-1": "keys", "en-2": "limits", "de-1": "backup"}
    files = {
        "corpus.jsonl": "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in TEXTS.items()),
        "queries.jsonl": "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in queries.items()),
        "qrels.tsv": "".join(f"{query}\t{document}\t1\n" for query, document in qrels.items()),
    }
    for name, text in files.items():
        (tiny / name).write_text(text)
    command = [sys.executable, str(SCRIPT), str(tiny), "--by-prefix", "tiny"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True, timeout=120)
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert {name: row["queries"] for name, row in rows.items()} == {"tiny": 3, "tiny de": 1, "tiny en": 2}
    # No word of it stands anywhere: the words alone find nothing, and the default must not be worse than that.
    lexical = rows["tiny de"]["others"]["bm25"]
    assert lexical["difference"] == -rows["tiny de"]["blend"]
    assert rows["tiny en"]["blend"] == 1.0
    mean = (rows["tiny de"]["blend"] + 2 * rows["tiny en"]["blend"]) / 3
    assert abs(rows["tiny"]["blend"] - mean) < 1e-9
    assert set(lexical) == {"difference", "low", "high", "p", "wins", "losses"}
    table = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "rrf - blend" in table
    assert "tiny de" in table
