"""For the tests of assignment: families, sizes, dtypes, real instances, and what runs on them.

Optima come from the sources named, or from SciPy in the tests themselves.
"""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import coo_array

from gpumatch import algorithms
from graphs import costs
from tests.pairwise import pairwise

SIZES = (1, 2, 17, 100, 500, 1000)
LONG_ROWS, LONG_HARD_ROWS = 1000, 500
"""Rows from which some algorithms take seconds, and Hungarian ones of cases that are not easy."""
REFERENCE_LIMITS = {"easy": (500, 1000), "chained": (100, 200), "hard": (100, 100)}
CLASSICAL_LIMITS = {"easy": (200, 500), "chained": (100, 100), "hard": (100, 100)}
"""The longer side up to which the reference takes seconds, the shorter up to which a minute."""
PARAMETERS: dict[str, list[dict[str, float]]] = {
    "uniform_integer": [{"factor": 0.1}, {"factor": 1}, {"factor": 10}],
    "low_rank": [{"rank": 1}, {"rank": 3}],
    "two_cost": [{"p": 0.5}, {"p": 0.01}],
}
MAXIMISED = {"geom"}
SQUARE_ONLY = {"geom"}

DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, np.longdouble, ">i4", ">f8",
]  # fmt: skip


class Case(NamedTuple):
    """Costs of a family; `shape` is n × n, n × 2n or 2n × n."""

    family: str
    shape: tuple[int, int]
    parameters: Mapping[str, float]

    @property
    def costs(self) -> np.ndarray:
        square = (self.shape[0],) if self.family in SQUARE_ONLY else self.shape
        return costs.make(self.family, *square, seed=1, **self.parameters)

    @property
    def maximize(self) -> bool:
        return self.family in MAXIMISED

    @property
    def difficulty(self) -> str:
        """How many dual updates a Hungarian algorithm takes, for n rows.

        About n² / 2 if hard, because the k-th search takes k; up to 60 n if chained, fewer if easy.
        """
        if self.family == "machol_wien" or self.parameters.get("rank") == 1:
            return "hard"
        return "chained" if self.family in ("geom", "low_rank") else "easy"

    def __str__(self) -> str:
        values = [f"{name}={value}" for name, value in self.parameters.items()]
        return "-".join([self.family, f"{self.shape[0]}x{self.shape[1]}", *values])


def _cases() -> Iterator[Case]:
    for family in costs.FAMILIES:
        for parameters in PARAMETERS.get(family, [{}]):
            for n in SIZES:
                yield Case(family, (n, n), parameters)
                if family not in SQUARE_ONLY:
                    yield Case(family, (n, 2 * n), parameters)
                    yield Case(family, (2 * n, n), parameters)


class Run(NamedTuple):
    """An algorithm on one of its backends, with some of its options; the others have defaults."""

    algorithm: str
    backend: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> dict[str, str]:
        return {"algorithm": self.algorithm, "backend": self.backend, **dict(self.options)}

    def __str__(self) -> str:
        return "-".join((self.algorithm, self.backend, *(value for _, value in self.options)))


CASES = list(_cases())
RUNS = [Run(a.name, b) for a in algorithms("assignment") if a.exact for b in a.backends]


def _runs_with_options() -> Iterator[Run]:
    """Every algorithm on every backend with every combination of its options there."""
    for algorithm in algorithms("assignment"):
        for backend, home in algorithm.homes.items():
            for chosen in itertools.product(*home.values.values()):
                if chosen:
                    yield Run(algorithm.name, backend, tuple(zip(home.values, chosen)))


def _param(run: Run, *others, name: str = "", long: bool = False):
    marks = [pytest.mark.gpu] if run.backend == "cuda" else []
    marks += [pytest.mark.long] if long else []
    return pytest.param(run, *others, id=f"{run}{name}", marks=marks)


EVERY_ALGORITHM = pytest.mark.parametrize("run", [_param(run) for run in RUNS])
SINGLES = (np.float16, np.float32)  # kernels of their own, which take seconds to compile
EVERY_ALGORITHM_AND_DTYPE = pytest.mark.parametrize(
    ("run", "dtype"),
    [
        _param(
            run,
            dtype,
            name=f"-{np.dtype(dtype).str}",
            long=run.algorithm != "engine" and dtype in SINGLES,
        )
        for run in RUNS
        for dtype in DTYPES
    ],
)


def _reference_limits(run: Run, case: Case) -> tuple[int, int]:
    is_classical = run.algorithm == "hungarian-classical"
    return (CLASSICAL_LIMITS if is_classical else REFERENCE_LIMITS)[case.difficulty]


def _takes_seconds(run: Run, case: Case) -> bool:
    if run.backend == "reference":
        return max(case.shape) > _reference_limits(run, case)[0]
    is_slow = run.algorithm.startswith("hungarian") and case.difficulty != "easy"
    return min(case.shape) >= (LONG_HARD_ROWS if is_slow else LONG_ROWS)


def _takes_too_long(run: Run, case: Case) -> bool:
    """A minute on the reference; ten seconds on the CPU, where other algorithms take less."""
    if run.backend == "reference":
        return min(case.shape) > _reference_limits(run, case)[1]
    is_slow = run.algorithm.startswith("hungarian") and case.difficulty == "hard"
    return run.backend == "cpu" and is_slow and min(case.shape) >= LONG_ROWS


