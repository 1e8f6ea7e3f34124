"""One row of an assignment changes, and the optimum is wanted: a session beside solving afresh.

Every contender makes the same changes, one after the other: a row gets the costs of a random order
of its columns. A sample is the mean time of one of CHANGES changes, and of the total after it.
Each change of a sample ends at another matrix, and the next sample makes them again from the first,
so the last totals can be compared.

    session      `gpumatch.Session`: `set_row`, then `objective`
    proof        the same with `solve`, which also makes a snapshot with its proof
    assign       `gpumatch.assign` of the whole matrix
    scipy        `scipy.optimize.linear_sum_assignment` of the whole matrix
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpumatch as gm
from bench.costs import CostInstance, Matrices, geom, uniform
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.report.tables import Time, markdown, page, section, time_of

THREADS = 1
THRESHOLD = 0.0  # every problem counts
SESSION, PROOF, ASSIGN, SCIPY = CODES = ("session", "proof", "assign", "scipy")
CHANGES = 100

problem = Matrices


@dataclass(frozen=True)
class Changing:
    """A way to have the total after each change of a row."""

    name: str
    threads: int = 1

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        return repeat(lambda: self._sample(problem), limits)

    def _sample(self, problem: Matrices) -> Sample:
        C = problem.on("cpu")[0].copy()
        rng = np.random.default_rng(len(C))
        rows = rng.integers(len(C), size=CHANGES).tolist()
        lines = [rng.permutation(C[row]) for row in rows]
        change = self._way(C, problem.maximize)
        begin = time.perf_counter()
        for row, line in zip(rows, lines):
            total = change(row, line)
        seconds = (time.perf_counter() - begin) / CHANGES
        return Sample(seconds, min(C.shape), more={"objective": total})

    def _way(self, C: np.ndarray, maximize: bool) -> Callable[[int, np.ndarray], float]:
        """The call that changes a row and returns the total."""
        if self.name in (SESSION, PROOF):
            session = gm.Session(C, maximize=maximize)

            def changed(row: int, line: np.ndarray) -> float:
                session.set_row(row, line)
                return session.objective if self.name == SESSION else session.solve().objective

            return changed

        def solved(row: int, line: np.ndarray) -> float:
            C[row] = line
            if self.name == ASSIGN:
                return gm.assign(C, maximize=maximize, threads=self.threads).objective
            from scipy.optimize import linear_sum_assignment

            pairs = linear_sum_assignment(C, maximize)
            return C[pairs].sum().item()

        return solved


def contenders(device: str, threads: int) -> list[Contender]:
    """Sessions, and both ways to solve afresh, on the CPU."""
    return [Changing(name, threads) for name in CODES]


def instances(quick: bool, data: str | None) -> list[CostInstance]:
    """Integers of two ranges, and distances."""
    if quick:
        return [uniform(12, 1.0), geom(12)]
    sizes = (50, 100, 300, 1000)
    return [*(uniform(n, 10.0) for n in sizes), *(geom(n) for n in sizes)]


def warming(quick: bool) -> list[CostInstance]:
    """A small problem of each type of costs."""
    return [uniform(20, 1.0), geom(20)]


def report(data: dict[str, Any], threshold: float) -> str:
    """Microseconds of a change."""
    rows = [
        [name, *(_micro(graph, code) for code in CODES)] for name, graph in data["graphs"].items()
    ]
    return page(data, section("A change", markdown(["costs", *(f"{c} us" for c in CODES)], rows)))


def _micro(graph: dict[str, Any], contender: str) -> Time | None:
    taken = time_of(graph, contender)
    return None if taken is None else Time(1e6 * taken.seconds, taken.at_least)
