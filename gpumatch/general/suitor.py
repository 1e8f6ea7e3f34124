"""Half-approximate weighted matching of any graph: ``algorithm="suitor"``, on the host or a device.

Arrays of a device stay there if they are canonical CSR with both entries of each edge: those of
cupyx matrices and of tuples. All other input is made a graph on the host.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from gpumatch.dispatch.backends import Choice, choose_general
from gpumatch.dispatch.registry import BackendName
from gpumatch.general.device_graph import graph_on_device, home_of, is_on_device
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.numeric.arrays import array_module, array_of
from gpumatch.numeric.half_approximate import HalfMatchingTask
from gpumatch.results.suitor import BoundedMatching
from gpumatch.running.control import Control, InterruptsStop

__all__ = ["half_matching"]

PROBLEM = "general-weights"


def half_matching(
    G: Any,
    weight: Hashable = "weight",
    *,
    triangle: str = "both",
    maximize: bool = True,
    backend: BackendName = "auto",
    threads: int = 1,
    control: Control | None = None,
    options: Mapping[str, str] | None = None,
) -> BoundedMatching:
    """Match at least half of the greatest total weight, and prove how much it is.

    Parameters
    ----------
    G, weight, triangle
        As of `gpumatch.general.maximum_weight_matching`. Edges of weights below 0 are never
        matched; with ``maximize=False``, those of weights above 0.
    maximize : bool
        Whether the greatest total is sought, or the smallest.
    backend : {"auto", "cpu", "cuda"}
    threads : int
    control : Control, optional
    options : mapping
        ``bound``: ``"tight"`` lowers the duals and improves the matching by them, ``"half"`` is
        Suitor alone.

    Returns
    -------
    BoundedMatching
        On the device of the input.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong; the message names it.

    Notes
    -----
    ``docs/algorithms/suitor.md`` describes the algorithm. Each of some twenty sweeps takes
    O(n + m); Suitor takes O(sum of squared degrees) at worst, and O(m) on random weights.
    """
    control = Control() if control is None else control
    on_device = is_on_device(G)
    with control.part("graph"):
        graph = None
        if on_device:
            graph = graph_on_device(G, triangle, weighted=True, keeps_loops=True)
        graph = weighted_of(G, weight, triangle, maximize=maximize) if graph is None else graph
    choice = choose_general(
        PROBLEM, "suitor", backend, options or {}, on_device, graph.indices.size
    )
    stats: dict[str, Any] = {**choice.names(), **choice.options}
    home = home_of(G)
    with control.part("transfer"):
        arrays = _arrays_for(choice, graph)
    indptr, indices, weights = arrays
    if not maximize:
        weights = _opposites(weights)
    task = HalfMatchingTask(indptr, indices, weights, control, threads)
    control.total = graph.order // 2
    try:
        with InterruptsStop(control) as stop:
            found = choice.search()(task)
    finally:
        if control.shows_bar:
            control.close(control.total)
    xp = array_module(found.mate)
    smaller = (found.mate > xp.arange(found.mate.size)).nonzero()[0]
    result = BoundedMatching(
        array_of(home, found.mate),
        task.weights[found.entry[smaller]],
        None if found.dual is None else array_of(home, found.dual),
        maximize=maximize,
        nodes=graph.nodes,
        stats=stats | control.statistics(),
    )
    stop.bring(result)
    return result


def _opposites(weights: Any) -> Any:
    if weights.dtype.kind == "i" and weights.size:
        least = np.iinfo(weights.dtype).min
        if int(weights.min()) == least:
            raise ValueError(f"weights: the opposite of {least} does not fit {weights.dtype}")
    return -weights


def _arrays_for(choice: Choice, graph: Graph) -> tuple[Any, Any, Any]:
    """The arrays where the algorithm is to run."""
    arrays = graph.indptr, graph.indices, graph.weights
    if choice.backend == "cuda":
        import cupy

        return tuple(array_of(cupy, array) for array in arrays)
    indptr, indices, weights = (array_of(np, array) for array in arrays)
    number = np.float64 if weights.dtype.kind == "f" else np.int64
    return indptr.astype(np.int64, copy=False), indices, weights.astype(number, copy=False)