QUICK_ENOUGH = [(run, case) for run in RUNS for case in CASES if not _takes_too_long(run, case)]


def factors_of(case: Case) -> dict[str, Hashable]:
    return {"family": (case.family, *case.parameters.values()), "shape": case.shape}


def _factors(pair: tuple[Run, Case]) -> dict[str, Hashable]:
    run, case = pair
    return {"run": run, **factors_of(case)}


def _params(pairs: Iterable[tuple[Run, Case]]) -> list:
    """A pairwise sample, as parameters of a test."""
    sample = pairwise(pairs, _factors)
    return [
        _param(run, case, name=f"-{case}", long=_takes_seconds(run, case)) for run, case in sample
    ]


PROVEN = _params(QUICK_ENOUGH)
"""Of all runs, families and shapes, so many that any two of them meet."""


def _factors_with_options(chosen: tuple[Run, Case, str]) -> dict[str, Hashable]:
    run, case, form = chosen
    home = run.algorithm, run.backend
    options = {name: (home, value) for name, value in run.options}
    return {**factors_of(case), "run": home, "form": (home, form), **options}


def _longest_with_options(run: Run) -> int:
    """The longer side up to which a run is quick; each round is a launch, or there are many."""
    slow = run.backend == "reference" or {"round", "none"} & set(dict(run.options).values())
    return 40 if slow else 100


def _cases_with_options() -> Iterator[tuple[Run, Case, str]]:
    for run in _runs_with_options():
        longest = _longest_with_options(run)
        for case in CASES:
            if max(case.shape) <= longest:
                yield run, case, "dense"
                yield run, case, "sparse"


WITH_OPTIONS = [
    _param(run, case, form, name=f"-{case}-{form}")
    for run, case, form in pairwise(_cases_with_options(), _factors_with_options)
]
"""The same of all options, families, shapes and forms, of small costs."""
SPARSE = _params((run, case) for run, case in QUICK_ENOUGH if max(case.shape) <= 100)
"""The same of small costs."""
FLOATS = {"uniform_float", "geom", "geom2", "low_rank"}
FLOAT_AUCTIONS = _params(
    (run, case)
    for run, case in QUICK_ENOUGH
    if run.algorithm == "auction" and case.family in FLOATS
    if max(case.shape) <= (200 if run.backend == "reference" else 500)
)


# -- real instances --------------------------------------------------------------------------------

DENSE_OPTIMA = {"assign100": 305, "assign300": 626, "assign500": 991, "assign800": 1552}
SPARSE_OPTIMA = {"assignp800": 2239, "assignp3000": 18696}
IPADIC_OPTIMUM = -3324387
LAPX_OPTIMUM = 224.889950729465


def _with_names(names: Iterable[str]) -> list:
    """Each run on each of the real instances."""
    return [
        _param(run, name, name=f"-{name}", long=_is_long(run, name))
        for run in RUNS
        for name in names
        if (run, name) not in TOO_LONG
    ]


def _is_long(run: Run, name: str) -> bool:
    is_hungarian = run.algorithm.startswith("hungarian")
    if run.backend != "reference":
        return run.backend == "cpu" and is_hungarian and name == "ipadic"
    return name in LONG or (run.algorithm == "auction" and name in LONG_FOR_AUCTIONS)


LONG = {"assignp3000", "ipadic", "lapx"}
LONG_FOR_AUCTIONS = {"assign500", "assignp800"}
TOO_LONG = {(Run(name, "reference"), "ipadic") for name in ("auction", "hungarian-classical")}
"""What the reference takes seconds, or minutes, for."""
DENSE_RUNS, SPARSE_RUNS = _with_names(DENSE_OPTIMA), _with_names(SPARSE_OPTIMA)
IPADIC_RUNS, LAPX_RUNS = _with_names(["ipadic"]), _with_names(["lapx"])


def _file(name: str) -> Path:
    path = Path(os.environ.get("GPUMATCH_DATA", os.devnull)) / "lap" / name
    if not path.exists():
        pytest.skip(f"GPUMATCH_DATA does not hold lap/{name}")
    return path


def or_library(name: str) -> np.ndarray:
    """A dense problem: n, then n × n costs."""
    with gzip.open(_file(f"{name}.txt.gz"), "rt") as file:
        n, *entries = map(int, file.read().split())
    return np.array(entries).reshape(n, n)


def or_library_sparse(name: str) -> coo_array:
    """A sparse problem: n, then row, column and cost of each edge, counted from 1."""
    with gzip.open(_file(f"{name}.txt.gz"), "rt") as file:
        n, *entries = map(int, file.read().split())
    rows, cols, data = np.array(entries).reshape(-1, 3).T
    return coo_array((data, (rows - 1, cols - 1)), shape=(n, n))


def ipadic() -> np.ndarray:
    """Connection costs of a dictionary: 1316 × 1316 small integers, many of them equal."""
    with lzma.open(_file("ipadic_connection_cost_int16.npy.xz")) as file:
        return np.load(file)


def lapx_cost_eps() -> np.ndarray:
    """368 × 368 floats on which absolute tolerances fail."""
    return np.loadtxt(_file("lapx_cost_eps.csv.gz"), delimiter=",")
