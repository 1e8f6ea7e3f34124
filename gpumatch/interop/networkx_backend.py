"""networkx's functions, as its backend ``gpumatch`` does them.

networkx loads this module when it first dispatches to the backend: by ``backend="gpumatch"`` in a
call, by ``nx.config.backend_priority``, or because a graph was converted before. Each function
here has the name, the parameters, the result and the exceptions of networkx's own. Its graphs are
`gpumatch.interop.networkx.NodeGraph`. networkx converts to them, and keeps them in the cache of the
graph that they come from until that is changed.

Four things differ, within what networkx promises:

- Which of several best matchings, covers or edge covers comes back may differ.
- `to_vertex_cover` extends the matching that it is given, so that its cover is always one.
- `top_nodes` that an edge of the graph does not respect raise NetworkXError at once.
- A message says more, for example which cycle is odd.

Weights that no array holds exactly, and sums of them that are too large, are refused by
NotImplementedError, so that networkx does the call itself, unless the backend was named in it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms.matching import matching_dict_to_set

from gpumatch.assignment import assign
from gpumatch.bipartite import BipartiteGraph
from gpumatch.costs import SparseCosts
from gpumatch.general import matching as general_matching
from gpumatch.general.weights import maximum_weight_matching
from gpumatch.interop.networkx import BACKEND, NodeGraph
from gpumatch.matching import maximum_matching
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.problems.request import Cardinality
from gpumatch.results.assignment import Assignment

FEW_EDGES = 400  # below, networkx is done earlier

# -- what networkx asks a backend ------------------------------------------------------------------


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: Mapping[Hashable, Any] | None = None,
    node_attrs: Mapping[Hashable, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> NodeGraph:
    """The graph in arrays, with the edge attributes that the function needs.

    Raises
    ------
    NotImplementedError
        If an attribute is not a number at every edge, or there is no array that holds all exactly.
    """
    with _refusals():
        return NodeGraph.of(graph, edge_attrs)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """A graph in arrays as a networkx graph; every other result is one of networkx's already."""
    if not isinstance(result, NodeGraph):
        return result
    G = nx.DiGraph() if result.directed else nx.Graph()
    G.add_nodes_from(result.nodes)
    names = list(result.values)
    columns = (result.values[name].tolist() for name in names)
    ends = result.tails.tolist(), result.indices.tolist()
    G.add_edges_from(
        (result.nodes[tail], result.nodes[head], dict(zip(names, values)))
        for tail, head, *values in zip(*ends, *columns)
    )
    return G


def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """True if the function can do this call; else why not."""
    given = inspect.signature(FUNCTIONS[name]).bind(*args, **kwargs).arguments
    G, algorithm = given["G"], given.get("matching_algorithm")
    if G.is_directed() and name in NO_DIRECTIONS:
        return "the graph is directed: networkx then goes along the directions only"
    if name in CHAINS and (G.is_multigraph() or not G.is_directed()):
        return "it is for simple directed graphs only"
    if name == "transitive_closure" and _has_data(G):
        return "the result would lose the data of the graph"
    if name == "edge_bfs" and not _begins_simply(**given):
        return "networkx has several nodes to begin from, or orientations"
    if G.is_multigraph() and name == "minimum_weight_full_matching":
        return "a multigraph may have several weights for an edge"
    if algorithm is not None and _name_of(algorithm) not in FOR_COVERS:
        return "matching_algorithm is not one that this backend has"
    if name == "bipartite_min_edge_cover" and _name_of(algorithm) == ANY_GRAPH:
        return "networkx takes each edge of that algorithm from one end only"
    return True


def _has_data(G: Any) -> bool:
    if isinstance(G, NodeGraph):
        return False
    return any(chain([G.graph], G.nodes.values(), (data for _, _, data in G.edges(data=True))))


def _begins_simply(G: Any, source: Any = None, orientation: Any = None) -> bool:
    return orientation is None and (source is None or source in G)


def _name_of(algorithm: Any) -> str | None:
    """The name of one of networkx's functions, also if some of its arguments are bound."""
    return getattr(getattr(algorithm, "func", algorithm), "name", None)


