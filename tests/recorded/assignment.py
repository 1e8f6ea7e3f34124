"""The runs of assignment algorithms that are recorded: every one that needs no GPU, on one thread.

So are what `assign` and SciPy's names solve in one compiled call, and bottlenecks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_array

from gpumatch import InfeasibleError, algorithms, assign
from gpumatch.csgraph import min_weight_full_bipartite_matching
from gpumatch.optimize import linear_sum_assignment
from graphs import costs
from tests.recorded.record import Fields, Group, hash_of, in_small_steps, work_of

Problem = tuple[Any, dict[str, Any]]
"""Costs, and what `assign` is told besides."""
MOST_PAIRS = {("dgs", "reference"): 2000}
"""Rows times columns of the problems that are not too slow."""


SMALL_BUDGET = 500
"""Entries between two returns to Python, so that small problems take many."""
WITH_BUDGETS = [
    *("searches.dense", "searches.sparse"),
    *(
        f"assignment.{module}"
        for module in (
            *("auction", "dgs.start", "dgs.switching", "dgs.relaxation", "sparse.tuning"),
            *("hungarian.classical", "hungarian.problem", "hungarian.tree"),
        )
    ),
]


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _forbidding(matrix: np.ndarray, share: float) -> np.ndarray:
    """Most pairs forbidden, but not those of the diagonal."""
    forbidden = _rng(8).random(matrix.shape) < share
    np.fill_diagonal(forbidden, False)
    return np.where(forbidden, np.inf, matrix)


@functools.cache
def problems() -> Mapping[str, Problem]:
    uniform = costs.make("uniform_integer", 60, seed=3)
    wide = costs.make("uniform_integer", 24, 60, factor=20, seed=4)
    sparse = costs.make("sparse_uniform", 70, degree=3, high=500, seed=5)
    mesh = costs.make("mesh", 6, seed=6)
    halves = _rng(7).integers(-(2**20), 2**20, (48, 48)) / 64
    blocks = csr_array(block_diag([mesh, costs.make("power_law", 5, seed=9)]))
    narrow = np.arange(60)[::-1] * 5
    return {
        "uniform": (uniform, {}),
        "uniform, small": (costs.make("uniform_integer", 40, factor=9, seed=3), {}),
        "uniform, greatest": (uniform, {"maximize": True}),
        "uniform, few values": (costs.make("uniform_integer", 60, factor=0.1, seed=3), {}),
        "uniform, many values": (costs.make("uniform_integer", 60, factor=1000, seed=3), {}),
        "negative": (uniform - 100, {}),
        "wide": (wide, {}),
        "tall": (wide.T, {}),
        "wide, greatest": (wide, {"maximize": True}),
        "wide, any": (wide - 120, {"cardinality": "any"}),
        "wide, limit": (wide, {"cost_limit": 12}),
        "limit": (uniform, {"cost_limit": 1, "cardinality": "maximum"}),
        "any": (uniform - 5, {"cardinality": "any"}),
        "warm": (uniform, {"initial": "near"}),
        "warm, wide": (wide, {"initial": "near"}),
        "warm, sparse": (mesh, {"initial": "near"}),
        "warm pairs": (uniform, {"initial": (narrow * 7 % 60)}),
        "floats": (halves, {}),
        "floats, limit": (halves, {"cost_limit": -9000.5}),
        "floats, wide": (halves[:20], {}),
        "product": (costs.make("machol_wien", 20), {}),
        "product, wide": (costs.make("machol_wien", 12, 30), {"maximize": True}),
        "two costs": (costs.make("two_cost", 60, p=0.03, seed=2), {}),
        "equal": (costs.make("constant", 30), {}),
        "forbidden": (_forbidding(uniform, 0.9), {}),
        "forbidden, any": (_forbidding(uniform - 8, 0.9), {"cardinality": "any"}),
        "mesh": (mesh, {}),
        "mesh, greatest": (mesh, {"maximize": True}),
        "power law": (costs.make("power_law", 6, seed=2), {}),
        "deficient": (sparse, {"cardinality": "maximum"}),
        "deficient, limit": (sparse, {"cost_limit": 100}),
        "deficient, full": (sparse, {}),
        "blocks": (blocks, {}),
    }


@functools.cache
def larger_problems() -> Mapping[str, Problem]:
    """Problems that fill more than a vector, or a block, of an algorithm's arrays."""
    return {
        "larger": (costs.make("uniform_integer", 300, seed=1), {}),
        "larger, wide": (costs.make("uniform_integer", 150, 500, seed=1), {}),
        "larger mesh": (costs.make("mesh", 10, seed=1), {}),
        "larger power law": (costs.make("power_law", 9, seed=1), {}),
        "larger sparse": (
            costs.make("sparse_uniform", 900, degree=4, seed=1),
            {"cardinality": "maximum"},
        ),
        "larger sparse, limit": (_with_empty_rows(), {"cost_limit": 250}),
    }


def _with_empty_rows() -> csr_array:
    """Sparse costs; every seventh row has none."""
    matrix = costs.make("sparse_uniform", 900, degree=4, seed=2)
    rows = np.repeat(np.arange(900), np.diff(matrix.indptr))
    kept = rows % 7 != 0
    pairs = rows[kept], matrix.indices[kept]
    return csr_array((matrix.data[kept], pairs), shape=matrix.shape)


@functools.cache
def _near(name: str) -> Any:
    """An optimal assignment of costs that are somewhat other."""
    matrix, _ = problems()[name]
    other = matrix.copy()
    values = other.data if isinstance(other, csr_array) else other
    values += _rng(1).integers(0, 4, values.shape)
    return assign(other, algorithm="shortest-augmenting-path", backend="cpu", threads=1)


