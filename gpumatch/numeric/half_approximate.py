"""A matching of at least half the greatest weight, and what its duals prove, on either backend.

    1. Suitor: the heaviest edge first. Its weights are duals that prove one half.
    2. Sweeps at falling temperatures lower the duals (`cpu.general.dual_descent` has the theorem).
    3. Suitor once more: the edge of least slack first.
    4. Each part of the two matchings is given to the heavier of them.
    5. Sweeps without temperature take what is left between the duals and the weights.

With ``bound="half"`` the first step is all, and the duals are its weights.

On 56 graphs of some thousand vertices (meshes, geometric and uniform random ones, Kronecker, grids
and roads, each with weights of seven kinds) 16 sweeps bring the duals within 3 % of the fractional
optimum, and step 3 brings the matching from 0.71 to 0.98 of it at the least.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from gpumatch.contracts import Control

__all__ = ["HalfMatching", "HalfMatchingTask", "Steps", "solve"]

SOFT_SWEEPS = 16
HARD_SWEEPS = 3
WARM, COOL = 0.3, 0.05
"""The first and the last temperature, in mean weights of a matched edge."""
_LARGEST = 2.0**1022  # of the sums of duals
_ROUNDING, _SMALLEST = 1 + 2.0**-46, 2.0**-1068
"""What makes the last duals cover each edge as exact numbers.

Let d be the duals before the last sweep, and y those after it, rounded at each operation with a
unit of u = 2**-53. A sum y_u + y_v lacks less than 8 u (w + d_u + d_v) of the weight w, and
d <= 2 y (1 + 2 u). So it lacks less than 32 u of itself, or, of weights near the least positive
float, some of these. A sweep leaves duals above 0 above 0, and each edge of positive weight has an
end whose first dual is.
"""


class HalfMatchingTask(NamedTuple):
    """A graph whose matching shall weigh at least half as much as any.

    Attributes
    ----------
    indptr, indices : integer arrays
        The neighbours of each vertex in CSR; each edge is there from both ends. On the host int64
        and int32, without loops.
    weights : array
        Of the entries, finite, equal for both of an edge. On the host int64 or float64, on a device
        also int32 or float32. Edges of weights up to 0 are never matched.
    control : Control
    threads : int
    """

    indptr: Any
    indices: Any
    weights: Any
    control: Control
    threads: int = 1


class HalfMatching(NamedTuple):
    """What `solve` returns.

    Attributes
    ----------
    mate : int32 array
        The mate of each vertex; -1 unmatched.
    entry : int64 array
        An entry of the edge to it; -1 unmatched.
    dual : float64 array, optional
        Numbers >= 0 that cover each edge, as exact numbers: its ends have its weight at least. None
        if the run was stopped before there were any.
    finished : bool
        False if the run was stopped.
    """

    mate: Any
    entry: Any
    dual: Any
    finished: bool


class Steps(Protocol):
    """The steps on a backend, for one graph. Those that may be stopped then set `stopped`."""

    stopped: bool

    def match(self) -> tuple[Any, Any]:
        """Mates and entries of the matching that takes the heaviest edge first."""

    def match_by_slack(self, dual: Any, unit: float) -> tuple[Any, Any]:
        """Those of the matching that takes the edge of least slack first."""

    def size(self, mate: Any) -> int:
        """The number of edges of a matching."""

    def weights_of(self, entry: Any) -> Any:
        """The weight of the edge of each vertex, 0 without one, as float64."""

    def sweep(self, dual: Any, temperature: float) -> Any:
        """The duals after a sweep; those given if it was stopped."""

    def keep_better(self, matching: tuple[Any, Any], other: tuple[Any, Any]) -> None:
        """Give each part to the heavier of two matchings, the first of which is changed."""

    def cover(self, dual: Any, factor: float, smallest: float) -> Any:
        """Duals above 0 times a factor, plus a smallest number; the array may be changed."""


def solve(steps: Steps, control: Control, bound: str = "tight") -> HalfMatching:
    """Match at least half the greatest weight, and find duals; O(edges) a sweep.

    Parameters
    ----------
    steps : Steps
    control : Control
    bound : {"tight", "half"}
        Whether the duals are lowered, and used for a second matching.

    Raises
    ------
    ValueError
        If sums of the weights may overflow.
    """
    with control.part("matching"):
        matching = steps.match()
    matched = _record(steps, control, matching)
    if steps.stopped:
        return HalfMatching(*matching, None, False)
    dual = steps.weights_of(matching[1])
    if matched and float(dual.max()) > _LARGEST / dual.size:
        raise ValueError(f"weights up to {float(dual.max())} have sums beyond float64: scale them")
    if bound == "tight" and matched:
        dual = _tighten(steps, control, matching, dual, float(dual.sum()) / (2 * matched))
    return HalfMatching(*matching, steps.cover(dual, _ROUNDING, _SMALLEST), not steps.stopped)


def _tighten(
    steps: Steps, control: Control, matching: tuple[Any, Any], dual: Any, mean: float
) -> Any:
    temperatures = mean * np.geomspace(WARM, COOL, SOFT_SWEEPS)
    with control.part("duals"):
        for temperature in temperatures.tolist():
            dual = steps.sweep(dual, temperature)
    if steps.stopped:
        return dual
    with control.part("matching"):
        other = steps.match_by_slack(dual, max(COOL * mean, _SMALLEST))
    with control.part("parts"):
        steps.keep_better(matching, other)
    _record(steps, control, matching)
    with control.part("duals"):
        for _ in range(HARD_SWEEPS):
            dual = steps.sweep(dual, 0.0)
    return dual


def _record(steps: Steps, control: Control, matching: tuple[Any, Any]) -> int:
    matched = steps.size(matching[0])
    control.phase(found=matched, matched=matched)
    return matched