def should_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
    """True if converting the graph repays; else why not. A call that names the backend runs."""
    G = inspect.signature(FUNCTIONS[name]).bind(*args, **kwargs).arguments["G"]
    if name == "transitive_closure":
        return "its result is a graph of this backend"
    cache = getattr(G, "__networkx_cache__", None) or {}
    if cache.get("backends", {}).get(BACKEND):
        return True  # converted already
    if name in QUICK:
        return "networkx is done before the graph would be converted"
    if G.number_of_edges() < FEW_EDGES:
        return f"the graph is small: it has fewer than {FEW_EDGES} edges"
    return True


# -- matchings -------------------------------------------------------------------------------------


def hopcroft_karp_matching(
    G: NodeGraph, top_nodes: Iterable[Hashable] | None = None
) -> dict[Hashable, Hashable]:
    return maximum_matching(_bipartite(G, top_nodes)).to_dict()


def eppstein_matching(
    G: NodeGraph, top_nodes: Iterable[Hashable] | None = None
) -> dict[Hashable, Hashable]:
    return hopcroft_karp_matching(G, top_nodes)


def to_vertex_cover(
    G: NodeGraph,
    matching: Mapping[Hashable, Hashable],
    top_nodes: Iterable[Hashable] | None = None,
) -> set[Hashable]:
    graph = _bipartite(G, top_nodes)
    assert graph.row_labels is not None
    assert graph.col_labels is not None
    row_number = {node: i for i, node in enumerate(graph.row_labels)}
    col_number = {node: i for i, node in enumerate(graph.col_labels)}
    mates = np.full(graph.nrows, -1)
    for pair in matching.items():
        row, col = pair if pair[0] in row_number else reversed(pair)
        mates[row_number[row]] = col_number[col]
    try:
        m = maximum_matching(graph, initial=mates)
    except ValueError as exc:
        raise nx.NetworkXError(f"matching is no matching of the graph: {exc}") from None
    rows, cols = m.vertex_cover()
    return {*rows, *cols}


def minimum_weight_full_matching(
    G: NodeGraph, top_nodes: Iterable[Hashable] | None = None, weight: Hashable = "weight"
) -> dict[Hashable, Hashable]:
    return _assigned(G, weight, _top_nodes(G, top_nodes)).to_dict()


def max_weight_matching(
    G: NodeGraph, maxcardinality: bool = False, weight: Hashable = "weight"
) -> set[tuple[Hashable, Hashable]]:
    wanted: Cardinality = "maximum" if maxcardinality else "any"
    return _heaviest(G, weight, maximize=True, cardinality=wanted)


def min_weight_matching(
    G: NodeGraph, weight: Hashable = "weight"
) -> set[tuple[Hashable, Hashable]]:
    return _heaviest(G, weight, maximize=False, cardinality="maximum")


def _heaviest(
    G: NodeGraph, weight: Hashable, *, maximize: bool, cardinality: Cardinality
) -> set[tuple[Hashable, Hashable]]:
    """By the engine for bipartite graphs if it is one, which is faster."""
    G = G.without_loops()
    wish: Any = {"maximize": maximize, "cardinality": cardinality}
    if G.odd_cycle() is None:
        return set(_assigned(G, weight, **wish).edges())
    with _refusals():
        return set(maximum_weight_matching(G, weight=weight, **wish).edges())


def maximal_matching(G: NodeGraph) -> set[tuple[Hashable, Hashable]]:
    is_free = [True] * len(G)
    matching = set()
    for u, v in zip(G.tails.tolist(), G.indices.tolist()):
        if is_free[u] and is_free[v] and u != v:
            is_free[u] = is_free[v] = False
            matching.add((G.nodes[u], G.nodes[v]))
    return matching


# -- edge covers -----------------------------------------------------------------------------------


def min_edge_cover(
    G: NodeGraph, matching_algorithm: Callable[..., Any] | None = None
) -> set[tuple[Hashable, Hashable]]:
    if len(G) == 0:
        return set()
    if not G.degrees.all():
        raise nx.NetworkXException(
            "Graph has a node with no edge incident on it, so no edge cover exists."
        )
    if matching_algorithm is not None and _name_of(matching_algorithm) != ANY_GRAPH:
        return _covered(G, set(hopcroft_karp_matching(G).items()), both_ways=True)
    simple = G.without_loops()
    if simple.odd_cycle() is None:
        edges = maximum_matching(BipartiteGraph.from_networkx(simple)).edges()
    else:
        edges = general_matching.maximum_matching(simple).edges()
    return _covered(G, set(edges), both_ways=False)


