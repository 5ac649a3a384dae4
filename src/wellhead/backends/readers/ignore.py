"""What the walk leaves out by rule: .gitignore files, hidden and vendored folders, the user's own patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wellhead.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["Choice", "Rules", "ignored", "is_derived", "is_vendored", "read_rules", "rules_above"]

_VENDORED_NAMES = (
    "node_modules bower_components vendor third_party __pycache__ __pypackages__ site-packages dist-packages"
)
_VENDORED = frozenset(_VENDORED_NAMES.split())
_VENDORED_ENDINGS = (".dist-info", ".egg-info")
_DERIVED_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
_OUTPUTS = frozenset({"build", "dist", "target"})
_MANIFEST_NAMES = (
    "pyproject.toml setup.py setup.cfg package.json Cargo.toml pom.xml build.gradle build.gradle.kts build.sbt "
    "CMakeLists.txt"
)
_MANIFESTS = frozenset(_MANIFEST_NAMES.split())


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The patterns of one ignore file. `base`: its folder, as a posix path with a trailing "/", or ""."""

    base: str
    spec: GitIgnoreSpec

    @classmethod
    def parse(cls, lines: Iterable[str], *, base: str = "") -> Rules:
        """Lines that git would not understand are passed over, as git does."""
        import pathspec

        kept = []
        for line in lines:
            try:
                pathspec.GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue
            # Means the same, and does not match the folder itself, which git still enters.
            kept.append(f"{line}/*" if line.endswith("/**") else line)
        return cls(base=base, spec=pathspec.GitIgnoreSpec.from_lines(kept))

    @property
    def is_empty(self) -> bool:
        """True when no line of it is a pattern."""
        return all(pattern.include is None for pattern in self.spec.patterns)

    def says(self, path: str) -> bool | None:
        """True: matched. False: matched by a negation. None: nothing said. A folder's path ends in "/"."""
        if not path.startswith(self.base):
            return None
        return self.spec.check_file(path[len(self.base) :]).include


def ignored(chain: Sequence[Rules], path: str) -> bool:
    """The deepest file that says anything about `path` decides. `chain` runs from the outermost inwards."""
    for rules in reversed(chain):
        verdict = rules.says(path)
        if verdict is not None:
            return verdict
    return False


def read_rules(folder: Path, *, base: str = "", name: str = ".gitignore") -> Rules | None:
    """The ignore file of `folder`, or None where there is none (a link is none, as for git).

    Raises:
        OSError: it is there and cannot be read.
    """
    path = folder / name
    if path.is_symlink() or not path.is_file():
        return None
    return Rules.parse(path.read_text("utf-8-sig", errors="surrogateescape").splitlines(), base=base)


def rules_above(root: Path) -> tuple[list[Rules], str, bool]:
    """The rules that reach `root` from its repository: those in force, the path of `root` in it, and whether it is one.

    Rules that ignore `root` itself are left out: it was named on purpose. Without a repository there are none.
    """
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if top is None:
        return [], "", False
    parts = root.relative_to(top).parts
    here = "".join(f"{part}/" for part in parts)
    found = [read_rules(top / ".git", name="info/exclude")]
    found += [read_rules(top.joinpath(*parts[:n]), base="".join(f"{p}/" for p in parts[:n])) for n in range(len(parts))]
    return [rules for rules in found if rules and not (here and rules.says(here))], here, True


def is_vendored(name: str, siblings: frozenset[str], *, in_repository: bool) -> bool:
    """True for a folder of foreign or built things, by its name and the names beside it.

    `build`, `dist` and `target` count only beside a project's manifest and outside a repository: inside one,
    .gitignore says what is output, and what it does not name was committed on purpose.
    """
    if name in _VENDORED or name.endswith(_VENDORED_ENDINGS):
        return True
    return name in _OUTPUTS and not in_repository and not _MANIFESTS.isdisjoint(siblings)


def is_derived(names: frozenset[str]) -> bool:
    """True for a folder that holds the mark of a virtual environment or of a cache."""
    return not _DERIVED_MARKS.isdisjoint(names)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The user's own patterns, in the syntax of .gitignore, relative to the root of the walk.

    `include` admits only files that it matches; `exclude` then removes. An include pattern that spells out the name
    of a hidden, vendored or ignored file or folder (`.github/**`, `vendor/ours/*.md`) opens it; `*.md` opens nothing.
    """

    include: Rules | None
    exclude: Rules | None
    spelled: frozenset[str]

    @classmethod
    def parse(cls, include: Sequence[str], exclude: Sequence[str]) -> Choice:
        """Raises UsageError for a pattern that cannot be read, or no list of them."""
        for patterns in (include, exclude):
            _check_listed(patterns)
        spelled = {part for pattern in include if not pattern.startswith("!") for part in pattern.split("/")}
        return cls(include=_own(include), exclude=_own(exclude), spelled=frozenset(spelled - {"", "*", "**"}))

    def admits(self, path: str) -> bool:
        return self.include is None or self.include.says(path) is True

    def removes(self, path: str) -> bool:
        return self.exclude is not None and self.exclude.says(path) is True

    def opens(self, name: str) -> bool:
        return name in self.spelled


def _check_listed(patterns: object) -> None:
    if isinstance(patterns, str):
        raise UsageError("patterns come as a list", why=f"got the text {patterns!r}", fix=f"give [{patterns!r}]")
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(pattern, str) for pattern in patterns):
        raise UsageError("patterns come as a list of texts", why=f"got {patterns!r:.80}", fix="give ['*.md']")


def _own(patterns: Sequence[str]) -> Rules | None:
    for pattern in patterns:
        if Rules.parse([pattern]).is_empty:
            raise UsageError(
                f"the pattern {pattern!r} matches nothing", fix="use the syntax of .gitignore, such as 'docs/**/*.md'"
            )
    return Rules.parse(patterns) if patterns else None
