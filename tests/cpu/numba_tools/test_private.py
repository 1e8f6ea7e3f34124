"""Numba's private parts are named in one file, and the CPU's algorithms serve without any."""

from __future__ import annotations

import ast
import json
import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

import gpumatch
from gpumatch.cpu.numba_tools import (
    atomics,
    cache,
    compiled,
    parts,
    plain,
    prefetch,
    private,
    views,
)
from tests.cpu.numba_tools.lacking import (
    ALL,
    EveryName,
    all_names,
    missing_parts,
    names_by_part,
    parts_with,
    private_without,
)

PACKAGE = Path(gpumatch.__file__).parent
ROOT = PACKAGE.parent
DOCUMENTED = {"numba", "numba.extending", "llvmlite", "llvmlite.binding"}


def imported(file):
    """The modules of Numba and llvmlite that a file imports, or imports from."""
    text = file.read_text()
    tree = ast.parse(text if "numba" in text or "llvmlite" in text else "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths = [alias.name for alias in node.names]
        else:
            paths = [node.module] if isinstance(node, ast.ImportFrom) else []
        yield from (path for path in paths if path.split(".")[0] in ("numba", "llvmlite"))


def test_one_file_imports_private_parts():
    users = {file for file in PACKAGE.rglob("*.py") if {*imported(file)} - DOCUMENTED}
    assert users == {PACKAGE / "cpu" / "numba_tools" / "private.py"}


LACKS = {"passes"} if numba.__version__.startswith("0.61.") else set()
"""Parts that this Numba has not."""


def test_this_numba_has_all_parts():
    assert missing_parts(private) == LACKS
    assert private.is_seen()


def test_without_a_name_the_parts_that_have_it_are_missing():
    names = all_names()
    assert len(names) > 50
    for name in names:
        assert missing_parts(private_without({name})) == parts_with(name) | LACKS
        assert parts_with(name)
    assert missing_parts(private_without(EveryName())) == {*names_by_part()}


def test_the_versions_that_are_seen_are_those_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (numba,) = (one for one in project["dependencies"] if one.startswith("numba"))
    (low, from_), (high, to) = private.SEEN
    assert numba == f"numba>={low}.{from_},<{high}.{to + 1}"


@pytest.mark.parametrize(
    ("version", "machine", "seen"),
    [
        ("0.61.0", "x86_64", True),
        ("0.68.1", "AMD64", True),
        ("0.60.0", "x86_64", False),
        ("0.69.0rc1", "x86_64", False),
        ("0.68.1", "arm64", False),
    ],
)
def test_which_versions_are_seen(version, machine, seen, monkeypatch):
    monkeypatch.setattr(private, "numba", SimpleNamespace(__version__=version))
    monkeypatch.setattr(private, "platform", SimpleNamespace(machine=lambda: machine))
    assert private.is_seen() == seen


# -- the trials ------------------------------------------------------------------------------------


def raises():
    raise NotImplementedError


@pytest.mark.parametrize(
    ("part", "trial", "works_unseen", "works_seen"),
    [
        ("a part", lambda: True, True, True),
        ("a part", lambda: False, False, True),
        ("a part", raises, False, True),
        (None, lambda: True, False, False),
    ],
    ids=["passes", "fails", "raises", "missing"],
)
def test_trials_are_made_with_what_is_not_seen(part, trial, works_unseen, works_seen, monkeypatch):
    for seen, expected in ((False, works_unseen), (True, works_seen)):
        monkeypatch.setattr(private, "is_seen", lambda seen=seen: seen)
        assert private.works(part, trial) == expected


@pytest.fixture
def unseen(monkeypatch):
    """Trials are made, and they compile, whatever is kept."""
    monkeypatch.setattr(private, "is_seen", lambda: False)
    for module in (atomics, parts, prefetch, views):
        monkeypatch.setattr(module, "keep", lambda dispatcher: None)


TRIALS = {
    "atomics": (private.arrays, atomics._trial),
    "caching": (private.caching, cache._trial),
    "compiler": (private.compiler, compiled._trial),
    "prefetch": (private.arrays, prefetch._trial),
    "views": (private.arrays, views._trial),
}


@pytest.mark.parametrize("name", TRIALS)
@pytest.mark.usefixtures("unseen")
def test_this_numba_passes(name):
    assert private.works(*TRIALS[name])


def one_item_further(context, builder, kind, array, index, **how):
    index = [one.type(1) if k == 0 else one for k, one in enumerate(index)]
    return private.arrays.get_item_pointer(context, builder, kind, array, index, **how)


@pytest.mark.parametrize("name", ["atomics", "views"])
@pytest.mark.usefixtures("unseen")
def test_other_items_are_noticed(name, monkeypatch):
    module = {"atomics": atomics, "views": views}[name]
    others = SimpleNamespace(**{**vars(private.arrays), "get_item_pointer": one_item_further})
    monkeypatch.setattr(module, "arrays", others)
    assert not private.works(*TRIALS[name])


@pytest.mark.parametrize(
    ("name", "owner", "attribute"),
    [
        ("atomics", private.arrays, "get_item_pointer"),
        ("caching", cache._Cache, "_load_overload"),
        ("compiler", parts._KernelCompiler, "define_pipelines"),
        ("prefetch", private.arrays, "get_or_insert_function"),
        ("views", private.arrays, "alloca_once"),
    ],
)
@pytest.mark.usefixtures("unseen")
def test_what_takes_other_arguments_is_noticed(name, owner, attribute, monkeypatch):
    monkeypatch.setattr(owner, attribute, raises)
    assert not private.works(*TRIALS[name])


@pytest.mark.usefixtures("unseen")
def test_a_part_that_is_compiled_by_itself_is_noticed(monkeypatch):
    monkeypatch.delattr(parts.Kernel, "_numba_type_")  # then Numba's own is inherited
    assert not private.works(*TRIALS["compiler"])


@pytest.mark.usefixtures("unseen")
def test_plain_views_go_with_plain_kernels(monkeypatch):
    assert compiled._kernel_maker().func is parts.Kernel
    monkeypatch.setattr(views, "ARE_PLAIN", True)
    assert compiled._kernel_maker() is compiled._plain_kernel


@pytest.mark.parametrize("module", [atomics, prefetch, views])
def test_the_plain_functions_take_the_place_of_what_fails(module, monkeypatch):
    monkeypatch.setattr(private, "works", lambda part, trial: False)
    names = runpy.run_path(module.__file__)
    functions = {*module.__all__} - {"ARE_PLAIN"}
    assert len(functions) >= 3
    for name in functions:
        assert names[name] is getattr(plain, name)
    assert names.get("ARE_PLAIN", True) is True


# -- without parts ---------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def runs_without(names, folder):
    """What processes find without each of these names."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.cpu.numba_tools.lacking", str(folder), *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    runs = [json.loads(line) for line in run.stdout.splitlines()]
    assert [one["name"] for one in runs] == names, run.stderr
    return runs


@needs_fork
def test_both_problems_are_solved_without_any_part(tmp_path):
    (run,) = runs_without([ALL], tmp_path)
    assert run["found"] == [2, 5.0]
    assert run["missing"] == sorted(names_by_part())
    assert run["plain kernels"]
    assert run["plain views"]


@needs_fork
@pytest.mark.long
def test_both_problems_are_solved_whichever_parts_are_missing(tmp_path):
    """A name of each set of parts that goes with a name."""
    names = sorted({parts_with(name): name for name in all_names()}.values())
    for run in runs_without(names, tmp_path):
        assert run["found"] == [2, 5.0, 5.0, 5.0]
        missing = {*run["missing"]}
        assert missing == parts_with(run["name"])
        assert run["plain views"] == ("arrays" in missing)
        assert run["plain kernels"] == bool(missing & {"arrays", "compiler"})
