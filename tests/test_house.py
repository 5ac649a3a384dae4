"""The rules of the house that a program can check: names, errors, imports, documents, promises."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import wellhead
from wellhead import errors, wiring

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "wellhead"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MADE = {"build", "dist", "kb", "__pycache__"}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def files() -> Iterator[Path]:
    """Every file of the checkout that a person wrote."""
    for top in sorted(ROOT.iterdir()):
        if top.name in MADE or (top.name.startswith(".") and top.name not in {".ci", ".gitignore"}):
            continue
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and not MADE & set(path.parts) and path.suffix != ".pyc":
                yield path


def imported_names() -> dict[str, set[str]]:
    """What the modules of the package import by name from one another, by the module that it comes from."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wellhead"):
                found.setdefault(node.module or "", set()).update(alias.name for alias in node.names)
    return found


IMPORTED = imported_names()
by_module = pytest.mark.parametrize("path", MODULES, ids=relative)
by_test_file = pytest.mark.parametrize("path", TESTS, ids=relative)


# --- names ---------------------------------------------------------------------------------------------------------


@by_module
def test_a_module_lists_what_others_import_from_it_and_nothing_that_is_not_there(path: Path) -> None:
    module = importlib.import_module(module_name(path))
    listed = getattr(module, "__all__", [])
    assert len(set(listed)) == len(listed)
    assert [name for name in listed if not hasattr(module, name)] == []
    if path.name != "__init__.py":
        wanted = {name for name in IMPORTED.get(module_name(path), set()) if hasattr(module, name)}  # not: types alone
        assert sorted(wanted - set(listed)) == []


def test_the_front_door_lists_every_error() -> None:
    assert set(errors.__all__) <= set(wellhead.__all__)
    assert set(wellhead.__all__) <= set(dir(wellhead))
    with pytest.raises(AttributeError, match="no attribute 'search_chunks'"):
        _ = wellhead.search_chunks


def test_public_names_use_the_words_of_the_glossary() -> None:
    # Backends speak the language of the library that they wrap: an HTML tree has nodes.
    foreign = {"chunks", "split", "splits", "splitter", "node", "nodes", "namespace", "topic", "gold"}
    found = [
        f"{module_name(path)}.{name}"
        for path in MODULES
        if "backends" not in path.parts
        for name in public_words(path)
        if foreign & set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))
    ]
    assert found == []


def public_words(path: Path) -> Iterator[str]:
    """The names of a module's public functions, classes, parameters and fields."""
    for node in parsed(path).body:
        name = getattr(node, "name", "_")
        if name.startswith("_"):
            continue
        yield name
        for inner in ast.walk(node):
            if isinstance(inner, ast.arg):
                yield inner.arg
            elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and inner in body_of(node):
                yield inner.target.id


def body_of(node: ast.AST) -> list[ast.stmt]:
    return node.body if isinstance(node, ast.ClassDef) else []


# --- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_in_the_tree_and_says_what_it_means(name: str) -> None:
    kind = getattr(errors, name)
    assert issubclass(kind, errors.WellheadError)
    assert kind.exit_code in {1, 2, 4, 5, 6, 7, 8}
    assert 400 <= kind.http_status < 600
    assert isinstance(kind.retryable, bool)
    assert inspect.getdoc(kind)


def test_no_error_of_the_source_stands_outside_the_tree() -> None:
    builtin = {
        name for name, kind in vars(builtins).items() if inspect.isclass(kind) and issubclass(kind, BaseException)
    }
    strays = [
        f"{relative(path)}: {node.name}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
        and {ast.unparse(base) for base in node.bases} & builtin
        and not {ast.unparse(base) for base in node.bases} & set(errors.__all__)
    ]
    assert strays == ["src/wellhead/errors.py: WellheadError"]


# --- imports and dangerous things ----------------------------------------------------------------------------------


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ["click", "msgspec", "numpy", "rich", "safetensors", "sqlite3", "tokenizers", "yaml"]
    code = f"import sys, wellhead; print(*[name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout.split() == []


def third_party(path: Path) -> set[str]:
    """The packages from elsewhere that a module imports, at its top or later."""
    named = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            named |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named.add(node.module.split(".")[0])
    return named - set(sys.stdlib_module_names) - {"wellhead"}


def declared() -> set[str]:
    """The distributions that pyproject.toml names as dependencies or extras, normalised."""
    project = PROJECT["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project.get("optional-dependencies", {}).values() for line in extra),
    ]
    return {normal(re.split(r"[\s<>=!~;\[]", line)[0]) for line in lines}


