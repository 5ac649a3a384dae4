"""Starting is cheap. The exact ratios are printed by benchmarks/speed_start.py; here a busy machine is allowed for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "speed_start.py"
ALLOWANCE = 1.25  # over the limit that the benchmark names
TRIES = 3


def measured() -> list[str]:
    """The comparisons that are over their limit and the allowance, in words."""
    command = [sys.executable, str(BENCHMARK), "--json", "--runs", "5"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return [
        f"{row['what']} costs {row['ratio']:.2f} times {row['against']}"
        for row in json.loads(printed)["ratios"]
        if row["ratio"] > row["limit"] * ALLOWANCE
    ]


def test_importing_is_cheap() -> None:
    over: list[str] = []
    for _ in range(TRIES):
        over = measured()
        if not over:
            break
    assert over == []
