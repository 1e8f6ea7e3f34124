"""Which module may import which: each is on a floor, and imports go down."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import gpumatch
from gpumatch.dispatch import registry

PACKAGE = Path(gpumatch.__file__).parent

# From the ground up. A module stands where the longest of these names that it begins with does.
FLOORS = [
    {
        *("dispatch.devices", "running.compile_time", "running.interrupts"),
        "running.kept_memory",
    },
    {"cpu.numba_tools", "cuda.kernels", "cuda.memory", "cuda.structs"},
    {"numeric.arrays"},
    {"contracts"},
    {"contracts.batch", "contracts.general_weights", "numeric", "contracts.transport"},
    {"cpu", "cuda"},  # their CSR, searches, covers and launches
    {
        *("cpu.matching", "cpu.assignment", "cpu.distributed", "cpu.ranking", "cpu.transport"),
        *("cuda.matching", "cuda.assignment", "cuda.transport"),
    },
    {"cpu.general", "cpu.live", "cuda.distributed", "cuda.general", "cuda.live"},
    {"dispatch.by_device", "dispatch.mixed_dgs", "reference"},
    {"interop"},
    {"interop.compressed"},
    {"bipartite", "general.graph"},
    {"costs"},
    {"certificates", "dispatch.registry", "io", "results", "running"},
    {"dispatch"},
    {"problems.at_limit", "problems.initial", "problems.request"},
    {"problems.cardinality"},
    {"problems", "results.tensors"},
    {"assignment", "general", "matching", "ranking", "transportation"},
    {
        *("csgraph", "distributed", "interop.networkx_backend", "interop.pot", "interop.torch"),
        *("interop.jax", "linalg", "live", "optimize", "plot"),
    },
    {"interop.lap"},
    {"compiling", "optima"},
    {""},  # gpumatch itself: the public names
    {"cli"},
    {"__main__"},
]
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names}
IMPORTS_BY_NAME = {
    "gpumatch",
    "gpumatch.cuda.kernels.build",
    "gpumatch.distributed",
    "gpumatch.general",
    "gpumatch.dispatch.registry",
}  # all else says in its import what it imports

PATH = re.compile(r"gpumatch(?:\.\w+)+")


def module_name(file):
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def nodes_of(code: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(code)))


@functools.cache
def nodes() -> dict[str, list[ast.AST]]:
    """The syntax of every module, which is read by the first test that needs it."""
    return {module: nodes_of(file.read_text()) for module, file in FILES.items()}


def as_module(path):
    """The module that a dotted path names, or that holds the name."""
    while path not in FILES:
        path = path.rpartition(".")[0]
    return path


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The modules of this package that a module's import statements name, wherever they stand."""
    for node in nodes:
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (as_module(path) for path in paths if path.split(".")[0] == "gpumatch")


def strings(nodes: list[ast.AST]) -> Iterator[str]:
    """All strings but docstrings."""
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_string and id(node) not in docstrings:
            yield node.value


def named(nodes: list[ast.AST]) -> Iterator[str]:
    """The modules of this package that a module's strings name."""
    for text in strings(nodes):
        yield from (as_module(path) for path in PATH.findall(text))


def floor(module):
    parts = module.split(".")[1:]
    while parts and ".".join(parts) not in FLOOR_OF:
        parts.pop()
    assert parts or module == "gpumatch", f"give {module} a floor"
    return FLOOR_OF[".".join(parts)]


def package(module):
    """The module or folder below gpumatch/ that it belongs to."""
    return module.split(".")[1:2]


def folders(module):
    """The folders that a module lies in, which are imported before it whatever it says."""
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(2, len(parts))}


@functools.cache
def arrows() -> dict[str, set[str]]:
    """The modules that each module names, in an import or a string."""
    return {
        module: {*imported(its), *named(its)} - {module} - folders(module)
        for module, its in nodes().items()
    }


def goes_down(module, target):
    """Below, or beside within a folder."""
    is_beside = floor(module) == floor(target) and package(module) == package(target)
    return floor(module) > floor(target) or is_beside


def test_imports_go_down():
    """That holds for modules named in strings, too."""
    pairs = [(module, target) for module, targets in arrows().items() for target in targets]
    assert len(pairs) > len(FILES)
    assert [f"{a} imports {b}" for a, b in pairs if not goes_down(a, b)] == []


def test_there_is_no_circle():
    TopologicalSorter({module: imported(its) for module, its in nodes().items()}).prepare()


