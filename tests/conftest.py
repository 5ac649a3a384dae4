"""What all tests share: how hypothesis draws, where the larger material lies, an index folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[1]

# A failing draw prints its `@reproduce_failure` blob. With CI set the same examples are drawn on each run.
settings.register_profile(
    "small",
    deadline=None,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("small"), max_examples=2000, derandomize=False)
settings.load_profile("small")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger material beside the checkout; a clone without it skips the test."""
    folder = (ROOT / ".." / "shared").resolve()
    if not folder.is_dir():
        pytest.skip("the larger test material (../shared) is not beside this checkout")
    return folder


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    """Where a test may put an index; nothing is there yet."""
    return tmp_path / "kb"
