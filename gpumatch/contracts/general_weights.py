"""The contract of algorithms for general weighted matching: what they receive and return.

Such an algorithm is a function

    solve(task: GeneralWeightTask) -> GeneralWeightSolution

The problem
-----------
A graph has vertices 0 to n - 1 and edges with integer weights w. A matching is a set of edges that
share no vertex. With L the `level`,

    maximise    2 * (sum of the weights of the matching)  +  L * (number of unmatched vertices)

The front door has turned the caller's problem into this one: weights to be minimised are negated,
floats are counted in a power of two, and a level far below 0 asks for as many edges as possible.

The proof
---------
With a dual u_v of each vertex, and a dual z_B of each set B of a family of odd sets of vertices,

    u_i + u_j + (sum of z_B over the sets with i and j)  >=  2 w_ij    for every edge
    u_v >= L,    z_B >= 0

Equality in the first line for matched edges, u_v = L for unmatched vertices, and (|B| - 1) / 2
edges of the matching within each B with z_B > 0, prove the matching optimal: the maximum is
sum of u_v + sum of z_B (|B| - 1) / 2. All duals are integers. The family is laminar: two sets are
disjoint, or one of them contains the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpumatch.contracts import AssignmentTask, Control, Costs

__all__ = [
    "DeviceHelp",
    "GeneralWeightSolution",
    "GeneralWeightSolver",
    "GeneralWeightStart",
    "GeneralWeightTask",
    "OddSets",
]


class OddSets(NamedTuple):
    """A laminar family of odd sets of vertices, each with a dual.

    Attributes
    ----------
    vertices : int32 array
        An order of the vertices that are in some set, each once.
    begin, end : int64 arrays
        Set k has the vertices from ``begin[k]`` to ``end[k]`` of that order.
    dual : int64 or float64 array
        The dual of each set.
    """

    vertices: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    dual: np.ndarray


class GeneralWeightStart(NamedTuple):
    """Where an algorithm may begin.

    Attributes
    ----------
    mate : int32 array
        The mate that each vertex is to have, which may be that of another one, too; -1 none. Edges
        that are not tight by the duals are not used.
    vertex_dual : int64 or float64 array
        Numbers near duals of doubled weights. They need not be feasible.
    """

    mate: np.ndarray
    vertex_dual: np.ndarray


class DeviceHelp(NamedTuple):
    """What an algorithm of a device is given in addition.

    Attributes
    ----------
    cover_costs : callable
        Of a type, int64 or float64, the negated weights as costs of the double cover.
    reach : callable
        ``reach(run, task)`` assigns the double cover as the level asks for, with an algorithm for
        full problems. False if it was stopped. If the level is below 0, as many rows as possible
        get a column, and the solution has a cover that shows it.
    is_rounded : bool
        True if the weights are floats that were counted. Then duals may be rounded, by half of what
        `gpumatch.numeric.gaps.allowance_of` allows.
    fallback : callable
        The algorithm of the host. It goes on from a start, or begins if it is given None.
    """

    cover_costs: Callable[[Any], Costs]
    reach: Callable[[Callable[[AssignmentTask], bool], AssignmentTask], bool]
    is_rounded: bool
    fallback: Callable[[GeneralWeightStart | None], GeneralWeightSolution]


@dataclasses.dataclass(frozen=True)
class GeneralWeightTask:
    """A general weighted matching problem. An algorithm changes no array.

    Attributes
    ----------
    indptr : int64 array of length n + 1
    indices : int32 array
        The neighbours of each vertex, sorted. Each edge is there from both ends, none twice, and
        none joins a vertex to itself.
    weights : int64 array
        The weight of each entry of `indices`.
    level : int
        What an unmatched vertex gains, at most 0. With W the largest magnitude of a weight,
        ``8 * W + 4 * abs(level) < 2**62``.
    control : Control
        ``control.tick(edges)`` is called at least every half second of work.
    threads, seed : int
        As in `gpumatch.contracts.MatchingTask`.
    start : GeneralWeightStart, optional
        For an algorithm of the host.
    device : DeviceHelp, optional
        For an algorithm of a device. Then the arrays are there, and offsets may be int32.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    level: int
    control: Control
    threads: int = 1
    seed: int = 0
    start: GeneralWeightStart | None = None
    device: DeviceHelp | None = None


@dataclasses.dataclass
class GeneralWeightSolution:
    """What an algorithm for a `GeneralWeightTask` returns, on the host.

    Attributes
    ----------
    mate : int32 array of length n
        The mate of each vertex, -1 if it is unmatched.
    vertex_dual : int64 array of length n
    odd_sets : OddSets
        The sets with a dual above 0. The inequalities of the proof hold wherever the run ends; the
        equalities for unmatched vertices hold if `is_optimal`.
    is_optimal : bool
        True if the algorithm has ended by itself, False if the control has stopped it.
    stats : dict
        Counts of the run, with names of the algorithm's own.
    entries : int64 array, optional
        The places of the matched edges in the graph's arrays, one for each, if the graph is on a
        device.
    """

    mate: np.ndarray
    vertex_dual: np.ndarray
    odd_sets: OddSets
    is_optimal: bool
    stats: dict[str, Any] = dataclasses.field(default_factory=dict)
    entries: Any = None


GeneralWeightSolver = Callable[[GeneralWeightTask], GeneralWeightSolution]
"""The type of an algorithm for general weighted matching."""
