"""A Numba that lacks names: what `private` finds of it, and whether the CPU's algorithms serve.

``python -m tests.cpu.numba_tools.lacking FOLDER [NAME ...]`` solves without each of the names, or
of all private names, in a process of its own. What is compiled in another way than usual is kept in
the folder. The name ALL hides all of them at once. Nothing private then saves time, so two problems
are solved, not four.
"""

from __future__ import annotations

import ast
import builtins
import functools
import json
import os
import sys
import types
from collections.abc import Container
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[3] / "gpumatch" / "cpu" / "numba_tools" / "private.py"
MODULE = "gpumatch.cpu.numba_tools.private"
PARTS = ("events", "caching", "compiler", "passes", "arrays", "boxes")
ALL = "ALL"


class EveryName:
    """Contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


@functools.cache
def names_by_part() -> dict[str, frozenset[str]]:
    """The names that each part imports, and those that it needs of these."""
    tree = ast.parse(PATH.read_text())
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    return {part: frozenset(_names_in(functions[f"_{part}"])) for part in PARTS}


def _names_in(function: ast.FunctionDef) -> list[str]:
    names = []
    for node in ast.walk(function):
        if isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "_need":
            names += [ast.literal_eval(name) for name in node.args[1:]]
    return names


def all_names() -> list[str]:
    return sorted(frozenset().union(*names_by_part().values()))


def parts_with(name: str) -> frozenset[str]:
    return frozenset(part for part, names in names_by_part().items() if name in names)


def private_without(names: Container[str]) -> types.ModuleType:
    """The module `private` as it is where Numba lacks these names."""

    def import_others(module: str, *how: Any) -> Any:
        wanted = how[2] if len(how) > 2 and how[2] else ()
        if module.startswith("numba.") and any(name in names for name in wanted):
            raise ImportError(f"cannot import {wanted} from {module}")
        return __import__(module, *how)

    def get_others(owner: Any, name: str) -> Any:
        if name in names:
            raise AttributeError(name)
        return getattr(owner, name)

    made = types.ModuleType(MODULE)
    known = {**vars(builtins), "__import__": import_others, "getattr": get_others}
    made.__dict__["__builtins__"] = known
    exec(compile(PATH.read_text(), PATH, "exec"), made.__dict__)
    return made


def missing_parts(private: types.ModuleType) -> frozenset[str]:
    return frozenset(part for part in PARTS if getattr(private, part) is None)


def solve(is_quick: bool) -> list[float]:
    """The size of a maximum matching, and the least total cost, which quick calls find once."""
    import numpy as np

    import gpumatch as gm

    graph = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0]])
    costs = np.array([[4.0, 1, 3], [2, 0, 5], [3, 2, 2]])
    matching = gm.maximum_matching(graph, threads=1)
    gm.verify(graph, matching)
    found = [matching.size]
    for algorithm in ("shortest-augmenting-path", "auto")[: 1 if is_quick else 2]:
        assignment = gm.assign(costs, algorithm=algorithm)
        gm.verify(costs, assignment)
        found.append(assignment.objective)
    if not is_quick:
        found.append(costs[gm.optimize.linear_sum_assignment(costs)].sum())
    return found


def solve_without(name: str, folder: Path) -> dict[str, Any]:
    """What a new process finds without a name, which parts it lacks, and how it compiles.

    Processes whose kernels are compiled alike share compiled code, with all others if those are
    compiled as usual.
    """
    import numba

    private = private_without(EveryName() if name == ALL else {name})
    missing = missing_parts(private)
    kinds = sorted(missing & {"arrays", "caching", "compiler"})
    if kinds:
        numba.config.CACHE_DIR = str(folder / "-".join(["kernels", *kinds]))
    sys.modules[MODULE] = private
    found = solve(is_quick=name == ALL)
    from gpumatch.cpu.numba_tools import compiled, views

    return {
        "name": name,
        "found": found,
        "missing": sorted(missing),
        "plain kernels": compiled._make_kernel is compiled._plain_kernel,
        "plain views": views.ARE_PLAIN,
    }


def main(folder: str, *names: str) -> None:
    import numba  # noqa: F401  once for all processes, as SciPy
    import scipy.sparse  # noqa: F401

    for name in names or (*all_names(), ALL):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print(json.dumps(solve_without(name, Path(folder))), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