def bipartite_min_edge_cover(
    G: NodeGraph, matching_algorithm: Callable[..., Any] | None = None
) -> set[tuple[Hashable, Hashable]]:
    return min_edge_cover(G, matching_algorithm or nx.bipartite.hopcroft_karp_matching)


def _covered(
    G: NodeGraph, cover: set[tuple[Hashable, Hashable]], *, both_ways: bool
) -> set[tuple[Hashable, Hashable]]:
    """The matching `cover`, and for each node outside it the edge to its first neighbour."""
    for node in set(G).difference(chain.from_iterable(cover)):
        neighbour = G.nodes[G.indices[G.indptr[G.number[node]]]]
        cover.add((node, neighbour))
        if both_ways:
            cover.add((neighbour, node))
    return cover


def is_edge_cover(G: NodeGraph, cover: Iterable[tuple[Hashable, Hashable]]) -> bool:
    return set(G) <= set(chain.from_iterable(cover))


# -- checks of a matching --------------------------------------------------------------------------


def is_matching(G: NodeGraph, matching: Any) -> bool:
    return _matched(G, matching) is not None


def is_perfect_matching(G: NodeGraph, matching: Any) -> bool:
    matched = _matched(G, matching)
    return matched is not None and bool(matched.all())


def is_maximal_matching(G: NodeGraph, matching: Any) -> bool:
    matched = _matched(G, matching)
    if matched is None:
        return False
    tails, heads = G.tails, G.indices
    return not (~matched[tails] & ~matched[heads] & (tails != heads)).any()


def _matched(G: NodeGraph, matching: Any) -> np.ndarray | None:
    """Which nodes are matched; None if it is not a matching.

    As in networkx, an edge that is no pair of nodes raises if those before it are a matching.
    """
    if isinstance(matching, dict):
        matching = matching_dict_to_set(matching)
    pairs, error = [], None
    for edge in matching:
        if len(edge) != 2:
            error = nx.NetworkXError(f"matching has non-2-tuple edge {edge}")
            break
        u, v = edge
        if u not in G or v not in G:
            error = nx.NetworkXError(f"matching contains edge {edge} with node not in G")
            break
        pairs.append((G.number[u], G.number[v]))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    times = np.bincount(ends.ravel(), minlength=len(G))  # a loop's node has two ends already
    if (times > 1).any() or not _are_edges(G, ends):
        return None
    if error is not None:
        raise error
    return times > 0


def _are_edges(G: NodeGraph, ends: np.ndarray) -> bool:
    return all(
        head in G.indices[G.indptr[tail] : G.indptr[tail + 1]] for tail, head in ends.tolist()
    )


# -- two sides -------------------------------------------------------------------------------------


def color(G: NodeGraph) -> dict[Hashable, int]:
    colors = np.where(G.degrees > 0, 1 - _two_sides(G), 0)
    return dict(zip(G.nodes, colors.tolist()))


def is_bipartite(G: NodeGraph) -> bool:
    return G.odd_cycle() is None


def sets(
    G: NodeGraph, top_nodes: Iterable[Hashable] | None = None
) -> tuple[set[Hashable], set[Hashable]]:
    top = set(_top_nodes(G, top_nodes))
    return top, set(G) - top


def is_bipartite_node_set(G: NodeGraph, nodes: Any) -> bool:
    inside = set(nodes)
    if len(inside) < len(nodes):
        raise nx.AmbiguousSolution(
            "The input node set contains duplicates.\n"
            "This may lead to incorrect results when using it in bipartite algorithms.\n"
            "Consider using set(nodes) as the input"
        )
    turned = np.array([node in inside for node in G], dtype=bool) ^ (_two_sides(G) == 0)
    of_component = np.zeros(2 * len(G), bool)
    of_component[G.components] = turned
    return bool((of_component[G.components] == turned).all())


def _top_nodes(G: NodeGraph, top_nodes: Iterable[Hashable] | None) -> list[Hashable]:
    """One side's nodes: those given, or that of the first node if the graph is connected."""
    if top_nodes is not None:
        top = list(dict.fromkeys(top_nodes))
        stray = [node for node in top if node not in G]
        if stray:
            raise KeyError(stray[0])
        return top
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if G.components.any():  # the first has number 0
        raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
    is_top = (_two_sides(G) == 0) & (G.degrees > 0)
    return [G.nodes[v] for v in is_top.nonzero()[0].tolist()]


