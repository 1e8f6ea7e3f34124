"""Points in place of costs: the optimum from coordinates, against a matrix, POT and Sinkhorn.

What is timed is the whole call from the coordinates to the pairs or to the value, warm: where a
code needs the matrix of distances, it is made within the time. SciPy and POT are given problems
whose matrix they can hold. Codes that stop before the optimum are held against it: their *true gap*
is what their transport costs more than the proven optimum, in shares of that.

    gpumatch           from points, on the CPU or the GPU; the certificate is checked
    matrix             ours, from the matrix
    scipy              `cdist` and `linear_sum_assignment`
    pot                `ot.dist` and `ot.emd`, a network simplex
    pot lazy           `ot.solve_sample(..., lazy=True)`, its entropy EPSILON times the mean cost,
                       and at most ITERATIONS iterations
    flash-sinkhorn     `flash_sinkhorn.SamplesLoss` on a GPU, with the same entropy: both sides at
                       once, and the entropy falls to it
    alternating        the same, ITERATIONS of one side after the other, with one entropy

A gate is a `cost_limit`. SciPy and POT have none: they get the limit in place of larger costs, and
lose the pairs above it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

import gpumatch as gm
from bench.costs import CostInstance
from bench.harness import Contender, Limits, Overrun, Result, Sample, repeat
from bench.peers import in_process, is_installed, self_timed
from bench.report.tables import (
    Graph,
    markdown,
    means,
    milliseconds,
    page,
    section,
    time_of,
    times_as_long,
)
from gpumatch.costs.points import Metric
from gpumatch.dispatch.registry import BackendName
from graphs.clouds import clouds

THREADS = 2
THRESHOLD = 0.0  # every problem counts
OURS, MATRIX, ON_CPU = "gpumatch", "matrix", "gpumatch on the CPU"
SCIPY, POT, LAZY = "scipy", "pot", "pot lazy"
FLASH, ALTERNATING = "flash-sinkhorn", "alternating"
SINKHORN = (FLASH, ALTERNATING)
PEERS = (SCIPY, POT, LAZY, *SINKHORN)
EVERY = (OURS, ON_CPU, MATRIX, *PEERS)
FITS = {MATRIX: 10_000, SCIPY: 5000, POT: 5000, LAZY: 20_000}
"""Points up to which a code is asked: its matrix takes no more than 800 MB, or 200."""
EPSILON, ITERATIONS = 0.01, 100
STARTING = 300.0
"""Seconds that a peer has for its first call, on a small problem. FlashSinkhorn compiles dozens of
kernels there to find the best one, for more than a minute on the host of an H100."""
DID_NOT_START = f"did not start: its first call had not ended after {STARTING:g} s"
ROWS = 2**8
"""Rows of a plan that are made at a time."""
GATE = 5.0


# -- problems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CloudInstance(CostInstance):
    """Two clouds. `source` is the kind, the number of points and that of coordinates."""

    metric: str = "sqeuclidean"
    limit: float | None = None

    def takes(self, contender: str) -> bool:
        n = self.source[1]
        if self.limit is not None and contender in (POT, LAZY, *SINKHORN):
            return False
        if contender in SINKHORN and self.metric != "sqeuclidean":
            return False
        return super().takes(contender) and n <= FITS.get(contender, n)

    def facts(self, values: np.ndarray) -> dict[str, Any]:
        n = values.shape[1]
        return {
            "family": self.family, "group": self.group, "seed": self.seed, "rows": n,
            "entries": n * n, "dim": values.shape[2], "metric": self.metric, "limit": self.limit,
        }  # fmt: skip

    def original(self) -> np.ndarray:
        kind, n, dim = self.source
        return clouds(kind, n, dim, seed=self.seed)


class Clouds:
    """A file with two clouds, and the points where contenders want them."""

    def __init__(self, instance: CloudInstance, file: Path, device: str) -> None:
        self.file, self.metric, self.limit = file, instance.metric, instance.limit
        self.facts = instance.facts(np.load(file, mmap_mode="r"))

    def on(self, backend: str) -> Any:
        both = np.load(self.file)
        if backend != "cuda":
            return both
        import cupy

        return cupy.asarray(both)


def problem(instance: CloudInstance, file: Path, device: str) -> Clouds:
    return Clouds(instance, file, device)


# -- contenders ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FromPoints:
    """The library, from points."""

    name: str
    backend: BackendName
    threads: int

    def measure(self, problem: Clouds, limits: Limits) -> Result:
        X, Y = problem.on(self.backend)
        last: list[Any] = []

        def sample() -> Sample:
            begin = time.perf_counter()
            costs = gm.PointCosts(X, Y, cast(Metric, problem.metric))
            a = self._solve(costs, problem, limits.cap)
            seconds = time.perf_counter() - begin
            if not a.proven:
                raise Overrun
            last[:] = costs, a
            return Sample(seconds, a.size, more={"objective": a.objective})

        result = repeat(sample, limits)
        begin = time.perf_counter()
        gm.verify(*last)
        return {**result, "certificate": time.perf_counter() - begin}

    def _solve(self, costs: Any, problem: Clouds, cap: float) -> Any:
        return gm.assign(
            costs, cost_limit=problem.limit, backend=self.backend, threads=self.threads,
            time_limit=cap,
        )  # fmt: skip


class FromMatrix(FromPoints):
    """The library, from the matrix, which is made within the time."""

    def _solve(self, costs: Any, problem: Clouds, cap: float) -> Any:
        return super()._solve(costs.dense(), problem, cap)


def scipy(X: np.ndarray, Y: np.ndarray, metric: str, limit: float | None) -> Sample:
    """`scipy.spatial.distance.cdist` and `scipy.optimize.linear_sum_assignment`."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    begin = time.perf_counter()
    costs = cdist(X, Y, metric)
    rows, cols = linear_sum_assignment(costs if limit is None else np.minimum(costs, limit))
    seconds = time.perf_counter() - begin
    paid = costs[rows, cols]
    paid = paid if limit is None else paid[paid <= limit]
    return Sample(seconds, paid.size, more={"objective": math.fsum(paid.tolist())})


