"""Maximum b-matchings: the requests of `maximum_matching` that have capacities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import BMatchingTask
from gpumatch.dispatch.arguments import check_one_of
from gpumatch.dispatch.registry import B_MATCHING, load
from gpumatch.numeric.arrays import array_of, as_array, first_true, index_array
from gpumatch.results.b_matching import BMatching
from gpumatch.running.control import Control, attach_result

__all__ = ["solve"]

MOST = 2**62
"""The largest capacity."""


def solve(
    given: BipartiteGraph,
    row_capacity: Any,
    col_capacity: Any,
    control: Control,
    *,
    algorithm: str,
    init: str,
    backend: str,
    initial: Any,
) -> BMatching:
    """A maximum b-matching of a graph on the host, or on a device if ``backend`` is ``"cpu"``.

    Parameters
    ----------
    given : BipartiteGraph
    row_capacity, col_capacity : int, array, mapping of nodes, or None for 1
    control : Control
    algorithm, init, backend, initial
        As in `gpumatch.maximum_matching`.
    """
    _check_names(algorithm, init, backend, on_device=given.on_device)
    capacities = (
        _capacities(row_capacity, "row_capacity", given.nrows, given.row_labels),
        _capacities(col_capacity, "col_capacity", given.ncols, given.col_labels),
    )
    with control.part("transfer"):
        graph = given.to_host()
    task = _task(graph, capacities, initial, control)
    control.total = min(int(_useful(*side).sum()) for side in zip(capacities, _degrees(graph)))
    size = int(np.count_nonzero(task.is_taken))
    stats = {"algorithm": "engine", "backend": "cpu", "start_size": size}
    cover = None
    try:
        with control.part("search"):
            cover = None if control.tick(size) else load(B_MATCHING)(task)
    except KeyboardInterrupt as exc:
        attach_result(exc, _result(given, task, capacities, None, stats | control.statistics()))
        raise
    finally:
        if control.shows_bar:
            control.close(int(np.count_nonzero(task.is_taken)))
    return _result(given, task, capacities, cover, stats | control.statistics())


# -- arguments -------------------------------------------------------------------------------------


def _check_names(algorithm: str, init: str, backend: str, *, on_device: bool) -> None:
    check_one_of("algorithm of a b-matching", algorithm, ("auto", "engine"))
    check_one_of("init of a b-matching", init, ("auto", "cheap"))
    check_one_of("backend of a b-matching", backend, ("auto", "cpu"))
    if on_device and backend == "auto":
        raise ValueError(
            "b-matchings are found by the CPU: pass backend='cpu' to copy the graph to the host"
        )


def _capacities(given: Any, name: str, length: int, labels: list[Any] | None) -> np.ndarray:
    """The capacities of a side as an int64 array."""
    if isinstance(given, Mapping):
        if labels is None:
            raise TypeError(f"{name}: a mapping is for the nodes of a networkx graph only")
        stray = next((node for node in given if node not in set(labels)), None)
        if stray is not None:
            raise ValueError(f"{name}: {stray!r} is no node of this side")
        given = [given.get(node, 1) for node in labels]
    values = array_of(np, as_array(1 if given is None else given, name))
    values = index_array(values.reshape(-1) if values.ndim == 0 else values, name)
    if values.size != length and (values.size != 1 or np.ndim(given) != 0):
        raise ValueError(
            f"{name} must be a number, or an array of length {length}; got length {values.size}"
        )
    stray = first_true((values < 0) | (values > MOST))
    if stray is not None:
        raise ValueError(f"{name} must be in [0, 2**62]; number {stray} is {int(values[stray])}")
    return np.broadcast_to(values.astype(np.int64), (length,)).copy()


def _task(
    graph: BipartiteGraph, capacities: tuple[np.ndarray, np.ndarray], initial: Any, control: Control
) -> BMatchingTask:
    """The task to begin with, which has the edges of `initial`."""
    rooms = capacities[0].copy(), capacities[1].copy()
    graph.indptr  # noqa: B018  edges are numbered by rows from here on
    is_taken = np.zeros(graph.nnz, bool)
    if initial is not None:
        rows, cols = _initial_edges(initial)
        for side, ends, room in zip(("row", "column"), (rows, cols), rooms):
            stray = first_true((ends < 0) | (ends >= room.size))
            if stray is not None:
                raise ValueError(f"initial: there is no {side} {int(ends[stray])}")
        places, are_edges = graph.find(rows, cols)
        stray = first_true(~are_edges)
        if stray is not None:
            raise ValueError(
                f"initial: row {int(rows[stray])} and column {int(cols[stray])} are no edge"
            )
        is_taken[places] = True
        if np.count_nonzero(is_taken) != places.size:
            raise ValueError("initial has an edge twice")
        for side, ends, room in zip(("row", "column"), (rows, cols), rooms):
            room -= np.bincount(ends, minlength=room.size)
            stray = first_true(room < 0)
            if stray is not None:
                raise ValueError(f"initial: {side} {stray} has more edges than its capacity")
    return BMatchingTask(graph, is_taken, *rooms, control)


def _initial_edges(initial: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the columns of edges, of a result or of two arrays."""
    is_result = hasattr(initial, "row_ind") and hasattr(initial, "col_ind")
    pair = (initial.row_ind, initial.col_ind) if is_result else initial
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError("initial of a b-matching must be a result, or a pair of rows and columns")
    rows, cols = (array_of(np, index_array(side, "initial")) for side in pair)
    if rows.size != cols.size:
        raise ValueError(f"initial has {rows.size} rows and {cols.size} columns")
    return rows.astype(np.int64), cols.astype(np.int64)


def _degrees(graph: BipartiteGraph) -> tuple[np.ndarray, np.ndarray]:
    return np.diff(graph.indptr), np.bincount(graph.indices, minlength=graph.ncols)


def _useful(capacity: np.ndarray, degree: np.ndarray) -> np.ndarray:
    return np.minimum(capacity, degree)


# -- results ---------------------------------------------------------------------------------------


def _result(
    given: BipartiteGraph,
    task: BMatchingTask,
    capacities: tuple[np.ndarray, np.ndarray],
    cover: tuple[np.ndarray, np.ndarray] | None,
    stats: dict[str, Any],
) -> BMatching:
    """The BMatching, in arrays like the caller's."""
    places = np.flatnonzero(task.is_taken)
    rows = np.searchsorted(task.graph.indptr, places, side="right") - 1
    cols = task.graph.indices[places].astype(np.int64)
    xp = given.xp
    return BMatching(
        (array_of(xp, rows), array_of(xp, cols)),
        (array_of(xp, capacities[0]), array_of(xp, capacities[1])),
        None if cover is None else tuple(array_of(xp, np.flatnonzero(part)) for part in cover),
        (given.row_labels, given.col_labels),
        stats,
    )
