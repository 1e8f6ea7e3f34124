"""The steps of `gpumatch.numeric.half_approximate` on the GPU.

The host's side of suitor.cu, dual_descent.cu and better_parts.cu. Device memory in addition to the
graph: 21 bytes a vertex for bids, 24 for two matchings, 16 for duals. No row is copied, so a graph
may have as many edges as the device holds.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from gpumatch.contracts import Control
from gpumatch.cuda import memory
from gpumatch.cuda.kernels import BLOCK, COSTS, OFFSETS, Source, blocks_for, kernels_for
from gpumatch.cuda.structs import address
from gpumatch.cuda.surveys import count_matched
from gpumatch.numeric.half_approximate import HalfMatching, HalfMatchingTask, solve

__all__ = ["DeviceSteps", "run"]

_LANES = (4, 8, 32)
_MOST = (10, 64)
"""The mean entries of a row up to which 4 and 8 lanes read it; beyond, a warp does."""
_KINDS = {"Offset": OFFSETS, "Weight": COSTS}
_BID = "bid<{{Offset}}, {{Weight}}, {order}, {lanes}>"
_ORDERS = "kByWeight", "kBySlack", "kByDegree"
_SWEEP = "sweep<{{Offset}}, {{Weight}}, {lanes}>"
SUITOR = Source(
    "general/suitor.cu",
    (
        *(_BID.format(order=order, lanes=lanes) for order in _ORDERS for lanes in _LANES),
        *("take_mates<{Offset}>", "take_degrees<{Offset}>", "compare_weights<{Weight}>"),
    ),
    _KINDS,
    structs=("Keys<{Offset}, {Weight}>", "Bids"),
)
DUALS = Source(
    "general/dual_descent.cu",
    (*(_SWEEP.format(lanes=lanes) for lanes in _LANES), "weigh<{Weight}>", "cover"),
    _KINDS,
    structs=("Edges<{Offset}, {Weight}>",),
)
PARTS = Source(
    "general/better_parts.cu",
    ("compare<{Weight}>", "exchange_parts"),
    {"Weight": COSTS},
    structs=("Matchings",),
)

Matching = tuple[Any, Any]


class DeviceSteps:
    """The steps for a symmetric graph; loops and repeated entries do not matter.

    Parameters
    ----------
    indptr, indices : int32 or int64, and int32 arrays
    weights : int32, int64, float32 or float64 array, optional
        Of the entries, equal for both of an edge. Those up to 0 are never matched. Without any,
        all weigh 1; then there is `match` only.
    control : Control
    """

    def __init__(self, indptr: Any, indices: Any, weights: Any, control: Control) -> None:
        self._count = indptr.size - 1
        memory.require_memory(61 * self._count, "a half-approximate matching")
        self._edges = {
            "count": self._count,
            "indptr": indptr,
            "indices": indices,
            "weights": weights,
        }
        number = np.dtype(np.int32) if weights is None else weights.dtype
        kinds = {"Offset": indptr.dtype, "Weight": number}
        self._suitor, self._duals = kernels_for(SUITOR, **kinds), kernels_for(DUALS, **kinds)
        self._parts = kernels_for(PARTS, Weight=number)
        self._indptr, self._weights = indptr, weights
        self._lanes = _LANES[sum(indices.size > most * self._count for most in _MOST)]
        self._grid = (blocks_for(self._count * self._lanes),), (BLOCK,)
        self._by_vertex = (blocks_for(self._count),), (BLOCK,)
        self._degree = cp.empty(self._count, cp.uint8)
        self._suitor["take_degrees<{Offset}>"](
            *self._by_vertex,
            (
                *(np.int32(self._count), indptr),  # IN
                self._degree,  # OUT
            ),
        )
        self._control, self._matched = control, 0
        self.stopped = False

    def _beat(self) -> bool:
        self.stopped = self.stopped or self._control.tick(self._matched)
        return self.stopped

    def match(self) -> Matching:
        matching = self._match("kByDegree" if self._are_alike() else "kByWeight")
        self._matched = self.size(matching[0])
        return matching

    def match_by_slack(self, dual: Any, unit: float) -> Matching:
        return self._match("kBySlack", dual, unit)

    def _are_alike(self) -> bool:
        """True if all weights are one number above 0."""
        weights = self._weights
        if weights is None or not weights.size:
            return weights is None
        differs = cp.zeros(1, cp.int32)
        self._suitor["compare_weights<{Weight}>"](
            *((blocks_for(weights.size),), (BLOCK,)),
            (
                *(weights, np.int64(weights.size)),  # IN
                differs,  # OUT
            ),
        )
        return not int(differs[0]) and weights[0].item() > 0

    def _match(self, order: str, dual: Any = None, unit: float = 0.0) -> Matching:
        keys = self._suitor.struct("Keys")(
            edges=self._edges, degree=self._degree, dual=dual, unit=unit
        )
        name = _BID.format(order=order, lanes=self._lanes)
        bids = cp.empty(2 * self._count, cp.uint64)
        bids[: self._count].data.memset_async(0xFF, 8 * self._count)
        bids[self._count :].data.memset_async(0, 8 * self._count)
        listed, length = None, self._count
        while length and not self._beat():
            later = cp.empty(1 + length, cp.int32)
            later[:1].data.memset_async(0, 4)
            places = {"items": address(later, later.itemsize), "size": later}
            self._suitor[name](
                *self._grid,
                (
                    *(keys, _pointer(listed), np.int32(length)),  # IN
                    self._suitor.struct("Bids")(
                        suitor=bids, held=address(bids, 8 * self._count), later=places
                    ),  # IN, OUT
                ),
            )
            length = int(later[0])
            listed = later[1:]
        mate, entry = cp.empty(self._count, cp.int32), cp.empty(self._count, cp.int64)
        self._suitor["take_mates<{Offset}>"](
            *self._by_vertex,
            (
                *(np.int32(self._count), self._indptr, bids),  # IN
                *(mate, entry),  # OUT
            ),
        )
        return mate, entry

    def size(self, mate: Any) -> int:
        return count_matched(mate) // 2

    def weights_of(self, entry: Any) -> Any:
        weight = cp.empty(self._count, cp.float64)
        self._duals["weigh<{Weight}>"](
            *self._by_vertex,
            (
                *(np.int32(self._count), entry, self._weights),  # IN
                weight,  # OUT
            ),
        )
        return weight

    def sweep(self, dual: Any, temperature: float) -> Any:
        if self._beat():
            return dual
        lowered = cp.empty(self._count, cp.float64)
        self._duals[_SWEEP.format(lanes=self._lanes)](
            *self._grid,
            (
                self._duals.struct("Edges")(**self._edges),  # IN
                *(dual, np.float64(temperature)),  # IN
                lowered,  # OUT
            ),
        )
        return lowered

    def cover(self, dual: Any, factor: float, smallest: float) -> Any:
        self._duals["cover"](
            *self._by_vertex,
            (
                *(np.int32(self._count), np.float64(factor), np.float64(smallest)),  # IN
                dual,  # IN, OUT
            ),
        )
        return dual

    def keep_better(self, matching: Matching, other: Matching) -> None:
        if self._beat():
            return
        begins = cp.empty(self._count, cp.uint8)
        matchings = self._parts.struct("Matchings")(
            count=self._count,
            mate=matching[0],
            entry=matching[1],
            other=other[0],
            other_entry=other[1],
        )
        self._parts["compare<{Weight}>"](
            *self._by_vertex,
            (
                *(matchings, self._weights),  # IN
                begins,  # OUT
            ),
        )
        self._parts["exchange_parts"](
            *self._by_vertex,
            (
                matchings,  # IN, OUT
                begins,  # IN
            ),
        )


def run(task: HalfMatchingTask, *, bound: str = "tight") -> HalfMatching:
    """Match at least half the greatest weight."""
    steps = DeviceSteps(task.indptr, task.indices, task.weights, task.control)
    return solve(steps, task.control, bound)


def _pointer(listed: Any) -> Any:
    return np.uintp(0) if listed is None else listed
