"""Many dense problems at once: ours, torch-linear-assignment, and loops over SciPy and lapx.

What is timed is the whole call, warm, until the device has ended. The costs are float32. With a GPU
they are there, and the loops of the CPU get a copy that is not timed. "detr" is a list of problems
of 300 queries and 1 to 100 targets each, whose costs are those of classes, corners and overlaps.
"""

from __future__ import annotations

import importlib.util
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
from bench.report.tables import (
    markdown,
    means,
    milliseconds,
    page,
    time_of,
    times_as_long,
)

THREADS = 2
THRESHOLD = 0.0  # every batch counts
OURS, TORCH, SCIPY, LAPX = "gpumatch", "torch-linear-assignment", "scipy", "lapx"
RIVALS = (TORCH, SCIPY, LAPX)
ROUNDING = 1e-5  # by which totals may differ: some search in float32
KINDS = ("uniform", "points2", "points3", "points64", "integers", "constant")
SHAPES = ((208, 100, 300), (208, 300, 300), (256, 512, 512), (64, 1024, 1024), (16, 2048, 2048))
UNIFORM = ((208, 300, 100), (208, 300, 600), (5, 1024, 1024), (1000, 64, 64), (10000, 32, 32))
CLOUDS = (32, 4096, 4096)
IMAGES, QUERIES, MOST_TARGETS, CLASSES = 208, 300, 100, 91
ON_HOST = 2**26  # costs of a batch up to which loops on the CPU run


# -- batches -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch(KeptSeed):
    """One batch of a suite, drawn where it is needed.

    Attributes
    ----------
    family : str
        Of `KINDS`, or "detr".
    shape : (int, int, int)
        Problems, rows and columns.
    """

    family: str
    shape: tuple[int, int, int]

    seed: ClassVar[int] = 7
    suffix: ClassVar[str] = ".batch.npy"

    @property
    def name(self) -> str:
        count, rows, cols = self.shape
        return f"{self.family}-{count}x{rows}x{cols}"

    base = name

    def takes(self, contender: str) -> bool:
        """True if a contender is to be measured on it: one has no mixed sizes, and is slow."""
        if contender == TORCH:
            return self.family != "detr" and self.shape != CLOUDS
        return contender == OURS or math.prod(self.shape) <= ON_HOST

    def draw(self, xp: Any, seed: int) -> Any:
        """The costs: an array of NumPy or CuPy, or a list of them."""
        rng = xp.random.default_rng(seed)
        if self.family == "detr":
            sizes = np.random.default_rng(seed).integers(1, MOST_TARGETS + 1, self.shape[0])
            return [detr_costs(xp, rng, self.shape[1], int(size)) for size in sizes]
        if self.family == "constant":
            return xp.ones(self.shape, np.float32)
        if self.family in ("uniform", "integers"):
            costs = xp.empty(self.shape, np.float32)
            for part in costs:
                drawn = rng.random(part.shape, np.float32)
                part[:] = drawn if self.family == "uniform" else xp.floor(10 * drawn)
            return costs
        _, rows, cols = self.shape
        dimensions = int(self.family.removeprefix("points"))
        costs = xp.empty(self.shape, np.float32)
        for part in costs:
            x, y = (rng.random((side, dimensions)) for side in (rows, cols))
            squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * (x @ y.T)
            part[:] = xp.maximum(squares, 0)
        return costs


def detr_costs(xp: Any, rng: Any, queries: int, targets: int) -> Any:
    """Class probabilities, L1 distances and generalized overlaps of boxes, weighted as in DETR."""
    logits = 6 * rng.random((queries, CLASSES))
    probability = xp.exp(logits) / xp.exp(logits).sum(axis=1)[:, None]
    labels = (CLASSES * rng.random(targets)).astype(np.int64)
    boxes = [rng.random((count, 4)) * 0.5 + xp.asarray([0.25, 0.25, 0.01, 0.01]) for count in
             (queries, targets)]  # fmt: skip
    l1 = abs(boxes[0][:, None] - boxes[1]).sum(axis=2)
    (low, high) = zip(*((b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2) for b in boxes))
    areas = [(b[:, 2] * b[:, 3]) for b in boxes]
    inner = xp.maximum(
        xp.minimum(high[0][:, None], high[1]) - xp.maximum(low[0][:, None], low[1]), 0
    )
    outer = xp.maximum(high[0][:, None], high[1]) - xp.minimum(low[0][:, None], low[1])
    both, hull = inner[..., 0] * inner[..., 1], outer[..., 0] * outer[..., 1]
    union = areas[0][:, None] + areas[1] - both
    overlap = both / union - (hull - union) / hull
    return (5 * l1 - probability[:, labels] - 2 * overlap).astype(np.float32)


class Drawn:
    """A batch on the host or on the device."""

    def __init__(self, instance: Batch, seed: np.ndarray, device: str) -> None:
        self.on_device = device == "cuda"
        if self.on_device:
            import cupy

            self.xp: Any = cupy
        else:
            self.xp = np
        self.costs = instance.draw(self.xp, int(seed[0]))
        self.host: Any = None
        self.pairs: int | None = sum(min(part.shape) for part in self.costs)  # None: not known
        self.known: float | None = None  # what the first contender's rows pay
        _, rows, cols = instance.shape
        self.facts = {
            "family": instance.family,
            "group": instance.name,
            "shape": list(instance.shape),
            "rows": rows,
            "cols": cols,
            "entries": sum(part.size for part in self.costs),
        }

    def on_host(self) -> list[np.ndarray]:
        if self.host is None:
            self.host = [part.get() if self.on_device else part for part in self.costs]
        return self.host

    def wait(self) -> None:
        if self.on_device:
            self.xp.cuda.get_current_stream().synchronize()

    def total(self, columns: Any) -> tuple[float, int]:
        """What the rows pay for these columns, and how many do."""
        total, size = 0.0, 0
        for costs, own in zip(self.costs, columns):
            own = self.xp.asarray(own)[: costs.shape[0]]
            rows = (own >= 0).nonzero()[0]
            total += float(costs[rows, own[rows]].sum(dtype=np.float64))
            size += int(rows.size)
        return total, size


