"""Duals that bound what any matching weighs, lowered by sweeps over all vertices at once.

Numbers y_v >= 0 with y_u + y_v >= w for each edge {u, v} of weight w bound every matching: each of
its edges has two ends of its own, so it weighs at most the sum of all y. Let y_v be what the
matched edge of v weighs, or 0. Of a locally dominant matching these cover all edges, and their sum
is twice its weight. A sweep at temperature T > 0 changes them all at once:

    y_v  <-  (y_v + T log(1 + sum over the edges of exp((w - y_u) / T))) / 2

T log(sum of exp) is at least w - y_u for each edge. So the new y_u + y_v is at least w again, at
any temperature. The fixed point is the optimum of a smoothed linear program (Sinkhorn's, for
graphs), which exceeds the one without odd sets by at most T log(degree + 1) a vertex. So the
temperature falls from sweep to sweep. A sweep at T = 0 takes the greatest w - y_u alone, which
raises no dual. Sweeps at 0 only would stop far from the optimum, where pairs of duals would have to
change together: on a Delaunay mesh with equal weights at 1.32 times the optimum, where 16 sweeps at
falling temperatures reach 1.02.

Encodings
    weights[e]    float64; entries up to 0 need no cover

Reference: Cuturi, *Sinkhorn distances*, NIPS 2013, for the smoothing; Preis, *Linear time
1/2-approximation algorithm for maximum weighted matching in general graphs*, STACS 1999.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from gpumatch.cpu.matching.sides import blocks
from gpumatch.cpu.numba_tools.compiled import inlined, kernel
from gpumatch.cpu.numba_tools.workers import Workers

__all__ = ["sweep"]

_NEGLIGIBLE = 20.0  # temperatures; beyond, a term is below 3e-9


@inlined
def _exponential(x):
    """exp(x) for x <= 0, as (1 + y + y^2 / 2)^256 with y = x / 256: without a branch.

    The relative error is about x^3 / 393,216, so 0.3 % at -10. No bound depends on it, because a
    sweep lowers no dual below the greatest w - y_u.
    """
    y = max(x / 256, -0.1)
    power = 1 + y + 0.5 * y * y
    for _ in range(8):
        power *= power
    return power


@kernel
def _sweep(first, last, indptr, indices, weights, dual, temperature, lowered):
    scale = min(1 / temperature, 1e300) if temperature > 0 else 0.0
    for v in range(first, last):
        own = dual[v]
        top, total = -own, _exponential(-own * scale)
        for e in range(indptr[v], indptr[v + 1]):
            excess = weights[e] - own - dual[indices[e]]
            top = max(top, excess)
            total += _exponential(excess * scale)
        if top > -_NEGLIGIBLE * temperature:  # else only the greatest term counts
            top = max(top, temperature * math.log(total))
        lowered[v] = own + 0.5 * top


def sweep(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    dual: np.ndarray,
    temperature: float,
    threads: int,
    beat: Callable[[], bool],
) -> np.ndarray | None:
    """The duals after a sweep of duals that cover all edges; None if `beat` has stopped it."""
    lowered = np.empty_like(dual)
    ranges = [*blocks(indptr)]

    def work_from(begin: int, k: int) -> None:
        _sweep(
            *ranges[begin + k], indptr, indices, weights, dual, temperature,  # IN
            lowered,  # OUT
        )  # fmt: skip

    with Workers(threads, len(indices)) as workers:
        for begin in range(0, len(ranges), workers.threads):
            if begin and beat():
                return None
            count = min(workers.threads, len(ranges) - begin)
            workers.deal(functools.partial(work_from, begin), count)
    return lowered