def _solve(name: str, problem: Problem, *, has_ticks: bool = False, **arguments: Any) -> Fields:
    matrix, told = problem
    told = {**told, "initial": _near(name)} if told.get("initial") is not None else told
    ticks: list[Any] = []
    try:
        found = assign(matrix, threads=1, seed=1, callback=ticks.append, **told, **arguments)
    except InfeasibleError:
        fields: Fields = {"infeasible": 1}
    else:
        fields = {"size": found.size, "objective": found.objective, **work_of(found.stats)}
        if arguments.get("objective") != "bottleneck":
            fields["gap"] = found.gap
    return {**fields, "ticks": len(ticks)} if has_ticks else fields


def _run(arguments: Mapping[str, Any]) -> dict[str, Fields]:
    most = MOST_PAIRS.get((arguments.get("algorithm"), arguments.get("backend")), math.inf)
    known = {**problems(), **(larger_problems() if arguments.get("backend") == "cpu" else {})}
    return {
        name: _solve(name, problem, **arguments)
        for name, problem in known.items()
        if math.prod(problem[0].shape) <= most
    }


def _wishes(options: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]]:
    """The defaults, and each other value of one option."""
    defaults = {name: values[0] for name, values in options.items()}
    others = [{name: value} for name, values in options.items() for value in values[1:]]
    return [defaults | other for other in ({}, *others)]


def _by_name() -> dict[str, Group]:
    """Each algorithm in each of its homes but the GPU."""
    groups: dict[str, Group] = {}
    for algorithm in algorithms("assignment"):
        for backend, home in algorithm.homes.items():
            if backend != "cuda":
                for wish in _wishes(home.options):
                    told = {"algorithm": algorithm.name, "backend": backend, **wish}
                    groups["-".join(told.values())] = functools.partial(_run, told)
    return groups


def _run_bottleneck() -> dict[str, Fields]:
    found = {}
    for name, (matrix, _) in {**problems(), **larger_problems()}.items():
        for maximize, cardinality in ((False, "full"), (True, "maximum")):
            problem = -matrix if maximize else matrix, {"cardinality": cardinality}
            told = {"objective": "bottleneck", "maximize": maximize, "backend": "cpu"}
            found[f"{name}, {cardinality}"] = _solve(name, problem, **told)
    return found


def _run_paths_in_small_steps() -> dict[str, Fields]:
    """Bottlenecks of sparse costs, by paths that return to Python every few entries."""
    told = {"objective": "bottleneck", "algorithm": "paths", "backend": "cpu"}
    known = {**problems(), **larger_problems()}
    with in_small_steps(["assignment.bottleneck"], SMALL_BUDGET // 8):
        return {
            name: _solve(name, (matrix, {}), has_ticks=True, **told)
            for name, (matrix, _) in known.items()
            if isinstance(matrix, csr_array)
        }


def _run_under_scipys_names() -> dict[str, Fields]:
    """Sizes at which one compiled call does it otherwise: stack, lists, vectors, padding."""
    found: dict[str, Fields] = {}
    for shape in ((3, 3), (16, 16), (18, 19), (20, 20), (37, 36), (64, 64), (65, 65), (40, 110)):
        for name in ("two_cost", "machol_wien", "uniform_integer"):
            matrix = costs.make(name, *shape, seed=2)
            pairs = [
                linear_sum_assignment(values, maximize)
                for values in (matrix, matrix.T, matrix.astype(np.float32) / 4)
                for maximize in (False, True)
            ]
            found[f"linear_sum_assignment, {name} {shape}"] = {"pairs": hash_of(*pairs)}
    for name, (matrix, _) in problems().items():
        if isinstance(matrix, csr_array) and not name.startswith("deficient"):
            pairs = min_weight_full_bipartite_matching(matrix)
            found[f"min_weight_full_bipartite_matching, {name}"] = {"pairs": hash_of(*pairs)}
    return found


def _run_in_small_steps() -> dict[str, Fields]:
    """Every search that returns to Python on its way, every few entries: how often that is."""
    found = {}
    with in_small_steps(WITH_BUDGETS, SMALL_BUDGET):
        for algorithm in algorithms("assignment"):
            if "cpu" not in algorithm.homes:
                continue
            for wish in _wishes(algorithm.homes["cpu"].options):
                told = {"algorithm": algorithm.name, "backend": "cpu", **wish}
                key = "-".join(told.values())
                for name, problem in list(problems().items())[::2]:
                    found[f"{key}, {name}"] = _solve(name, problem, has_ticks=True, **told)
    return found


def _run_small() -> dict[str, Fields]:
    """Dense problems by `assign` as it is: each in one compiled call, and all in a batch."""
    dense = {name: p for name, p in problems().items() if isinstance(p[0], np.ndarray)}
    found = {}
    for cardinality in ("full", "maximum", "any"):
        for name, (matrix, told) in dense.items():
            told = {**told, "cardinality": cardinality}
            if "initial" not in told:
                found[f"{name}, {cardinality}"] = _of_small(assign(matrix, **told))
        batch = assign([matrix for matrix, _ in dense.values()], cardinality=cardinality)
        for name, k in zip(dense, range(len(batch))):
            found[f"{name}, {cardinality}, in a batch"] = _of_small(batch[k])
    return found


def _of_small(found: Any) -> Fields:
    fields = {"size": found.size, "objective": found.objective, "gap": found.gap}
    return {**fields, **work_of(found.stats)}


GROUPS: dict[str, Group] = {
    **_by_name(),
    "small": _run_small,
    "small steps": _run_in_small_steps,
    "bottleneck": _run_bottleneck,
    "bottleneck by paths in small steps": _run_paths_in_small_steps,
    "SciPy's names": _run_under_scipys_names,
}