@functools.cache
def providers() -> Mapping[str, list[str]]:
    """The distributions that an import name can come from."""
    return importlib.metadata.packages_distributions()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@by_module
def test_what_a_module_imports_is_a_declared_dependency(path: Path) -> None:
    missing = [
        name
        for name in sorted(third_party(path))
        if not {normal(each) for each in providers().get(name, [])} & declared()
    ]
    assert missing == []


@by_module
def test_no_data_is_run_as_code(path: Path) -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
    assert third_or_standard(path) & forbidden == set()
    assert [
        call for call in calls(path) if call in {"eval", "exec", "yaml.load", "yaml.unsafe_load", "os.system"}
    ] == []
    keywords = [
        f"{node.arg}=True"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.keyword)
        and node.arg in {"shell", "allow_pickle"}
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert keywords == []


def third_or_standard(path: Path) -> set[str]:
    named = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            named |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named.add(node.module.split(".")[0])
    return named


def calls(path: Path) -> list[str]:
    """What a module calls, as it is written: `exec`, `yaml.load`."""
    return [ast.unparse(node.func) for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]


# --- files ---------------------------------------------------------------------------------------------------------


def texts() -> list[tuple[str, str]]:
    """The name and text of each file that is text."""
    found = []
    for path in files():
        data = path.read_bytes()
        if b"\0" not in data:
            found.append((relative(path), data.decode("utf-8", "replace")))
    return found


def test_no_file_names_a_machine_or_a_package_index() -> None:
    # Written in pieces, so that this file does not name them either.
    hosts = [r"pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.(org|com)"]
    homes = [r"/" + r"home/[a-z]", "/" + "root/", "/" + r"Users/[A-Za-z]", r"C:\\" + "Users"]
    pattern = re.compile("|".join(hosts + homes))
    found = [
        f"{name}: {line.strip()[:80]}" for name, text in texts() for line in text.splitlines() if pattern.search(line)
    ]
    assert found == []


def test_text_files_end_with_one_newline() -> None:
    # The handbook is material: some of its files end oddly on purpose.
    ours = [
        (name, text) for name, text in texts() if not name.startswith(("examples/handbook/", "tests/data/")) and text
    ]
    assert [name for name, text in ours if not text.endswith("\n") or text.endswith("\n\n")] == []


def test_pins_are_names_and_numbers_and_cover_every_dependency() -> None:
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line[:1] not in {"", "#"}
    ]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
    pinned = {normal(line.split("==")[0]) for line in lines}
    tools = {normal(re.split(r"[\s<>=!~;\[]", line)[0]) for line in PROJECT["dependency-groups"]["dev"]}
    assert sorted((declared() | tools) - pinned) == []


# --- documents -----------------------------------------------------------------------------------------------------


def test_every_place_of_the_source_has_its_line_in_architecture() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = [f"{path.parent.relative_to(SOURCE).as_posix()}/" for path in MODULES if path.name == "__init__.py"]
    modules = [path.name for path in SOURCE.glob("*.py") if path.name != "__init__.py"]
    assert [name for name in [*folders, *modules] if name != "./" and f"| `{name}` |" not in page] == []