def pot(X: np.ndarray, Y: np.ndarray, metric: str, limit: float | None) -> Sample:
    """`ot.dist` and `ot.emd`, between uniform weights."""
    import ot

    begin = time.perf_counter()
    costs = ot.dist(X, Y, metric=metric)
    weights = np.full(len(X), 1 / len(X))
    plan = ot.emd(weights, weights, costs, numItermax=10**9)
    seconds = time.perf_counter() - begin
    return Sample(seconds, len(X), more={"reached": float((plan * costs).sum() * len(X))})


def pot_lazy(X: np.ndarray, Y: np.ndarray, metric: str, limit: float | None) -> Sample:
    """`ot.solve_sample` without a matrix; what its plan costs is computed after the clock."""
    import ot
    from scipy.spatial.distance import cdist

    some = np.random.default_rng(0).integers(0, len(X), (2, 200))
    mean = float(cdist(X[some[0]], Y[some[1]], metric).mean())
    begin = time.perf_counter()
    plan = ot.solve_sample(
        X, Y, metric=metric, reg=EPSILON * mean, lazy=True, batch_size=ROWS, tol=1e-6,
        max_iter=ITERATIONS,
    ).lazy_plan  # fmt: skip
    seconds = time.perf_counter() - begin
    paid = (
        float((plan[first : first + ROWS] * cdist(X[first : first + ROWS], Y, metric)).sum())
        for first in range(0, len(X), ROWS)
    )
    return Sample(seconds, len(X), more={"reached": math.fsum(paid) * len(X)})


def flash_sinkhorn(
    X: np.ndarray, Y: np.ndarray, metric: str, limit: float | None, *, alternates: bool = False
) -> Sample:
    """`flash_sinkhorn.SamplesLoss`, from tensors on the GPU; its value is that of its duals."""
    import torch
    from flash_sinkhorn import SamplesLoss

    ours, others = (torch.from_numpy(side).float().cuda() for side in (X, Y))
    mean = float(((ours - others.roll(1, 0)) ** 2).sum(1).mean())
    steps: dict[str, Any] = {"blur": math.sqrt(EPSILON * mean)}
    if alternates:
        steps = {
            "backend": "alternating", "use_epsilon_scaling": False,
            "eps": EPSILON * mean, "n_iters": ITERATIONS,
        }  # fmt: skip
    loss = SamplesLoss(loss="sinkhorn", debias=False, **steps)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    value = float(loss(ours, others))
    seconds = time.perf_counter() - begin
    return Sample(seconds, len(X), more={"reached": value * len(X)})


CODES: dict[str, Callable[..., Sample]] = {
    SCIPY: scipy,
    POT: pot,
    LAZY: pot_lazy,
    FLASH: flash_sinkhorn,
    ALTERNATING: functools.partial(flash_sinkhorn, alternates=True),
}
_MODULES = {SCIPY: "scipy", POT: "ot", LAZY: "ot", **dict.fromkeys(SINKHORN, "flash_sinkhorn")}


_has_started: dict[str, bool] = {}
"""Peers that were called, and whether a call of them has ever ended."""


