"""Batches and single frames on the CPU: `assign`, loops of our own and of SciPy, and lapx.

What is timed is the whole call, warm. "loop" calls our own `linear_sum_assignment` problem by
problem, which gives pairs only; `assign` gives duals and certificates too. Frames are 50×80 and are
solved one by one: without a gate, with ``cost_limit``, and with half of the pairs at inf and
``cardinality="maximum"``. SciPy has no gates. It gets a number in place of what is gated off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

import gpumatch as gm
from bench.harness import Contender
from bench.peers import is_installed
from bench.report.tables import (
    Graph,
    Time,
    markdown,
    means,
    milliseconds,
    page,
    section,
    time_of,
)
from bench.suites.batches import LAPX, OURS, SCIPY, Batch, Drawn, Solver
from gpumatch.optimize import linear_sum_assignment

THREADS = 2
THRESHOLD = 0.0  # every batch counts
TWO, LOOP = "gpumatch, all threads", "loop"
KINDS = ("uniform", "points2", "integers")
COUNTS = {8: 16_000, 16: 8000, 32: 4000, 64: 1200, 128: 400, 256: 100, 512: 32}
SEVERAL = 32  # rows from which several threads are to help
GATE = 0.5
FRAMES = (1000, 50, 80)
GATES: dict[str, dict[str, Any]] = {
    "frames": {},
    "frames-limited": {"cost_limit": GATE},
    "frames-maximum": {"cardinality": "maximum"},
}


class HostBatch(Batch):
    """A batch of one kind of costs, or of frames behind a gate."""

    def takes(self, contender: str) -> bool:
        return contender in ((OURS, SCIPY, LAPX) if self.family in GATES else
                             (OURS, TWO, LOOP, SCIPY))  # fmt: skip

    def draw(self, xp: Any, seed: int) -> Any:
        if self.family not in GATES:
            costs = super().draw(xp, seed)
            return costs.astype(np.int32) if self.family == "integers" else costs
        costs = np.random.default_rng(seed).random(self.shape)
        if self.family == "frames-maximum":
            costs[costs > GATE] = np.inf
        return costs


class OnHost(Drawn):
    """The costs of a batch, and what is asked of a frame; None where it is no frame."""

    def __init__(self, instance: Batch, seed: np.ndarray, device: str) -> None:
        super().__init__(instance, seed, "cpu")
        self.asked = GATES.get(instance.family)
        if self.asked:
            self.pairs = None  # as many as each of the others finds
        self.facts["count"] = instance.shape[0]

    def total(self, columns: Any) -> tuple[float, int]:
        """Of columns of the rows, or of rows and columns."""
        return super().total([self._by_row(own) for own in columns])

    def _by_row(self, own: Any) -> Any:
        if not isinstance(own, tuple):
            return own
        columns = np.full(self.facts["rows"], -1)
        columns[own[0]] = own[1]
        return columns


problem = OnHost
warming_batch = HostBatch("integers", (4, 40, 40))


# -- contenders ----------------------------------------------------------------------------------


def ours(threads: int) -> Callable[[OnHost], Callable[[], Any]]:
    def of(problem: OnHost) -> Callable[[], Any]:
        costs, asked = problem.costs, problem.asked
        if asked is None:
            return lambda: gm.assign(costs, threads=threads).row_to_col
        return lambda: [gm.assign(frame, **asked).row_to_col for frame in costs]

    return of


def one_by_one(problem: OnHost, solve: Callable[[np.ndarray], Any]) -> Callable[[], Any]:
    """A loop over what names rows and columns. Of frames, pairs that are gated off are left out."""
    costs = problem.costs
    # A row of a wide frame has a column without a pair left, so a limit may be paid there.
    price = GATE if "cost_limit" in (problem.asked or {}) else costs[0].size

    def gated(frame: np.ndarray) -> Any:
        off = frame > GATE
        rows, cols = solve(np.where(off, price, frame))
        is_kept = ~off[rows, cols]
        return rows[is_kept], cols[is_kept]

    solver = gated if problem.asked else solve
    return lambda: [solver(part) for part in costs]


def loop(problem: OnHost) -> Callable[[], Any]:
    return one_by_one(problem, linear_sum_assignment)


def scipys(problem: OnHost) -> Callable[[], Any]:
    return one_by_one(problem, scipy.optimize.linear_sum_assignment)


def lapxs(problem: OnHost) -> Callable[[], Any]:
    import lap

    limit = GATE if problem.asked else np.inf
    return lambda: [
        lap.lapjv(frame, extend_cost=True, cost_limit=limit)[1] for frame in problem.costs
    ]


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours with one thread and with all, a loop of our own, and the rivals that are installed."""
    found: list[Contender] = [
        Solver(OURS, ours(1)),
        Solver(TWO, ours(threads)),
        Solver(LOOP, loop),
        Solver(SCIPY, scipys),
    ]
    if is_installed("lap"):
        found.append(Solver(LAPX, lapxs))
    return found


def instances(quick: bool, data: str | None) -> list[Any]:
    """Each kind of costs at each size, and the frames."""
    counts = {8: 3, 40: 3} if quick else COUNTS
    frames = (3, 12, 20) if quick else FRAMES
    return [
        *(HostBatch(kind, (count, n, n)) for kind in KINDS for n, count in counts.items()),
        *(HostBatch(gate, frames) for gate in GATES),
    ]


def warming(quick: bool) -> list[Any]:
    return [warming_batch]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times batch by batch and frame by frame, and the means of the ratios."""
    graphs = list(data["graphs"].values())
    frames = [graph for graph in graphs if graph["family"] in GATES]
    others = [graph for graph in graphs if graph["family"] not in GATES]
    large = [graph for graph in others if graph["rows"] >= SEVERAL]
    names, rivals = (OURS, TWO, LOOP, SCIPY), (OURS, SCIPY, LAPX)
    rows = [
        [graph["group"], *(milliseconds(time_of(graph, name)) for name in names)]
        for graph in others
    ]
    of_frames = [
        [graph["family"], *(microseconds(graph, name) for name in rivals)] for graph in frames
    ]
    return page(
        data,
        section("Batches", markdown(["batch", *(f"{name} ms" for name in names)], rows)),
        means(others, (LOOP, SCIPY), OURS),
        means(large, (OURS,), TWO, f"with all threads from {SEVERAL}² on"),
        section(
            "Frames of 50×80, one by one",
            markdown(["costs", *(f"{name} µs" for name in rivals)], of_frames),
        ),
    )


def microseconds(graph: Graph, name: str) -> Time | None:
    """What one frame takes."""
    taken = time_of(graph, name)
    return None if taken is None else Time(1e6 * taken.seconds / graph["count"], taken.at_least)
