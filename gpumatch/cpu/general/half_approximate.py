"""The steps of `gpumatch.numeric.half_approximate` on the CPU."""

from __future__ import annotations

import numpy as np

from gpumatch.contracts import Control
from gpumatch.cpu.general import better_parts, dual_descent, suitor
from gpumatch.numeric.half_approximate import HalfMatching, HalfMatchingTask, solve

__all__ = ["HostSteps", "run"]

Matching = tuple[np.ndarray, np.ndarray]


class HostSteps:
    """The steps for a symmetric graph without loops.

    Parameters
    ----------
    indptr, indices : int64 and int32 arrays
    weights : int64 or float64 array
        Of the entries, equal for both of an edge. Those up to 0 are never matched.
    threads : int
    control : Control
    """

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        weights: np.ndarray,
        threads: int,
        control: Control,
    ) -> None:
        self._graph, self._weights, self._threads = (indptr, indices), weights, threads
        self._floats = weights.astype(np.float64, copy=False)
        self._control, self._matched = control, 0
        self.stopped = False

    def _beat(self) -> bool:
        self.stopped = self.stopped or self._control.tick(self._matched)
        return self.stopped

    def match(self) -> Matching:
        matching = suitor.match(
            *self._graph, self._weights.view(np.int64), self._threads, self._beat
        )
        self._matched = self.size(matching[0])
        return matching

    def match_by_slack(self, dual: np.ndarray, unit: float) -> Matching:
        keys = suitor.keys_of_slack(*self._graph, self._floats, dual, unit, self._threads)
        return suitor.match(*self._graph, keys, self._threads, self._beat)

    def size(self, mate: np.ndarray) -> int:
        return int(np.count_nonzero(mate >= 0)) // 2

    def weights_of(self, entry: np.ndarray) -> np.ndarray:
        weights = np.zeros(len(entry))
        matched = entry >= 0
        weights[matched] = self._floats[entry[matched]]
        return weights

    def sweep(self, dual: np.ndarray, temperature: float) -> np.ndarray:
        if self._beat():
            return dual
        lowered = dual_descent.sweep(
            *self._graph, self._floats, dual, temperature, self._threads, self._beat
        )
        return dual if lowered is None else lowered

    def keep_better(self, matching: Matching, other: Matching) -> None:
        better_parts.keep_better(self._weights, matching, other, self._beat)

    def cover(self, dual: np.ndarray, factor: float, smallest: float) -> np.ndarray:
        return dual * factor + smallest * (dual > 0)


def run(task: HalfMatchingTask, *, bound: str = "tight") -> HalfMatching:
    """Match at least half the greatest weight."""
    graph = task.indptr, task.indices, task.weights
    return solve(HostSteps(*graph, task.threads, task.control), task.control, bound)
