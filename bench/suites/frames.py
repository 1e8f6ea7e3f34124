"""Frames of a tracker behind a gate: pairs only, ours beside lapcpp, laprust, lapx and SciPy.

Many different frames of one size are solved in a loop, or handed over at once. Half of the tracks
and detections of "points" and "boxes" are the same objects a moment later; a pair costs a squared
distance, or 1 less the intersection over union, which is 1 for most. A gate leaves a share of all
pairs. What is timed is processor time of the whole calls, warm, on one thread: a loop of calls of
microseconds says little by the clock if others use the machine. "all threads" is by the clock.
SciPy has no gate, so it gets the limit in place of what costs more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.optimize

import gpumatch as gm
from bench.harness import Contender, Limits, Result, Sample, repeat
from bench.instances import KeptSeed
from bench.peers import is_installed
from bench.report.tables import Graph, Time, markdown, means, page, section, time_of
from gpumatch.interop import lap as our_lap
from gpumatch.optimize import linear_sum_assignment, linear_sum_assignment_batch

THREADS = 2
THRESHOLD = 0.0  # every size counts
OURS, LAPJV, ASSIGN = "gpumatch", "gpumatch lapjv", "gpumatch assign"
AT_ONCE, ALL = "gpumatch, at once", "gpumatch, at once, all threads"
LAPCPP, LAPRUST, LAPX, SCIPY = "lapcpp", "laprust", "lapx", "scipy"
LAPCPP_AT_ONCE, LAPRUST_AT_ONCE = "lapcpp, at once", "laprust, at once"
IN_LOOPS = (OURS, LAPJV, ASSIGN, LAPCPP, LAPRUST, LAPX, SCIPY)
ONES = (AT_ONCE, ALL, LAPCPP_AT_ONCE, LAPRUST_AT_ONCE)
ROUNDING = 1e-5  # by which totals may differ: rivals search float32 in float32

KINDS = ("uniform", "points", "boxes")
SHAPES = ((5, 5), (10, 15), (30, 30), (50, 80), (80, 50), (100, 100), (200, 300), (300, 300))
SHARES = (0.02, 0.1, 0.3, 1.0)
DTYPES = ("float64", "float32")
COSTS = 2**20  # of all frames of one size, about
RAGGED = (30, 80)  # sides of frames of many sizes


# -- frames --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frames(KeptSeed):
    """Frames of one kind, size and gate, drawn where they are needed.

    Attributes
    ----------
    kind : str
        Of `KINDS`, or "ragged".
    shape : (int, int)
        Rows and columns; the least and the most of both if the frames are ragged.
    share : float
        Pairs that the gate leaves.
    dtype : str
    count : int
        How many frames.
    """

    kind: str
    shape: tuple[int, int]
    share: float
    dtype: str
    count: int

    seed: ClassVar[int] = 11
    suffix: ClassVar[str] = ".frames.npy"

    @property
    def name(self) -> str:
        rows, cols = self.shape
        return f"{self.kind}-{rows}x{cols}-{self.share:g}-{self.dtype}"

    base = name

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it: others take no ragged frames at once."""
        return self.kind != "ragged" or contender not in (LAPCPP_AT_ONCE, LAPRUST_AT_ONCE)

    def draw(self, seed: int) -> list[np.ndarray]:
        """The costs of each frame."""
        rng = np.random.default_rng(seed)
        drawn = {"uniform": _uniform, "points": _points}.get(self.kind, _boxes)
        sides = np.full((self.count, 2), self.shape)
        if self.kind == "ragged":
            sides = rng.integers(*self.shape, (self.count, 2), endpoint=True)
        return [drawn(rng, *pair).astype(self.dtype) for pair in sides.tolist()]


