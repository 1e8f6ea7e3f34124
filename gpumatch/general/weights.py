"""The front door to maximum weight matching of graphs that need not be bipartite."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from gpumatch.contracts.general_weights import OddSets
from gpumatch.dispatch.arguments import checked_flag, checked_seed, checked_threads, refuse_unknown
from gpumatch.dispatch.backends import Choice, choose_general
from gpumatch.dispatch.registry import BackendName
from gpumatch.general.device_graph import graph_on_device, home_of, is_on_device
from gpumatch.general.graph import Graph, weighted_of
from gpumatch.general.suitor import half_matching
from gpumatch.numeric.arrays import array_of
from gpumatch.problems.deficient_start import largest_matching
from gpumatch.problems.general_weights import (
    GeneralCardinality,
    ImperfectError,
    Outcome,
    WeightRequest,
    imperfect,
    solve,
)
from gpumatch.results.general_weights import GeneralWeightMatching
from gpumatch.results.suitor import BoundedMatching
from gpumatch.running.control import Callback, Control, InterruptsStop, with_interrupts_result

__all__ = ["maximum_weight_matching"]

PROBLEM = "general-weights"


@with_interrupts_result
def maximum_weight_matching(
    G: Any,
    *,
    weight: Hashable = "weight",
    cardinality: GeneralCardinality = "any",
    maximize: bool = True,
    triangle: str = "both",
    algorithm: str = "auto",
    backend: BackendName = "auto",
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    **options: str,
) -> GeneralWeightMatching | BoundedMatching:
    """Match vertices of an undirected graph in pairs, by edges of the best total weight.

    Parameters
    ----------
    G : sparse or dense matrix, edge list, or networkx graph
        - A square matrix of SciPy or cupyx, or a tuple ``(indptr, indices, data, shape)``. Stored
          entries are edges, stored zeros too.
        - A square dense array or tensor. Nonzero entries are edges.
        - A tuple ``(edges, weights)`` of an integer array of shape (m, 2) and m numbers.
        - A networkx graph of any kind. Directions do not matter.

        Edges from a vertex to itself are ignored. Of repeated edges, the best one counts.
    weight : hashable
        The edge attribute of a networkx graph that is the weight. Edges without it weigh 1, and
        with None all do.
    cardinality : {"any", "maximum", "perfect"}
        ``"any"`` finds the best total, and takes an edge only if it pays. ``"maximum"`` finds the
        best among the matchings with the most edges. ``"perfect"`` matches every vertex.
    maximize : bool
        Maximise the total; False minimises it.
    triangle : {"both", "upper", "lower"}
        The entries of a matrix that are edges: all, or those on one side of the diagonal. With
        ``"both"``, an edge may be stored in one triangle, or with equal weights in both.
    algorithm : str
        ``"auto"`` or a name that ``gpumatch.algorithms("general-weights")`` lists. ``"suitor"``
        finds at least half of the best total, mostly far more, and proves how much it is, for
        graphs of up to billions of edges. It is for ``"any"`` only, and runs on a GPU, too.
    backend : {"auto", "cpu", "cuda"}
        Where to run. By default that is where the arrays are. On a GPU the double cover is
        assigned; what its odd cycles leave, the host solves from there.
    seed, threads, time_limit, progress, callback
        As of `gpumatch.maximum_matching`; ``progress.matched`` counts edges.

    Returns
    -------
    GeneralWeightMatching
        In arrays like the input's; `gpumatch.general.BoundedMatching` of ``"suitor"``. If the run
        was stopped, it is the matching so far, which may have fewer edges than `cardinality` asks
        for.

    Raises
    ------
    ImperfectError
        An `InfeasibleError`, and a ValueError: there is no perfect matching. It has a `tutte_set`
        that shows it.
    ValueError, TypeError
        If an argument is wrong, a weight is no finite number, or integers are too large: 2**58 for
        ``"any"``, 2**59 / (n + 1) for the other cardinalities.
    KeyboardInterrupt
        On Ctrl-C, with the matching so far as attribute ``result``; None if it came before the
        search.

    Notes
    -----
    Integers are solved exactly. Floats are solved up to rounding, and the gap is rigorous.

    O(n m log n) at worst for n vertices and m edges. ``docs/algorithms/general_weights.md``
    describes the algorithm.

    References
    ----------
    Edmonds, *Maximum matching and a polyhedron with 0,1-vertices*, J. Res. NBS 69B, 1965; Galil,
    Micali, Gabow, *An O(EV log V) algorithm for finding a maximal weighted matching in general
    graphs*, SIAM J. Comput. 15(1), 1986.

    Examples
    --------
    Three friends of four may share two rooms; each pair says how much it would like to.

    >>> import gpumatch as gm
    >>> pairs, likes = [(0, 1), (1, 2), (0, 2), (2, 3)], [5, 9, 6, 3]
    >>> gm.general.maximum_weight_matching((pairs, likes)).edges().tolist()
    [[1, 2]]
    >>> m = gm.general.maximum_weight_matching((pairs, likes), cardinality="perfect")
    >>> m.edges().tolist(), m.objective, m.proven
    ([[0, 1], [2, 3]], 8, True)
    """
    refuse_unknown(maximum_weight_matching, PROBLEM, options)
    progress, maximize = checked_flag(progress, "progress"), checked_flag(maximize, "maximize")
    control = Control(time_limit=time_limit, progress=progress, callback=callback)
    seed, threads = checked_seed(seed), checked_threads(threads)
    request = WeightRequest(cardinality, maximize, threads, seed, control)
    request.check()
    if algorithm == "suitor":
        if cardinality != "any":
            raise ValueError(f"algorithm 'suitor' is for cardinality 'any'; got {cardinality!r}")
        return half_matching(
            *(G, weight),
            triangle=triangle,
            maximize=maximize,
            backend=backend,
            threads=threads,
            control=control,
            options=options,
        )
    choice = choose_general(PROBLEM, algorithm, backend, options, is_on_device(G))
    with control.part("graph"):
        graph = _graph_for(choice, G, weight, triangle, maximize)
    home = home_of(G)
    control.total = graph.order // 2
    if cardinality == "perfect" and graph.order % 2:
        raise _imperfect(graph, np.full(graph.order, -1, np.int32), request)
    with InterruptsStop(control) as interrupts:
        outcome = solve(graph, choice.search(), request, choice.fallback())
        result = _result(graph, outcome, request, choice, home)
        if control.shows_bar:
            control.close(result.size)
        interrupts.bring(result)
    if cardinality == "perfect" and not control.stopped and 2 * result.size < graph.order:
        raise _imperfect(graph, outcome.mate, request)
    return result


def _graph_for(choice: Choice, G: Any, weight: Hashable, triangle: str, maximize: bool) -> Graph:
    """The graph, where its arrays are if the algorithm can take them from there."""
    if choice.backend == "cuda" and is_on_device(G):
        graph = graph_on_device(G, triangle, weighted=True)
        if graph is not None and graph.weights is not None:
            number = np.float64 if graph.weights.dtype.kind == "f" else np.int64
            return graph._replace(weights=graph.weights.astype(number, copy=False))
    return weighted_of(G, weight, triangle, maximize=maximize)


def _result(
    graph: Graph, outcome: Outcome, request: WeightRequest, choice: Choice, home: Any
) -> GeneralWeightMatching:
    return GeneralWeightMatching(
        array_of(home, outcome.mate),
        array_of(home, outcome.vertex_dual),
        OddSets(*(array_of(home, part) for part in outcome.odd_sets)),
        objective=outcome.objective,
        gap=outcome.proof.gap,
        proven=outcome.proof.proven,
        cardinality=request.cardinality,
        maximize=request.maximize,
        nodes=graph.nodes,
        stats={
            **choice.names(),
            **choice.options,
            **outcome.stats,
            **request.control.statistics(),
        },
    )


def _imperfect(graph: Graph, mate: np.ndarray, request: WeightRequest) -> ImperfectError:
    """The error of a graph without a perfect matching, from a matching of it."""
    largest = largest_matching(graph, Control(), request.threads, request.seed, mate)
    assert largest is not None
    return imperfect(graph, largest)