problem = Drawn
warming_batch = Batch("integers", (4, 40, 40))


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solver:
    """Something that solves a batch: columns of the rows of each problem."""

    name: str
    solver: Callable[[Any], Callable[[], Any]]

    def measure(self, problem: Drawn, limits: Limits) -> Result:
        call = self.solver(problem)

        def sample() -> Sample:
            problem.wait()
            begin = time.perf_counter()
            columns = call()
            problem.wait()
            seconds = time.perf_counter() - begin
            found[:] = [columns]  # to keep all would have each call ask for new memory
            return Sample(seconds, 0)

        found: list[Any] = []
        call()  # torch-linear-assignment compiles for each shape
        result = repeat(sample, limits)
        total, size = problem.total(found[-1])
        if problem.pairs is not None and size != problem.pairs:
            raise ValueError(f"{size} rows have a column; {problem.pairs} can")
        if problem.known is None:
            problem.known = total
        if not math.isclose(total, problem.known, rel_tol=ROUNDING):
            raise ValueError(f"the total is {total}, another's {problem.known}")
        return {**result, "size": size, "total": total}


def ours(problem: Drawn) -> Callable[[], Any]:
    return lambda: gm.assign(problem.costs, on_error="mark").row_to_col


def theirs(problem: Drawn) -> Callable[[], Any]:
    import torch
    from torch_linear_assignment import batch_linear_assignment

    costs = torch.from_dlpack(problem.costs)
    return lambda: problem.xp.from_dlpack(batch_linear_assignment(costs))


def scipys(problem: Drawn) -> Callable[[], Any]:
    costs = problem.on_host()

    def call() -> list[np.ndarray]:
        found = [np.full(part.shape[0], -1) for part in costs]
        for own, part in zip(found, costs):
            rows, cols = scipy.optimize.linear_sum_assignment(part)
            own[rows] = cols
        return found

    return call


def lapxs(problem: Drawn) -> Callable[[], Any]:
    import lap

    costs = problem.on_host()
    return lambda: [lap.lapjv(part, extend_cost=True)[1] for part in costs]


def contenders(device: str, threads: int) -> list[Contender]:
    """Ours, and the rivals that are installed."""
    found: list[Contender] = [Solver(OURS, ours)]
    if device == "cuda" and importlib.util.find_spec("torch_linear_assignment") is not None:
        found.append(Solver(TORCH, theirs))
    found.append(Solver(SCIPY, scipys))
    if importlib.util.find_spec("lap") is not None:
        found.append(Solver(LAPX, lapxs))
    return found


def instances(quick: bool, data: str | None) -> list[Any]:
    """Every kind of costs at every shape, uniform ones at more, and clouds of points."""
    if quick:
        return [*(Batch(kind, (3, 12, 20)) for kind in KINDS), Batch("detr", (3, 30, 0))]
    return [
        *(Batch(kind, shape) for shape in SHAPES for kind in KINDS),
        *(Batch("uniform", shape) for shape in UNIFORM),
        Batch("detr", (IMAGES, QUERIES, 0)),
        Batch("points3", CLOUDS),
    ]


def warming(quick: bool) -> list[Any]:
    return [warming_batch]


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times batch by batch, and the means of the ratios."""
    graphs = data["graphs"].values()
    names = (OURS, *RIVALS)
    rows = [
        [graph["group"], *(milliseconds(time_of(graph, name)) for name in names)]
        for graph in graphs
    ]
    return page(
        data,
        [markdown(["batch", *(f"{name} ms" for name in names)], rows)],
        means(graphs, RIVALS, OURS),
    )


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """Our times by shape, and how many times as long a rival takes: a line a kind of costs."""
    from bench.report.axes import draw_lines, panels

    graphs = {graph["group"]: graph for graph in data["graphs"].values()}
    lines: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for kind in KINDS:
        points = []
        for x, shape in enumerate(SHAPES):
            graph = graphs.get(Batch(kind, shape).name)
            ours = graph and time_of(graph, OURS)
            ratio = graph and times_as_long(graph, TORCH, OURS)
            if ours and ratio:
                points.append((x, 1e3 * ours.seconds, ratio.seconds))
        if points:
            at, seconds, ratios = zip(*points)
            lines[0][kind], lines[1][kind] = (at, seconds), (at, ratios)
    if not lines[0]:
        return {"shapes": None}
    figure, axes = panels(2)
    names = [f"{count} of\n{rows}×{cols}" for count, rows, cols in SHAPES]
    titles = "gpumatch, ms", f"{TORCH}, times as long"
    for panel, own, title in zip(axes, lines, titles):
        draw_lines(panel, own, marker="o")
        panel.set(yscale="log", title=title)
        panel.set_xticks(range(len(SHAPES)), names)
    axes[1].axhline(1, color="black", linewidth=0.8)
    return {"shapes": figure}
