"""The front door to maximum cardinality matching of graphs that need not be bipartite."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.contracts import GeneralMatchingTask
from gpumatch.dispatch.arguments import checked_flag, checked_seed, checked_threads, refuse_unknown
from gpumatch.dispatch.backends import Choice, choose_general
from gpumatch.dispatch.registry import DECOMPOSE, DOUBLE_COVERS, BackendName, load
from gpumatch.general.device_graph import graph_on_device, home_of, is_on_device
from gpumatch.general.graph import Graph, pattern_of
from gpumatch.numeric.arrays import array_of, count_matched, first_true, index_array
from gpumatch.results.general import GeneralMatching
from gpumatch.running.control import Callback, Control, attach_result, with_interrupts_result

__all__ = ["initial_mate", "maximum_matching"]

PROBLEM = "general-matching"


@with_interrupts_result
def maximum_matching(
    G: Any,
    *,
    triangle: str = "both",
    algorithm: str = "auto",
    backend: BackendName = "auto",
    initial: Any = None,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    **options: str,
) -> GeneralMatching:
    """Match as many vertices of an undirected graph in pairs as its edges allow.

    Parameters
    ----------
    G : sparse or dense matrix, edge list, or networkx graph
        - A square matrix of SciPy or cupyx, or a tuple ``(indptr, indices, shape)``. Stored entries
          are edges, stored zeros too; values are not looked at.
        - A square dense array or tensor. Nonzero entries are edges.
        - An integer array of shape (m, 2) with the ends of the edges, or a tuple
          ``(edges, weights)``.
        - A networkx graph of any kind. Directions and parallel edges do not matter.

        Edges from a vertex to itself are ignored.
    triangle : {"both", "upper", "lower"}
        The entries of a matrix that are edges: all, or those on one side of the diagonal.
    algorithm : str
        ``"auto"`` or a name that ``gpumatch.algorithms("general-matching")`` lists.
    backend : {"auto", "cpu", "cuda"}
        Where to run. By default that is where the arrays are. On a GPU the double cover is solved;
        what its odd cycles leave, the host solves from there.
    initial : GeneralMatching or integer array of length n, optional
        A matching to begin from: ``initial[v]`` is the mate of vertex v, -1 for none.
    seed, threads, time_limit, progress, callback
        As of `gpumatch.maximum_matching`; ``progress.matched`` counts edges.

    Returns
    -------
    GeneralMatching
        In arrays like the input's. Its size does not depend on the arguments. Which of several
        maximum matchings it is may depend on them.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong; the message names it.
    KeyboardInterrupt
        On Ctrl-C, with the best matching so far as attribute ``result``; None if it came before
        the start.

    Notes
    -----
    The search may end with one vertex that no augmenting path can lead to. Then the parts of what
    hangs on it are found when the result is asked for them, from the arrays of the graph. If these
    have changed since, that is a RuntimeError.

    O(n m α(n)) at worst for n vertices and m edges, with the inverse Ackermann function α; a small
    multiple of O(n + m) on most graphs. ``docs/algorithms/general.md`` describes the algorithm.

    References
    ----------
    Edmonds, *Paths, trees, and flowers*, Canadian J. Math. 17, 1965; Gabow, *An efficient
    implementation of Edmonds' algorithm for maximum matching on graphs*, J. ACM 23, 1976.

    Examples
    --------
    A triangle and a vertex beside it:

    >>> import gpumatch as gm
    >>> m = gm.general.maximum_matching(([(0, 1), (1, 2), (0, 2), (2, 3)], None))
    >>> m.edges().tolist(), m.proven
    ([[0, 1], [2, 3]], True)
    """
    refuse_unknown(maximum_matching, PROBLEM, options)
    progress = checked_flag(progress, "progress")
    control = Control(time_limit=time_limit, progress=progress, callback=callback)
    seed, threads = checked_seed(seed), checked_threads(threads)
    on_device = is_on_device(G)
    choice = choose_general(PROBLEM, algorithm, backend, options, on_device)
    with control.part("graph"):
        graph = graph_on_device(G, triangle, weighted=False) if on_device else None
        graph = pattern_of(G, triangle) if graph is None else graph
    task = GeneralMatchingTask(
        *_arrays_for(choice, graph, initial),
        load(DOUBLE_COVERS["cpu"]),
        *(control, threads, seed),
        choice.fallback(),
    )
    mate, part = task.mate, task.part
    control.total = graph.order // 2
    stats: dict[str, Any] = {**choice.names(), **choice.options}
    home = home_of(G)

    def result(proof: np.ndarray | None) -> GeneralMatching:
        facts = stats | control.statistics()
        parts = None if proof is None else array_of(home, proof)
        decompose = None if proof is None else _decomposing(task, home)
        return GeneralMatching(
            array_of(home, mate), parts, decompose, nodes=graph.nodes, stats=facts
        )

    proven = False
    try:
        if not control.tick(_size(mate)):
            proven = choice.search()(task)
    except KeyboardInterrupt as exc:
        attach_result(exc, result(None))
        raise
    finally:
        if control.shows_bar:
            control.close(_size(mate))
    return result(part if proven else None)


def _decomposing(task: GeneralMatchingTask, home: Any) -> Callable[[], Any] | None:
    """What finds the parts that a maximum matching has left open; None if it has left none."""
    if task.is_decomposed:
        return None
    mate, sums = array_of(np, task.mate).copy(), _sums_of(task)

    def decompose() -> Any:
        if _sums_of(task) != sums:
            raise RuntimeError("the arrays of the graph have changed since it was matched")
        arrays = {name: array_of(np, getattr(task, name)) for name in ("indptr", "indices", "part")}
        own = dataclasses.replace(task, **arrays, mate=mate, control=Control())
        load(DECOMPOSE)(own)
        return array_of(home, own.part)

    return decompose


def _sums_of(task: GeneralMatchingTask) -> list[int]:
    return [int(array.sum(dtype=np.int64)) for array in (task.indptr, task.indices)]


def _arrays_for(choice: Choice, graph: Graph, initial: Any) -> tuple[Any, Any, Any, Any]:
    """Graph, mates and parts where the algorithm is to run."""
    indptr, indices = array_of(np, graph.indptr), graph.indices
    if choice.backend == "cpu" or initial is not None:
        indices = array_of(np, indices)
    mate = initial_mate(initial, graph._replace(indptr=indptr, indices=indices))
    part = np.zeros(graph.order, np.int8)
    if choice.backend == "cpu":
        return indptr, indices, mate, part
    import cupy

    indptr, indices = array_of(cupy, graph.indptr), array_of(cupy, graph.indices)
    return indptr, indices, cupy.asarray(mate), cupy.asarray(part)


def initial_mate(initial: Any, graph: Graph) -> np.ndarray:
    """A new array of mates that holds `initial` or nothing, checked.

    Raises
    ------
    TypeError, ValueError
        If it is no array of mates, or a pair in it is no edge.
    """
    if initial is None:
        return np.full(graph.order, -1, np.int32)
    given = array_of(np, index_array(getattr(initial, "mate", initial), "initial"))
    n = graph.order
    if given.size != n:
        raise ValueError(f"initial: there must be {n} mates; got {given.size}")
    stray = first_true((given < -1) | (given >= n))
    if stray is not None:
        raise ValueError(f"initial: vertex {stray} has the mate {int(given[stray])} of {n}")
    mate = given.astype(np.int32)
    ends = np.flatnonzero(mate >= 0)
    stray = first_true(mate[mate[ends]] != ends)
    if stray is not None:
        vertex = int(ends[stray])
        other = int(mate[vertex])
        raise ValueError(
            f"initial: vertex {vertex} has the mate {other}, which has the mate {int(mate[other])}"
        )
    owners = np.repeat(np.arange(n, dtype=np.int32), np.diff(graph.indptr))
    is_paired = mate < 0
    is_paired[owners[mate[owners] == graph.indices]] = True
    stray = first_true(~is_paired)
    if stray is not None:
        raise ValueError(
            f"initial: vertices {stray} and {int(mate[stray])} are mates, but no edge joins them"
        )
    return mate


def _size(mate: np.ndarray) -> int:
    return count_matched(mate) // 2