def _two_sides(G: NodeGraph) -> np.ndarray:
    """0 or 1 for each node, 0 for the first of each component."""
    cycle = G.odd_cycle()
    if cycle is not None:
        raise nx.NetworkXError(f"Graph is not bipartite. {_named(cycle)}")
    return G.sides


def _named(cycle: list[Hashable]) -> str:
    shown = ", ".join(map(repr, cycle[:10])) + (", …" if len(cycle) > 10 else "")
    return f"It has an odd cycle of {len(cycle)} nodes: {shown}."


# -- chains --------------------------------------------------------------------------------------


def transitive_closure(G: NodeGraph, reflexive: bool | None = False) -> NodeGraph:
    """By one search from each node. A matching of the result gives the fewest chains (Dilworth)."""
    if reflexive not in (None, True, False):
        raise nx.NetworkXError("Incorrect value for the parameter `reflexive`")
    reached = []
    for root in range(len(G)):
        found = dict.fromkeys(head for _, head in _edges_from(G, [root]))
        if reflexive:
            found[root] = None
        elif reflexive is None and root not in G.heads[root]:
            found.pop(root, None)
        reached.append(found)
    indptr = np.concatenate([[0], np.cumsum([len(found) for found in reached], dtype=np.int64)])
    indices = np.fromiter(chain.from_iterable(reached), np.int32, int(indptr[-1]))
    return NodeGraph(G.nodes, indptr, indices, {}, directed=True)


def edge_bfs(
    G: NodeGraph, source: Hashable | None = None, orientation: str | None = None
) -> Iterator[tuple[Hashable, Hashable]]:
    roots = range(len(G)) if source is None else [G.number[source]]
    for tail, head in _edges_from(G, roots):
        yield G.nodes[tail], G.nodes[head]


def _edges_from(G: NodeGraph, roots: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The edges that paths from the roots have, breadth first."""
    queue = list(roots)
    is_found = set(queue)
    for tail in queue:  # it grows
        for head in G.heads[tail]:
            if head not in is_found:
                is_found.add(head)
                queue.append(head)
            yield tail, head


# -- into our front doors --------------------------------------------------------------------------


def _bipartite(G: NodeGraph, top_nodes: Iterable[Hashable] | None) -> BipartiteGraph:
    top = _top_nodes(G, top_nodes)
    try:
        return BipartiteGraph.from_networkx(G, top)
    except ValueError as exc:
        raise nx.NetworkXError(str(exc)) from None


def _assigned(
    G: NodeGraph, weight: Hashable, top_nodes: list[Hashable] | None = None, **wish: Any
) -> Assignment:
    """The assignment, unless its costs are refused."""
    with _refusals():
        return assign(SparseCosts.from_networkx(G, weight, top_nodes), **wish)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Refuse weights that are not taken by NotImplementedError: then networkx does the call itself.

    It catches no other error. That there is no full matching is an answer.
    """
    try:
        yield
    except InfeasibleError:
        raise
    except (TypeError, ValueError) as exc:
        raise NotImplementedError(str(exc)) from exc


# Each of networkx's names, and what does it.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        bipartite_min_edge_cover,
        color,
        edge_bfs,
        eppstein_matching,
        hopcroft_karp_matching,
        is_bipartite,
        is_bipartite_node_set,
        is_edge_cover,
        is_matching,
        is_maximal_matching,
        is_perfect_matching,
        max_weight_matching,
        maximal_matching,
        min_edge_cover,
        min_weight_matching,
        minimum_weight_full_matching,
        sets,
        to_vertex_cover,
        transitive_closure,
    )
}
NO_DIRECTIONS = {
    "color",
    "eppstein_matching",
    "hopcroft_karp_matching",
    "is_bipartite_node_set",
    "minimum_weight_full_matching",
    "sets",
    "to_vertex_cover",
}
ANY_GRAPH = "max_weight_matching"
FOR_COVERS = {ANY_GRAPH, "eppstein_matching", "hopcroft_karp_matching"}
CHAINS = {"edge_bfs", "transitive_closure"}
QUICK = {
    "color",
    "edge_bfs",
    "is_bipartite",
    "is_bipartite_node_set",
    "is_edge_cover",
    "is_matching",
    "is_maximal_matching",
    "is_perfect_matching",
    "maximal_matching",
    "sets",
}