def test_the_changelog_tells_of_this_version() -> None:
    assert f"## [{wellhead.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_decision_records_are_short_numbered_and_whole() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 25, path.name
        for part in ("**Decision.**", "**Because.**", "**Cost.**", "**What would change our mind.**"):
            assert part in text, f"{path.name} lacks {part}"


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    named = {
        word
        for page in pages
        for word in re.findall(r"(?:`|^)make ([a-z-]+)(?:`|  |$)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named
    assert sorted(named - targets) == []


# What makes a module of a kind a backend, and not one of its helpers: a public class with these methods, or bases.
PORTS = {
    "stores": {"put", "delete", "view"},
    "embedders": {"embed_documents", "embed_query"},
    "generators": {"generate"},
    "retrievers": {"Guarded"},  # a foreign retriever is a guard
}


def backends() -> list[Path]:
    """The modules and packages that implement a port."""
    places = [
        path for kind in PORTS for path in sorted((SOURCE / "backends" / kind).iterdir()) if path.name not in MADE
    ]
    return [path for path in places if any(implements(module, path) for module in modules_of(path))]


def modules_of(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.py"))
    return [path] if path.suffix == ".py" else []


def implements(module: Path, place: Path) -> bool:
    classes = [node for node in parsed(module).body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    return any(PORTS[place.parent.name] <= methods_and_bases(node) for node in classes)


def methods_and_bases(node: ast.ClassDef) -> set[str]:
    return {getattr(item, "name", "") for item in node.body} | {ast.unparse(base) for base in node.bases}


@pytest.mark.parametrize("name", [*wiring.EMBEDDERS, *wiring.CHUNKERS])
def test_every_name_that_a_user_may_give_has_a_docs_row(name: str) -> None:
    assert f"\n| `{name}` |" in (ROOT / "docs" / "reference" / "backends.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", backends(), ids=relative)
def test_every_backend_has_a_docs_row_and_a_contract_test(path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "backends.md").read_text(encoding="utf-8")
    assert f"`{path.parent.name}.{path.stem}`" in page
    contracts = [test.read_text(encoding="utf-8") for test in (ROOT / "tests" / "contract").glob("test_*.py")]
    assert any(re.search(rf"\b{path.stem}\b", text) for text in contracts), (
        f"no test in tests/contract names {path.stem}"
    )


# --- promises and tests --------------------------------------------------------------------------------------------


def promises_of_page() -> list[str]:
    page = (ROOT / "docs" / "reference" / "promises.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([A-Z]\d+) \| \S", page, re.MULTILINE)


def promises_of_tests() -> dict[str, list[str]]:
    """The ids that tests name with `@pytest.mark.promise`, and where."""
    found: dict[str, list[str]] = {}
    for path in TESTS:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.promise"):
                for argument in node.args:
                    found.setdefault(ast.literal_eval(argument), []).append(relative(path))
    return found


def test_promises_and_their_tests_name_each_other() -> None:
    stated = promises_of_page()
    assert len(set(stated)) == len(stated), "an id is stated twice"
    tested = promises_of_tests()
    assert {name: places for name, places in tested.items() if name not in stated} == {}, "tested and not stated"
    assert sorted(set(stated) - set(tested)) == [], "stated and not tested"


CHECKERS = re.compile(r"(^|\.)_?(assert|check|raises|warns|must|expect|same)|assert_")


def functions(tree: ast.Module) -> dict[str, ast.AST]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def verifies(node: ast.AST, helpers: dict[str, ast.AST], seen: frozenset[str] = frozenset()) -> bool:
    """Whether a test can fail: it asserts, expects an error, or calls something that does."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert) and not (isinstance(inner.test, ast.Constant) and inner.test.value):
            return True
        if isinstance(inner, ast.Raise) and inner.exc and "AssertionError" in ast.unparse(inner.exc):
            return True
        if isinstance(inner, ast.Call):
            name = ast.unparse(inner.func)
            if CHECKERS.search(name) or (name == "pytest.fail"):
                return True
            if name in helpers and name not in seen and verifies(helpers[name], helpers, seen | {name}):
                return True
    return False


HELPERS = {
    name: node
    for path in [*TESTS, *(SOURCE / "testing").rglob("*.py")]
    for name, node in functions(parsed(path)).items()
}


@by_test_file
def test_every_test_can_fail(path: Path) -> None:
    found = functions(parsed(path))
    idle = [name for name, node in found.items() if name.startswith("test_") and not verifies(node, HELPERS | found)]
    assert idle == []


def test_the_check_for_idle_tests_finds_one() -> None:
    found = functions(
        ast.parse("def test_a():\n    work()\ndef test_b():\n    assert True\ndef test_c():\n    assert work()\n")
    )
    can_fail: Callable[[str], bool] = lambda name: verifies(found[name], found)  # noqa: E731
    assert [can_fail(name) for name in ("test_a", "test_b", "test_c")] == [False, False, True]


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "field").rglob("test_*.py")), ids=relative)
def test_field_tests_cite_a_public_report(path: Path) -> None:
    tree = parsed(path)
    report = re.compile(r"[\w.-]+/[\w.-]+(#| PR#)\d+")
    silent = [
        name
        for name, node in functions(tree).items()
        if name.startswith("test_") and not report.search(ast.get_docstring(node) or "")  # type: ignore[arg-type]
    ]
    assert silent == [] or report.search(ast.get_docstring(tree) or "")


def test_the_readme_quotes_no_figure_that_a_command_does_not_print() -> None:
    prose = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    prose = re.sub(r"`[^`]*`", "", prose)
    assert (
        re.findall(r"\b\d+\.\d+\b(?!\+| or)|\d+ ?%", prose.replace("Python 3.11", "").replace("Apache-2.0", "")) == []
    )
