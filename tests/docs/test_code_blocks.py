"""Every block of code in the documents runs, page by page, as CONTRIBUTING describes."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
EXIT = re.compile(r"\s+# exit (\d+)$")


class Block(NamedTuple):
    """A fenced block: its language, the file it names, its text, and where its first line stands on the page."""

    language: str
    file: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, from the top."""
    found = []
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map:
            language, _, file = token.info.strip().partition(" ")
            found.append(Block(language, file.strip(), token.content, token.map[0] + 2))
    return found


def commands(block: Block) -> list[tuple[str, int, list[str]]]:
    """Each command of a console block, the exit code it should have, and the lines it should print."""
    found: list[tuple[str, int, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            code = EXIT.search(line)
            found.append((EXIT.sub("", line[2:]), int(code[1]) if code else 0, []))
        elif line.strip():
            assert found, f"line {block.line}: a console block begins with a command"
            found[-1][2].append(line)
    return found


def shows(printed: str, expected: list[str]) -> bool:
    """Whether the expected lines stand in what was printed, in order; `...` stands for anything within a line."""
    patterns = [".*".join(re.escape(part.strip()) for part in line.split("...")) for line in expected]
    rest = iter(printed.splitlines())
    return all(any(re.search(pattern, line) for line in rest) for pattern in patterns)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one line of a console block, with the `wellhead` of this interpreter."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120", "HOME": str(folder)}
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


def check_console(block: Block, folder: Path, page: Path) -> None:
    for command, code, expected in commands(block):
        finished = run(command, folder)
        told = f"{page.name}, line {block.line}: $ {command}\nprinted:\n{finished.stdout}"
        assert finished.returncode == code, f"{told}\nexit code {finished.returncode}, not {code}"
        assert shows(finished.stdout, expected), f"{told}\nexpected:\n" + "\n".join(expected)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    names: dict[str, object] = {"__name__": "__page__"}
    ran = 0
    with contextlib.chdir(tmp_path):
        for block in blocks(page):
            if block.file:
                target = tmp_path / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                code = "\n" * (block.line - 1) + block.text  # tracebacks name the page's own lines
                exec(compile(code, str(page), "exec"), names)
            elif block.language == "console":
                check_console(block, tmp_path, page)
            else:
                continue
            ran += 1
    assert ran, f"{page.name} has no block that runs"


def test_expected_lines_are_looked_for_in_order() -> None:
    printed = "read 2 documents: 2 added\n1. keys.md § Rotation  0.81\n"
    assert shows(printed, ["...2 added...", "...keys.md § Rotation..."])
    assert not shows(printed, ["...keys.md § Rotation...", "...2 added..."])
    assert not shows(printed, ["...3 added..."])


def test_a_command_may_name_its_exit_code() -> None:
    block = Block("console", "", "$ wellhead search x   # exit 3\nno match\n$ wellhead ls\n", 1)
    assert commands(block) == [("wellhead search x", 3, ["no match"]), ("wellhead ls", 0, [])]


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert broken == []