def _uniform(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return rng.random((rows, cols))


def _moved(rng: np.random.Generator, rows: int, cols: int, step: float) -> tuple[Any, Any]:
    """Places of tracks, and of detections of which half are tracks that have moved a little."""
    field = math.sqrt(max(rows, cols))
    one, other = (field * rng.random((side, 2)) for side in (rows, cols))
    same = min(rows, cols) // 2
    other[:same] = one[:same] + step * rng.standard_normal((same, 2))
    return one, other[rng.permutation(cols)]


def _points(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    one, other = _moved(rng, rows, cols, 0.2)
    return ((one[:, None] - other) ** 2).sum(axis=2)


def _boxes(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    """1 less the intersection over union of boxes whose sides are a half to one unit."""
    places = _moved(rng, rows, cols, 0.05)
    (low, high) = zip(*((place, place + rng.uniform(0.5, 1, place.shape)) for place in places))
    inner = np.minimum(high[0][:, None], high[1]) - np.maximum(low[0][:, None], low[1])
    both = np.maximum(inner, 0).prod(axis=2)
    areas = [(top - bottom).prod(axis=1) for bottom, top in zip(low, high)]
    return 1 - both / (areas[0][:, None] + areas[1] - both)


class Drawn:
    """Frames and their gate."""

    def __init__(self, instance: Frames, seed: np.ndarray, device: str) -> None:
        self.frames = instance.draw(int(seed[0]))
        costs = np.sort(np.concatenate([frame.ravel() for frame in self.frames]))
        self.limit = float(costs[min(int(instance.share * costs.size), costs.size - 1)])
        self.known: float | None = None  # what the first contender's pairs save
        self.facts = {
            "family": instance.kind,
            "group": instance.name,
            "rows": instance.shape[0],
            "cols": instance.shape[1],
            "share": instance.share,
            "dtype": instance.dtype,
            "count": len(self.frames),
            "entries": int(costs.size),
        }

    def stacked(self) -> Any:
        """All frames in one array, or in a list if they are ragged."""
        shapes = {frame.shape for frame in self.frames}
        return np.stack(self.frames) if len(shapes) == 1 else self.frames

    def saved(self, found: Any) -> tuple[float, int]:
        """What the pairs cost below the limit, and how many do: nothing says which cost it."""
        total, size = 0.0, 0
        for frame, (rows, cols) in zip(self.frames, found):
            total += float((self.limit - frame[rows, cols].astype(float)).sum())
            size += int((frame[rows, cols] < self.limit).sum())
        return total, size


problem = Drawn


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solver:
    """Something that names the pairs of each frame; timed by a clock."""

    name: str
    solver: Callable[[Any], Callable[[], Any]]
    clock: Callable[[], float] = time.process_time

    def measure(self, problem: Drawn, limits: Limits) -> Result:
        call = self.solver(problem)

        def sample() -> Sample:
            begin = self.clock()
            pairs = call()
            seconds = self.clock() - begin
            found[:] = [pairs]
            return Sample(seconds, 0)

        found: list[Any] = []
        result = repeat(sample, limits)
        saved, size = problem.saved(map(_as_pairs, found[-1]))
        if problem.known is None:
            problem.known = saved
        if not math.isclose(saved, problem.known, rel_tol=ROUNDING, abs_tol=1e-9):
            raise ValueError(f"pairs save {saved}, another's {problem.known}")
        return {**result, "size": size, "saved": saved}


def _as_pairs(found: Any) -> Any:
    """Rows and columns, of those or of mates of the rows."""
    if isinstance(found, tuple):
        return found
    return (found >= 0).nonzero()[0], found[found >= 0]


def each(solve: Callable[[np.ndarray, float], Any]) -> Callable[[Drawn], Callable[[], Any]]:
    """A loop over the frames."""

    def of(problem: Drawn) -> Callable[[], Any]:
        frames, limit = problem.frames, problem.limit
        return lambda: [solve(frame, limit) for frame in frames]

    return of


def at_once(threads: int) -> Callable[[Drawn], Callable[[], Any]]:
    def of(problem: Drawn) -> Callable[[], Any]:
        frames, limit = problem.stacked(), problem.limit
        return lambda: linear_sum_assignment_batch(frames, cost_limit=limit, threads=threads)

    return of


def theirs_at_once(module: Any) -> Callable[[Drawn], Callable[[], Any]]:
    def of(problem: Drawn) -> Callable[[], Any]:
        costs, limit = problem.stacked(), problem.limit
        return lambda: list(
            zip(*module.lapjv_batch(costs, cost_limit=limit, return_cost=False, n_threads=1))
        )

    return of


def _scipys(frame: np.ndarray, limit: float) -> Any:
    rows, cols = scipy.optimize.linear_sum_assignment(np.minimum(frame, limit))
    is_kept = frame[rows, cols] <= limit
    return rows[is_kept], cols[is_kept]


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours in a loop and at once, and the rivals that are installed."""
    found: list[Contender] = [
        Solver(OURS, each(lambda frame, limit: linear_sum_assignment(frame, False, limit))),
        Solver(LAPJV, each(lambda frame, limit: our_lap.lapjv(frame, True, limit)[1])),
        Solver(ASSIGN, each(lambda frame, limit: gm.assign(frame, cost_limit=limit).row_to_col)),
        Solver(AT_ONCE, at_once(1)),
        Solver(ALL, at_once(threads), time.perf_counter),
    ]
    if is_installed("lapcpp"):
        import lapcpp

        found.append(Solver(LAPCPP, each(lambda f, limit: lapcpp.lapjv(f, True, limit, False))))
        found.append(Solver(LAPCPP_AT_ONCE, theirs_at_once(lapcpp)))
    if is_installed("laprust"):
        import laprust

        found.append(Solver(LAPRUST, each(lambda f, limit: laprust.lapjv(f, True, limit, False))))
        found.append(Solver(LAPRUST_AT_ONCE, theirs_at_once(laprust)))
    if is_installed("lap"):
        import lap

        found.append(Solver(LAPX, each(lambda frame, limit: lap.lapjv(frame, True, limit)[1])))
    return [*found, Solver(SCIPY, each(_scipys))]


def instances(quick: bool, data: str | None) -> list[Any]:
    """Each kind at each size, gate and dtype, and ragged boxes."""
    if quick:
        return [Frames(kind, (4, 6), 0.3, "float64", 3) for kind in (*KINDS, "ragged")]
    return [
        *(
            Frames(kind, shape, share, dtype, max(4, min(500, COSTS // math.prod(shape))))
            for dtype in DTYPES
            for kind in KINDS
            for shape in SHAPES
            for share in SHARES
        ),
        *(Frames("ragged", RAGGED, share, "float64", 300) for share in (0.02, 0.1)),
    ]


def warming(quick: bool) -> list[Any]:
    return [Frames("boxes", (5, 9), 0.3, dtype, 3) for dtype in DTYPES]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Microseconds a frame, and the means of the ratios."""
    graphs = list(data["graphs"].values())
    tables = [
        section(
            title, markdown(["frames", *(f"{name} µs" for name in names)], _rows(graphs, names))
        )
        for title, names in (("One by one", IN_LOOPS), ("At once", ONES))
    ]
    rivals = (LAPCPP, LAPRUST, LAPX, SCIPY)
    return page(
        data, *tables, means(graphs, rivals, OURS),
        means(graphs, (LAPCPP_AT_ONCE, LAPRUST_AT_ONCE), AT_ONCE),
    )  # fmt: skip


def _rows(graphs: list[Graph], names: tuple[str, ...]) -> list[list[Any]]:
    return [[graph["group"], *(microseconds(graph, name) for name in names)] for graph in graphs]


def microseconds(graph: Graph, name: str) -> Time | None:
    """What one frame takes."""
    taken = time_of(graph, name)
    return None if taken is None else Time(1e6 * taken.seconds / graph["count"], taken.at_least)