@dataclass(frozen=True)
class CloudPeer:
    """A peer by its name in `CODES`.

    If its first call has not ended after `STARTING` seconds, it is not called again.
    """

    name: str

    @property
    def installed(self) -> bool:
        return is_installed(_MODULES[self.name])

    def measure(self, problem: Clouds, limits: Limits) -> Result:
        if not _has_started.get(self.name, True):
            raise RuntimeError(DID_NOT_START)
        is_first = self.name not in _has_started
        if is_first:
            limits = dataclasses.replace(limits, cap=STARTING)
        given = self.name, problem.file, problem.metric, problem.limit
        try:
            result = in_process(_call, given, limits, self_timed)
        except Overrun:
            if is_first:
                _has_started[self.name] = False
                raise RuntimeError(DID_NOT_START) from None
            raise
        _has_started[self.name] = True
        return result


def _call(given: tuple[str, Path, str, float | None]) -> Callable[[], Sample]:
    """In the peer's process: a call that solves the problem and times itself."""
    name, file, metric, limit = given
    X, Y = np.load(file)
    return lambda: CODES[name](X, Y, metric, limit)


def contenders(device: str, threads: int) -> list[Contender]:
    """The library from points and from matrices, and the peers that are installed."""
    if device == "cuda":
        own = [FromPoints(OURS, "cuda", threads), FromPoints(ON_CPU, "cpu", threads)]
        names = [*SINKHORN]
    else:
        own = [FromPoints(OURS, "cpu", threads), FromMatrix(MATRIX, "cpu", threads)]
        names = [SCIPY, POT, LAZY]
    return [*own, *(peer for peer in map(CloudPeer, names) if peer.installed)]


def instances(quick: bool, data: str | None) -> list[CloudInstance]:
    """Each family at each size: plane, space, 64 dimensions, and cells behind a gate."""
    if quick:
        return [case for n in (40,) for case in of_size(n)]
    return [
        *(case for n in (1000, 2000, 5000, 10_000) for case in of_size(n)),
        *(case for case in of_size(100_000) if case.source[2] <= 3),
    ]


def of_size(n: int) -> list[CloudInstance]:
    """The problems with this many points."""

    def drawn(kind: str, dim: int, metric: str = "sqeuclidean") -> CloudInstance:
        space = {2: "plane", 3: "space"}.get(dim, f"{dim}-d")
        family = f"{space} {kind}" + ("" if metric == "sqeuclidean" else f" {metric}")
        return CloudInstance(f"{family}-{n}", family, (kind, n, dim), metric=metric)

    cells = CloudInstance(f"cells-{n}", "cells", ("cells", n, 3), metric="euclidean", limit=GATE)
    return [
        *(drawn(kind, dim) for dim in (2, 3) for kind in ("uniform", "clustered", "shifted")),
        drawn("moons", 2),
        drawn("uniform", 2, "euclidean"),
        *(drawn(kind, 64) for kind in ("normal", "uniform")),
        cells,
    ]


def warming(quick: bool) -> list[CloudInstance]:
    """One of each kind, so many that no matrix is made."""
    return of_size(40 if quick else 1100)


# -- report --------------------------------------------------------------------------------------


def report(data: dict[str, Any], threshold: float) -> str:
    """Times problem by problem, true gaps, and the means of the ratios."""
    graphs = list(data["graphs"].values())
    every = [code for code in EVERY if any(code in graph["results"] for graph in graphs)]
    exact = [code for code in every if code not in (POT, LAZY, *SINKHORN)]
    others = [code for code in every if code not in exact]
    rows = [
        [
            graph["group"],
            *(milliseconds(time_of(graph, code)) for code in exact),
            *(part for code in others for part in (milliseconds(time_of(graph, code)),
                                                   true_gap(graph, code))),
            certificate(graph),
        ]
        for graph in graphs
    ]  # fmt: skip
    header = ["clouds", *(f"{code} ms" for code in exact)]
    header += [f"{code} {what}" for code in others for what in ("ms", "true gap")]
    header += ["certificate s"]
    return page(
        data,
        section("From coordinates to the optimum", markdown(header, rows)),
        means(graphs, [code for code in every if code != OURS], OURS, ratio=times_as_long),
    )


def true_gap(graph: Graph, code: str) -> str:
    """By how much a code's transport costs more than the proven optimum, in shares of that."""
    best = graph["results"].get(OURS, {}).get("objective")
    reached = graph["results"].get(code, {}).get("reached")
    if not best or reached is None:
        return ""
    return f"{reached / best - 1:.2%}"


def certificate(graph: Graph) -> str:
    """The seconds that the certificate of ours took to be checked."""
    seconds = graph["results"].get(OURS, {}).get("certificate")
    return "" if seconds is None else f"{seconds:.2f}"
