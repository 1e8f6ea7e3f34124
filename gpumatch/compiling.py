"""Compiling ahead: what a fresh installation would otherwise do in its first calls."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpumatch import csgraph, general, linalg, optimize
from gpumatch.assignment import assign
from gpumatch.certificates import verify
from gpumatch.dispatch.backends import check_backend
from gpumatch.dispatch.devices import why_no_cuda
from gpumatch.dispatch.registry import (
    BOUNDED_FLOWS,
    PROBLEMS,
    STARTS,
    Algorithm,
    BackendName,
    algorithms,
)
from gpumatch.interop import lap
from gpumatch.matching import maximum_matching
from gpumatch.transportation import transport

__all__ = ["warmup"]

DTYPES = ("int32", "int64", "float32", "float64")
SIDE, DEGREE = 600, 4
"""Of costs: every stage of every algorithm has work, and each takes milliseconds."""
MANY_ROWS = 2**13
"""Rows of costs with few columns, of which a sample is solved first."""
MANY = 4000
"""Rows of sparse costs that paths alone do not serve."""
WIDE = 1040
"""Rows and columns of sparse costs whose last paths grow from both ends."""
GRID, KEPT = 150, 0.65
"""Of a graph, on which searches take several phases, and trees are grafted."""

Step = tuple[str, Callable[[], Any]]


def warmup(
    *, backend: BackendName = "auto", tell: Callable[[str, float], Any] | None = None
) -> dict[str, float]:
    """Compile what later calls need, for an image or before a measurement.

    Every algorithm runs on small problems of each type of numbers. What Numba and CuPy compile for
    it stays in their folders, which `gpumatch info` names, so that other processes load it.

    Parameters
    ----------
    backend : {"auto", "cpu", "cuda"}
        For which algorithms. ``"auto"``: those of the CPU, and of CUDA if there is a GPU.
    tell : callable, optional
        Called as ``tell(name, seconds)`` after each step.

    Returns
    -------
    dict
        Seconds by step. A step takes milliseconds if nothing was left to compile.

    Raises
    ------
    ValueError
        For another backend.
    RuntimeError
        For ``"cuda"`` without a GPU.

    Examples
    --------
    >>> import gpumatch as gm
    >>> seconds = gm.warmup(backend="cpu")  # doctest: +SKIP
    """
    if backend == "reference":
        raise ValueError("backend must be 'auto', 'cpu' or 'cuda': the reference compiles nothing")
    if backend != "auto":
        check_backend(backend)
    wanted = [backend] if backend != "auto" else ["cpu", *(["cuda"] if not why_no_cuda() else [])]
    seconds = {}
    for place in wanted:
        for name, step in _steps(place):
            began = time.perf_counter()
            step()
            seconds[name] = time.perf_counter() - began
            if tell is not None:
                tell(name, seconds[name])
    return seconds


def _steps(backend: str) -> Iterator[Step]:
    """What is called, each with a name."""
    run = functools.partial
    graph = _grid()
    for init in (name for name, homes in STARTS.items() if backend in homes):
        how: Any = {"init": init, "backend": backend}
        yield f"{backend}: start {init}", run(maximum_matching, graph, **how)
    for problem in PROBLEMS:
        for algorithm in algorithms(problem):
            if backend not in algorithm.backends:
                continue
            name = f"{backend}: {problem}, {algorithm.name}"
            step: Any = {
                "matching": run(_match, graph), "assignment": _assign, "transport": _ship,
                "general-matching": _pair, "general-weights": _pair_by_weight,
            }  # fmt: skip
            yield name, run(step[problem], algorithm, backend)
    if backend == "cpu":
        yield "cpu: capacities", run(_match_within, graph)
        yield "cpu: dense costs for which rows compete", _contested
        yield "cpu: sparse costs of many rows", _many
        yield "cpu: sparse costs of many entries", _wide
        yield "cpu: batches and small problems", _small
        yield "cpu: pairs that cost a limit", _at_limit
        yield "cpu: SciPy's names", _named_as_scipys
        yield "cpu: linear solvers", _for_solvers


def _pair(algorithm: Algorithm, backend: str) -> None:
    """Match graphs that are not bipartite: one with leaves, and one with odd cycles at an end."""
    how: Any = {"algorithm": algorithm.name, "backend": backend}
    star = np.stack([np.zeros(9, np.int32), np.arange(1, 10, dtype=np.int32)], axis=1)
    ring = np.arange(9, dtype=np.int32)
    for edges in star, np.stack([ring, (ring + 1) % 9], axis=1):
        m = general.maximum_matching((edges, None), **how)
        verify((edges, None), m)


def _pair_by_weight(algorithm: Algorithm, backend: str) -> None:
    """Match graphs with weights, one of them with odd sets."""
    ring = np.arange(9, dtype=np.int32)
    edges = np.stack([ring, (ring + 1) % 9], axis=1)
    how: Any = {"algorithm": algorithm.name, "backend": backend}
    cardinality: Any = "maximum" if algorithm.exact else "any"
    for weights in np.full(9, 8), np.full(9, 0.1):
        m = general.maximum_weight_matching((edges, weights), cardinality=cardinality, **how)
        verify((edges, weights), m)


def _match(graph: Any, algorithm: Algorithm, backend: str) -> None:
    how: Any = {"algorithm": algorithm.name, "backend": backend}
    starts: list[Any] = [{"threads": 1, "init": "none"}, {"threads": 2}]
    for start in starts:
        m = maximum_matching(graph, **start, **how)
        verify(graph, m)


def _match_within(graph: Any) -> None:
    """A matching of capacities."""
    verify(graph, maximum_matching(graph, row_capacity=2, col_capacity=3, backend="cpu"))


def _assign(algorithm: Algorithm, backend: str) -> None:
    how: Any = {"algorithm": algorithm.name, "backend": backend}
    for dtype in DTYPES:
        dense, sparse = _dense(dtype), _sparse(dtype)
        for costs in (dense, sparse):
            a = assign(costs, **how)
            if algorithm.exact:
                verify(costs, a)
            assign(costs, cost_limit=500, **how)
            assign(costs, cardinality="maximum", maximize=True, **how)


def _ship(algorithm: Algorithm, backend: str) -> None:
    how: Any = {"algorithm": algorithm.name, "backend": backend}
    supply, demand = np.random.default_rng(0).integers(1, 100, SIDE), np.full(SIDE, 100)
    wishes: list[Any] = [{}, {"cost_limit": 500}, {"cardinality": "maximum"}]
    for dtype in ("int64", "float64"):
        dense, sparse = _dense(dtype), _sparse(dtype)
        for costs in (dense, sparse):
            for wish in wishes:
                transport(costs, supply, demand, **wish, **how)
        few = SIDE // 16
        for costs in (dense[:, :few], np.resize(dense[:, :4], (MANY_ROWS, 4))):
            rows, cols = costs.shape
            transport(costs, 1, rows // cols + 1, **how)
        order = np.arange(SIDE, dtype=dtype)
        transport(abs(np.subtract.outer(order, order)), 1, 1, **how)  # neighbours are groups
        if backend == "cpu":
            transport(dense[:8, :8], 1, 1)  # in one compiled call
        if backend in BOUNDED_FLOWS:
            transport(dense[:, :few], 1, SIDE // few + 1, pair_capacity=1, **how)


def _contested() -> None:
    """All rows prefer the columns in one order, so the engine takes all of its steps."""
    order = np.arange(1, SIDE + 1)
    for dtype in DTYPES:
        assign(np.multiply.outer(order, order).astype(dtype), backend="cpu")


def _many() -> None:
    """So many that the engine holds auctions."""
    wishes: list[Any] = [{}, {"cost_limit": 500}, {"cardinality": "maximum"}]
    for dtype in DTYPES:
        for wish in wishes:
            assign(_sparse(dtype, MANY), backend="cpu", **wish)


def _wide() -> None:
    """So many entries that the engine's last paths grow from both ends."""
    from scipy.sparse import csr_array

    costs = np.random.default_rng(0).integers(1, 1000, (WIDE, WIDE))
    for dtype in ("int64", "float64"):
        assign(csr_array(costs.astype(dtype)), backend="cpu")