def test_homes_are_below_the_registry():
    for homes in (*(a.homes for a in gpumatch.algorithms()), *registry.STARTS.values()):
        for home in homes.values():
            for function in filter(None, (home.function, home.fallback)):
                module = function.split(":")[0]
                assert (
                    floor(module) < floor("gpumatch.dispatch.registry")
                    or module == "gpumatch.dispatch.registry"
                )
    for function in registry.COMPONENTS.values():
        assert floor(function.split(":")[0]) < floor("gpumatch.dispatch.registry")


@pytest.mark.parametrize(("side", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_neither_side_knows_the_other(side, other):
    """Not by import, not by a path in a string, nor by words that a path could be made of."""
    words = re.compile(rf"(^|\.){other}(\.|$)")
    for module, its in nodes().items():
        if module.startswith(f"gpumatch.{side}"):
            assert not [path for path in arrows()[module] if path.startswith(f"gpumatch.{other}")]
            assert not [text for text in strings(its) if words.search(text)], module


def called(nodes):
    """The names of the functions that a module calls, without what they are attributes of."""
    for node in nodes:
        if isinstance(node, ast.Call):
            function = node.func
            yield (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )


def test_only_the_registry_and_the_public_names_import_by_name():
    by_name = {"__import__", "import_module", "exec", "eval"}
    calls = {module: by_name & {*called(its)} for module, its in nodes().items()}
    assert calls["gpumatch.dispatch.registry"]
    assert {m: its for m, its in calls.items() if its and m not in IMPORTS_BY_NAME} == {}


@pytest.mark.parametrize("one", ["assignment", "matching"])
def test_the_two_front_doors_stand_on_one_floor(one):
    other = {"assignment": "matching", "matching": "assignment"}[one]
    assert floor(f"gpumatch.{one}") == floor(f"gpumatch.{other}")
    assert f"gpumatch.{other}" not in arrows()[f"gpumatch.{one}"]


def test_each_floor_is_lived_on():
    """A name that no module has any more leaves the table."""
    known = {".".join(module.split(".")[1:]) for module in FILES}
    assert {name for names in FLOORS for name in names} <= known


@pytest.mark.parametrize(
    ("folder", "most"),
    [("cpu", 16), ("cuda", 20), ("cpu/assignment", 12), ("cuda/assignment", 12)],
)
def test_folders_are_small(folder, most):
    entries = [e for e in (PACKAGE / folder).iterdir() if e.name != "__pycache__"]
    assert len(entries) <= most


def test_the_top_level_is_small():
    assert len(list(PACKAGE.glob("*.py"))) <= 14


@pytest.mark.parametrize(
    ("engine", "most", "shared"), [("sparse", 9, 5), ("dense", 13, 6)], ids=["sparse", "dense"]
)
def test_an_engine_stands_on_few_files(engine, most, shared):
    """On so many of `cpu/assignment`, and so many that engines share, of `cpu/searches`.

    What it imports by way of other modules counts, but another engine counts as one file.
    """
    own = f"gpumatch.cpu.assignment.{engine}.engine"
    seen: set[str] = set()
    waiting = {own}
    while waiting:
        seen |= waiting
        opened = {module for module in waiting if module == own or not module.endswith(".engine")}
        waiting = {target for module in opened for target in imported(nodes()[module])} - seen
    files = {m for m in seen if FILES[m].name != "__init__.py"}
    assert len([m for m in files if m.startswith("gpumatch.cpu.assignment.")]) <= most
    assert len([m for m in files if m.startswith("gpumatch.cpu.searches.")]) <= shared


@pytest.mark.parametrize("side", ["cpu", "cuda"])
def test_what_serves_assignment_does_not_import_what_a_caller_names(side):
    """A room's modules import other rooms, not the files above them."""
    top = {
        f"gpumatch.{side}.assignment.{f.stem}" for f in (PACKAGE / side / "assignment").glob("*.py")
    }
    for module, targets in arrows().items():
        if module.startswith(f"gpumatch.{side}.assignment.") and module.count(".") > 3:
            assert not targets & top, module


# -- the test itself -------------------------------------------------------------------------------

OFFENCES = [
    "from gpumatch.cuda import csr",
    "import gpumatch.cuda.csr as csr",
    "def late():\n    from gpumatch.cuda.csr import owners",
    "PATH = 'gpumatch.cuda.csr:owners'",
    "PATH = f'gpumatch.cuda.{name}'",
]


@pytest.mark.parametrize("code", OFFENCES, ids=[code.splitlines()[-1].strip() for code in OFFENCES])
def test_an_offence_is_seen(code):
    its = nodes_of(code)
    assert any(path.startswith("gpumatch.cuda") for path in (*imported(its), *named(its)))


def test_a_docstring_is_no_offence():
    assert not [*named(nodes_of('"""See `gpumatch.cuda.csr`."""'))]
