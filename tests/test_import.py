"""What `import gpumatch` imports, and what each public name then brings with it."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpumatch

# Packages that cost seconds, or that a user may not have.
HEAVY = {"cupy", "cupyx", "matplotlib", "networkx", "numba", "pooch", "scipy", "torch", "tqdm"}


def packages_after(code):
    """What a fresh interpreter has loaded after `code`, the standard library left out."""
    setup = f"import json, sys; sys.path[:] = {sys.path!r}"
    report = "print(json.dumps([module.split('.')[0] for module in sys.modules]))"
    output = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "\n".join((setup, code, report))],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return set(json.loads(output)) - set(sys.stdlib_module_names) - {"__main__"}


def test_import_gpumatch_imports_nothing_else():
    assert packages_after("import gpumatch") == {"gpumatch"}


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("BipartiteGraph", set()),
        ("Certificate", set()),
        ("CertificateError", set()),
        ("Matching", set()),
        ("algorithms", set()),
        ("csgraph", set()),
        ("linalg", set()),
        ("maximum_matching", set()),
        ("plot", set()),
        ("verify", set()),
        ("io", {"scipy"}),
    ],
)
def test_a_name_brings_what_it_needs(name, heavy):
    packages = packages_after(f"import gpumatch; gpumatch.{name}")
    assert packages & HEAVY == heavy
    assert "gpumatch" in packages


def test_a_matching_on_the_cpu_brings_numba_and_scipy_alone():
    packages = packages_after("import gpumatch; gpumatch.maximum_matching([[1]], threads=1)")
    assert packages & HEAVY == {"numba", "scipy"}


def test_each_module_is_there_before_anything_else_is_used():
    """Not because another name has imported it."""
    for name in {"certificates", *gpumatch._MODULES}:
        assert "gpumatch" in packages_after(f"import gpumatch; gpumatch.{name}.__all__")


def test_every_public_name_is_there_and_listed():
    for name in gpumatch.__all__:
        assert name in dir(gpumatch)
        assert getattr(gpumatch, name) is getattr(gpumatch, name)
    assert set(dir(gpumatch)) == {*gpumatch.__all__, "__version__"}
    with pytest.raises(AttributeError, match="module 'gpumatch' has no attribute 'nonsense'"):
        gpumatch.nonsense  # noqa: B018


@pytest.mark.parametrize(
    "name",
    ["certificates", "costs", "csgraph", "distributed", "io", "linalg", "optimize", "plot"],
)
def test_completion_shows_public_names_only(name):
    module = importlib.import_module(f"gpumatch.{name}")
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


def test_all_files_say_the_same_version():
    root = Path(__file__).parents[1]
    for file in ("pyproject.toml", "CITATION.cff"):
        text = (root / file).read_text(encoding="utf-8")
        assert re.findall(r"^version\W+([\d.]+)", text, re.M) == [gpumatch.__version__], file
    assert f"## {gpumatch.__version__}" in (root / "CHANGELOG.md").read_text(encoding="utf-8")
