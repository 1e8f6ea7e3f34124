"""Small dense transport problems on the host, one or many, solved by compiled calls.

Kernels solve those whose smaller side ships all it can, without lower bounds and capacities, and
prove them (`gpumatch.cpu.transport.small`). `gpumatch.problems.transport` does the rest: it raises
the errors, and solves problems whose forbidden pairs leave a row without a path, whose numbers are
too large, or whose proofs need more than rounding.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpumatch.contracts.transport import SmallFlows, SmallTransports
from gpumatch.costs import CostBatch, native
from gpumatch.dispatch.registry import (
    ONE_SMALL_NETWORK,
    ONE_SMALL_TRANSPORT,
    SMALL_TRANSPORTS,
    load,
)
from gpumatch.interop.sparse import labels_of
from gpumatch.numeric.units import units_at
from gpumatch.problems.masses import ManyMasses, Masses, masses_of, masses_of_many
from gpumatch.problems.request import Request, checked_limit, wish_for
from gpumatch.problems.small_problems import numbers_for
from gpumatch.results.transport import Transport
from gpumatch.running import compile_time

__all__ = ["MOST", "SmallResults", "solve", "solve_one"]

MOST = 2**12
"""Costs of a problem up to which a compiled call answers, within a millisecond or two."""
MOST_OF_NETWORK = 2**14
"""Entries of one sparse or dense problem up to which a compiled call answers, by pivots."""
LARGEST_FLOAT = 2.0**300
"""The largest magnitude of floats whose products with units the kernels add without error."""


def solve_one(C: Any, supply: Any, demand: Any, request: Request) -> Transport | None:
    """The flow for one matrix, by a compiled call; None if another way must answer."""
    if request.cardinality == "maximum" or isinstance(supply, tuple) or isinstance(demand, tuple):
        return None
    run = _call_for(C)
    if run is None:
        return None
    masses = masses_of(supply, demand, C.shape)
    goal, limit, is_integer = _goal_of(request, is_integer=C.dtype.kind != "f")
    began, compiled = time.perf_counter(), compile_time.spent()
    flows = run(masses.rows.upper, masses.cols.upper, *goal)
    if flows is None:
        return None
    compiled = compile_time.spent() - compiled
    times = {"compilation": compiled, "search": time.perf_counter() - began - compiled}
    found = SmallResults([masses], flows, request, limit, is_integer=is_integer)
    return found.one(0, times)


def _call_for(C: Any) -> Callable[..., SmallFlows | None] | None:
    """What solves problems of this matrix, dense or CSR, in a compiled call; None if nothing does.

    Larger dense matrices are networks of all pairs.
    """
    if math.prod(C.shape) == 0 or C.dtype.kind not in "iuf":
        return None
    if type(C) is not np.ndarray:
        is_own = labels_of(C) != (None, None)
        costs = native(C.data) if C.nnz <= MOST_OF_NETWORK and not is_own else None
        arrays = C.indptr, C.indices
    else:
        costs = native(C) if C.size <= MOST_OF_NETWORK else None
        if costs is not None and C.size <= MOST:
            return functools.partial(load(ONE_SMALL_TRANSPORT), costs)
        arrays = _full_rows(*C.shape)
    if costs is None:
        return None
    return functools.partial(load(ONE_SMALL_NETWORK), (*arrays, costs.ravel()))


def _full_rows(nrows: int, ncols: int) -> tuple[np.ndarray, np.ndarray]:
    """The pointers and indices of all pairs in CSR."""
    cols = np.arange(ncols, dtype=np.int32)
    return np.arange(nrows + 1, dtype=np.int32) * ncols, np.tile(cols, nrows)


def solve(problems: CostBatch, supply: Any, demand: Any, request: Request) -> SmallResults | None:
    """The flows of a batch; None if the kernels take none of its problems."""
    if request.cardinality == "maximum" or problems.on_device:
        return None
    masses = masses_of_many(supply, demand, problems.sizes, problems.shape)
    return None if masses is None else _solve(problems, masses, request)


def _solve(problems: CostBatch, masses: ManyMasses, request: Request) -> SmallResults | None:
    given = problems.places()
    if given is None or len(problems.kinds) != 1 or "b" in problems.kinds:
        return None
    places, total = given
    try:
        goal, limit, is_integer = _goal_of(request, is_integer=problems.is_integer)
    except (TypeError, ValueError):
        return None  # it is an error of each problem
    takes = problems.sizes.prod(axis=1) <= MOST
    for k, _ in problems.roundings():
        takes[k] = False  # rounding enlarges their gaps
    task = SmallTransports(
        problems.read, places, total, takes, masses.supply, masses.demand, goal,
        request.control, request.threads,
    )  # fmt: skip
    with request.control.part("search"):
        flows = load(SMALL_TRANSPORTS)(task)
    return SmallResults(masses, flows, request, limit, is_integer=is_integer)


def _goal_of(
    request: Request, *, is_integer: bool
) -> tuple[tuple[float, float, bool, float], float | None, bool]:
    """What the kernels are to find, as numbers; the limit, and True if results are integers."""
    limit = checked_limit(request.cost_limit, is_integer, request.maximize)
    is_integer, largest = numbers_for(is_integer, request.cardinality, limit, 1)
    sign, most, takes_equal, *_ = wish_for(request.maximize, request.cardinality, limit)
    return (sign, most, takes_equal, min(largest, LARGEST_FLOAT)), limit, is_integer


class SmallResults:
    """The results of problems that kernels have solved, each made when it is asked for.

    Parameters
    ----------
    masses : ManyMasses, or list of Masses
        Those of each problem.
    flows : SmallFlows
    request : Request
    limit : int or float, optional
        Its checked limit.
    is_integer : bool
        True if duals and objectives are integers.

    Attributes
    ----------
    is_solved : bool array of length B
        True for problems that have a result.
    """

    def __init__(
        self,
        masses: Sequence[Masses],
        flows: SmallFlows,
        request: Request,
        limit: float | None,
        *,
        is_integer: bool,
    ) -> None:
        self._masses, self._flows = masses, flows
        self._wish: dict[str, Any] = {
            "maximize": request.maximize,
            "cardinality": request.cardinality,
            "cost_limit": limit,
        }
        self._is_integer, self.is_solved = is_integer, flows.is_solved
        self._row_dual, self._col_dual = map(self._in_costs, (flows.row_dual, flows.col_dual))

    def _in_costs(self, values: np.ndarray) -> np.ndarray:
        """Numbers in the dtype of costs and duals."""
        return values.astype(np.int64) if self._is_integer else values

    def __len__(self) -> int:
        return len(self.is_solved)

    def __iter__(self) -> Iterator[Transport]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Transport:
        return self.one(range(len(self))[k], {})

    def one(self, k: int, seconds: dict[str, float]) -> Transport:
        """The result of problem k, which took these seconds."""
        flows, masses = self._flows, self._masses[k]
        nrows, ncols = masses.rows.upper.size, masses.cols.upper.size
        part = slice(flows.begins[k], flows.begins[k + 1])
        paths, scans = int(flows.paths[k]), int(flows.scans[k])
        units = int(flows.units[part].sum())
        return Transport(
            flows.rows[part],
            flows.cols[part],
            flows.units[part],
            self._row_dual[k, :nrows],
            self._col_dual[k, :ncols],
            row_bounds=tuple(masses.rows),
            col_bounds=tuple(masses.cols),
            unit=masses.unit,
            dtype=masses.dtype,
            pair_costs=self._in_costs(flows.paid[part]),
            objective=self._objective(k, masses.unit),
            gap=self._number(flows.gap[k]) * masses.unit,
            proven=True,
            stats={
                "paths": paths,
                "scans": scans,
                "algorithm": "engine",
                "backend": "cpu",
                "phases": 1,
                "levels": 0,
                "seconds": seconds,
                "trace": [{"levels": 0, "found": paths, "matched": units, "step": "paths"}],
            },
            **self._wish,
        )

    def _number(self, value: Any) -> Any:
        """A Python number of the costs' kind."""
        return int(value) if self._is_integer else float(value)

    def _objective(self, k: int, unit: float) -> float:
        high, low = self._flows.cost[:, k].tolist()
        return (self._number(high) + self._number(low)) * unit + 0  # no -0.0

    def units_of(self, problems: np.ndarray) -> np.ndarray:
        """The units that each of these problems ships."""
        begins = self._flows.begins
        before = np.zeros(self._flows.units.size + 1, np.int64)  # sums may wrap, differences do not
        np.cumsum(self._flows.units, out=before[1:])
        return (before[begins[1:]] - before[begins[:-1]])[problems]

    def arrays(self) -> dict[str, Any]:
        """The arrays of a `BatchTransport`, and lists of its numbers, if all are solved."""
        flows, masses = self._flows, self._masses
        assert isinstance(masses, ManyMasses)
        of_problem, sums = np.repeat(np.arange(len(self)), np.diff(flows.begins)), []
        for mass, ends in ((masses.supply, flows.rows), (masses.demand, flows.cols)):
            places = of_problem * mass.shape[1] + ends
            sums.append(units_at(places, flows.units, mass.size).reshape(mass.shape))
        totals = self.units_of(self.is_solved).tolist()
        return {
            "row_dual": self._row_dual,
            "col_dual": self._col_dual,
            "row_flow": masses.in_masses(sums[0]),
            "col_flow": masses.in_masses(sums[1]),
            "size": np.diff(flows.begins).tolist(),
            "total": [total * unit for total, unit in zip(totals, masses.units)],
            "objective": [self._objective(k, unit) for k, unit in enumerate(masses.units)],
            "gap": [gap * unit for gap, unit in zip(flows.gap.tolist(), masses.units)],
            "proven": self.is_solved.tolist(),
        }
