"""The case table: graphs with the known size of their maximum matchings, and what runs on them.

Sizes of generated graphs follow from their construction, or were found by two independent codes
(`test_matching.py` compares each with SciPy's and networkx's where those can do it).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import graphs
from gpumatch import algorithms
from gpumatch.dispatch import registry
from tests.pairwise import pairwise

SMALL_SIZE = 3500  # vertices and edges; networkx recurses, and backend="reference" is slow


def matrix(nrows, ncols, edges) -> csr_array:
    """The pattern with an entry at each (row, column)."""
    rows, cols = np.array(list(edges), dtype=np.int32).reshape(-1, 2).T
    entries = np.ones(len(rows), bool), (rows, cols)
    return coo_array(entries, shape=(nrows, ncols)).tocsr()


def figure_1() -> csr_array:
    """Figure 1 of Deveci et al. 2013."""
    return matrix(3, 2, [(0, 0), (0, 1), (1, 1), (2, 1)])


def cycle(n) -> csr_array:
    return matrix(n, n, [(i, j % n) for i in range(n) for j in (i, i + 1)])


def arrow(n) -> csr_array:
    """A dense first row and column and no diagonal: two edges whatever the size."""
    return matrix(n, n, [(0, j) for j in range(1, n)] + [(i, 0) for i in range(1, n)])


def bow_tie() -> csr_array:
    """More columns than rows left of a bottleneck, more rows than columns right of it."""
    wide, tall = itertools.product(range(2), range(5)), itertools.product(range(2, 7), range(5, 7))
    return matrix(7, 7, [*wide, *tall, (6, 0)])


class Case(NamedTuple):
    """A graph and the size of its maximum matchings."""

    name: str
    make: Callable[[], csr_array]
    size: int
    scipy_can: bool = True  # False where SciPy 1.17 takes exponential time

    @property
    def graph(self) -> csr_array:
        return _made(self.make)

    @property
    def is_small(self) -> bool:
        return _size(self.make) <= SMALL_SIZE


@functools.cache
def _made(make: Callable[[], csr_array]) -> csr_array:
    return make()


@functools.cache
def _size(make: Callable[[], csr_array]) -> int:
    graph = _made(make)
    return sum(graph.shape) + graph.nnz


HAND_MADE = [
    Case("0 x 0", lambda: matrix(0, 0, []), 0),
    Case("0 x 5", lambda: matrix(0, 5, []), 0),
    Case("5 x 0", lambda: matrix(5, 0, []), 0),
    Case("one edge", lambda: matrix(1, 1, [(0, 0)]), 1),
    Case("empty rows and columns", lambda: matrix(5, 6, [(1, 3), (3, 3), (3, 1)]), 2),
    Case("figure 1", figure_1, 2),
    Case("cycle", lambda: cycle(30), 30),
    Case("arrow", lambda: arrow(40), 2),
    Case("bow tie", bow_tie, 5),
    Case("lower triangle", lambda: csr_array(np.tri(25, dtype=bool)), 25),
    Case("anti-diagonal", lambda: csr_array(np.eye(33, dtype=bool)[::-1]), 33),
]

# family -> {parameters: size}, every family at three sizes, all with seed 1
GENERATED: dict[str, dict[tuple[float, ...], int]] = {
    "bubbles": {(5, 4): 44, (12, 8): 246, (60,): 6172},
    "chain": {(1,): 1, (50,): 50, (5000,): 5000},
    "complete": {(3,): 3, (20, 30): 20, (300, 200): 200},
    "dead_end_ladder": {(1,): 6, (20,): 101, (2000,): 10001},
    "delaunay": {(5,): 32, (8,): 256, (13,): 8192},
    "empty": {(1,): 0, (40, 30): 0, (10000,): 0},
    "fewg": {(64, 4): 60, (256, 5): 253, (8192, 5): 8122},
    "grid": {(5, 0.65): 24, (20, 0.65): 388, (100, 0.65): 9626},
    "hexa": {(24,): 24, (300,): 292, (3000,): 2853},
    "hilo": {(4, 1, 2): 4, (16, 2, 3): 32, (100, 4): 400},
    "kron": {(4, 4): 12, (7, 8): 100, (12, 16): 2594},
    "ladder": {(1,): 3, (25,): 51, (2000,): 4001},
    "lopsided": {(10, 30): 10, (400, 300): 300, (5000, 20000): 5000},
    "manyg": {(64, 4, 16): 61, (256, 5, 64): 251, (8192, 5): 8132},
    "rgg": {(5,): 31, (8,): 254, (13,): 8190},
    "road": {(4,): 105, (8,): 278, (50,): 12225},
    "rope": {(24,): 24, (150,): 150, (12000,): 12000},
    "stars": {(1, 5): 1, (30, 7): 30, (1000, 20): 1000},
    "trace": {(5,): 50, (12,): 288, (100,): 19160},
    "uniform": {(20, 2): 16, (400, 3): 382, (20000, 3): 18735},
    "zipf": {(20,): 19, (300,): 240, (10000,): 6848},
}
TOO_MUCH_FOR_SCIPY = {
    "dead_end_ladder(20)",
    "dead_end_ladder(2000)",
    "ladder(25)",
    "ladder(2000)",
    "rope(150)",
    "rope(12000)",
}


def _generated() -> Iterator[Case]:
    for family, sizes in GENERATED.items():
        for parameters, size in sizes.items():
            name = f"{family}({', '.join(map(str, parameters))})"
            make = functools.partial(graphs.make, family, *parameters, seed=1)
            yield Case(name, make, size, name not in TOO_MUCH_FOR_SCIPY)


CASES = [*HAND_MADE, *_generated()]
SMALL = [case for case in CASES if case.is_small]


class Run(NamedTuple):
    """An algorithm on one of its backends, with its options."""

    algorithm: str
    backend: str
    options: Mapping[str, str]

    @property
    def arguments(self) -> dict[str, str]:
        return {"algorithm": self.algorithm, "backend": self.backend, **self.options}

    def __str__(self) -> str:
        return "-".join((self.algorithm, self.backend, *self.options.values()))


def _runs() -> Iterator[Run]:
    for algorithm in algorithms("matching"):
        for backend in algorithm.backends:
            known = algorithm.homes[backend].values
            for values in itertools.product(*known.values()):
                yield Run(algorithm.name, backend, dict(zip(known, values)))


def param(run: Run, *others, name: str = "", long: bool = False):
    marks = [pytest.mark.gpu] if run.backend == "cuda" else []
    marks += [pytest.mark.long] if long else []
    return pytest.param(run, *others, id=f"{run}{name}", marks=marks)


RUNS = list(_runs())
EVERY_RUN = [param(run) for run in RUNS]
EVERY_START = [
    param(run, init, name=f"-{init}") for run in RUNS for init in registry.starts(run.backend)
]


def _is_quick(run: Run, init: str, case: Case) -> bool:
    """All but the reference's large graphs with no start, or with a thread a column."""
    has_most = run.backend == "reference" and (init == "none" or run.options["launch"] == "mt")
    return case.is_small or not has_most


EVERY_CASE = [
    (run, init, case)
    for run in RUNS
    for init in registry.starts(run.backend)
    for case in CASES
    if _is_quick(run, init, case)
]


def _factors(chosen: tuple[Run, str, Case]) -> dict[str, str]:
    run, init, case = chosen
    home = f"{run.algorithm}-{run.backend}"
    return {"home": home, "start": init, "case": case.name, **run.options}


PROVEN = [
    param(
        run,
        init,
        case,
        name=f"-{init}-{case.name}",
        long=run.backend == "reference" and not case.is_small,
    )
    for run, init, case in pairwise(EVERY_CASE, _factors)
]
"""Of all runs, starts and cases, so many that any two of them meet."""
