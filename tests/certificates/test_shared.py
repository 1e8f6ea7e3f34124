"""What the checkers share with the algorithms: the conversion of the input, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import gpumatch.certificates

PACKAGE = Path(gpumatch.__file__).parent
CHECKERS = PACKAGE / "certificates"
SHARED = {
    "gpumatch.bipartite": {"BipartiteGraph", "as_bipartite"},
    "gpumatch.costs": {"CostBatch", "Costs", "as_costs"},
    "gpumatch.costs.capacities": {"PairCapacities"},
    "gpumatch.general.graph": {"Graph", "pattern_of", "weighted_of"},
    "gpumatch.numeric.arrays": {"any_true", "array_module", "array_of", "first_true"},
}
WITHOUT_ALGORITHMS = {"compiling.py", "__init__.py", "__main__.py", "cli", "certificates"}


FRONT_DOOR = PACKAGE / "distributed" / "verification.py"  # to the checkers of what is divided


def imports(path):
    """(module, name) of all that a file imports of ours, at whatever place."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found |= {(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, None) for alias in node.names}
    return {(module, name) for module, name in found if module.split(".")[0] == "gpumatch"}


def test_checkers_import_what_is_listed():
    seen = {}
    for path in CHECKERS.glob("*.py"):
        for module, name in imports(path):
            if not module.startswith("gpumatch.certificates"):
                seen.setdefault(module, set()).add(name)
    assert seen == SHARED


def test_the_list_is_that_of_the_docstring():
    text = gpumatch.certificates.__doc__
    assert all(f"`{module}`" in text for module in SHARED)
    assert all(f"`{name}`" in text for names in SHARED.values() for name in names)


def test_checkers_of_matchings_and_of_assignments_do_not_import_each_other():
    for one, other in (("matching", "assignment"), ("assignment", "matching")):
        modules = {module for module, _ in imports(CHECKERS / f"{one}.py")}
        assert f"gpumatch.certificates.{other}" not in modules
        assert "gpumatch.certificates" not in modules


def test_nothing_below_the_public_names_imports_a_checker():
    paths = [
        p
        for p in PACKAGE.rglob("*.py")
        if p.relative_to(PACKAGE).parts[0] not in WITHOUT_ALGORITHMS and p != FRONT_DOOR
    ]
    assert len(paths) > 50
    for path in paths:
        names = {f"{module}.{name}" for module, name in imports(path)}
        assert not any("certificates" in name for name in names), path
        assert "gpumatch.certificates" not in path.read_text(encoding="utf-8"), path