def _small() -> None:
    wishes: list[Any] = [{}, {"cost_limit": 5}, {"cardinality": "maximum"}]
    for dtype in ("bool", "uint8", "int16", *DTYPES):
        costs = _dense(dtype)[:30, :40]
        for wish in wishes:
            a = assign(costs, **wish)
            assign(costs, initial=a, **wish)
            assign(np.stack([costs, costs]), **wish)


def _at_limit() -> None:
    """All cost the limit, and the engine matches none of them."""
    for dtype, limit in (("int32", 7), ("int64", 2**30), ("float32", 7), ("float64", 7)):
        stored = _sparse(dtype).copy()
        stored.data[:] = limit
        for costs in (np.full((SIDE, SIDE), limit, dtype), stored):
            assign(costs, cost_limit=limit, algorithm="engine", backend="cpu")


def _named_as_scipys() -> None:
    for dtype in ("bool", "int8", "uint8", "int16", *DTYPES):
        costs = _dense(dtype)
        for given in (costs, costs[:20, :30], np.asfortranarray(costs), costs[:200, :300]):
            optimize.linear_sum_assignment(given)
            optimize.linear_sum_assignment(given, maximize=True)
            optimize.linear_sum_assignment(given, cost_limit=5)
        lap.lapjv(costs, cost_limit=5)
        optimize.linear_sum_assignment_batch([costs, costs], cost_limit=5)
    graph = _sparse("float64")
    csgraph.maximum_bipartite_matching(graph)
    csgraph.structural_rank(graph)
    csgraph.min_weight_full_bipartite_matching(graph)


def _for_solvers() -> None:
    matrix = _sparse("float64")
    linalg.dmperm(matrix)
    linalg.dmperm(matrix[:, : SIDE // 2])
    linalg.btf(matrix)
    for job in (1, 2, 3, 4, 5):
        linalg.mc64(matrix, job=job)
    linalg.splu(matrix).solve(np.ones(SIDE))


@functools.cache
def _grid() -> Any:
    """The symmetric graph of a grid with some edges left out, in random order."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(0)
    own = np.arange(GRID * GRID).reshape(GRID, GRID)
    ends = np.concatenate([own[:, :-1].ravel(), own[:-1].ravel()])
    others = np.concatenate([own[:, 1:].ravel(), own[1:].ravel()])
    kept = random.random(ends.size) < KEPT
    ends, others = ends[kept], others[kept]
    rows = random.permutation(own.size)[np.concatenate([ends, others])]
    cols = random.permutation(own.size)[np.concatenate([others, ends])]
    return csr_array((np.ones(rows.size), (rows, cols)), shape=(own.size, own.size))


def _dense(dtype: str) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 1000, (SIDE, SIDE))
    return values.astype(dtype)


@functools.lru_cache(maxsize=2 * len(DTYPES))
def _sparse(dtype: str, side: int = SIDE) -> Any:
    """Random entries and a diagonal, so that there is a full assignment."""
    from scipy.sparse import csr_array

    random = np.random.default_rng(0)
    rows = np.arange(side).repeat(DEGREE)
    cols = random.integers(0, side, rows.size)
    cols[::DEGREE] = random.permutation(side)
    values = random.integers(1, 1000, rows.size).astype(dtype)
    return csr_array((values, (rows, cols)), shape=(side, side))
