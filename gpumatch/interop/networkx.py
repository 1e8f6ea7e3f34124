"""networkx graphs: to arrays, to two sides, and back.

Encodings
---------
A `NodeGraph` numbers the nodes in networkx's order and has the neighbours of all of them in CSR. An
undirected edge is there from both ends, a loop once, and parallel edges are one.

Two sides are found in the graph's double cover: two copies (v, 0) and (v, 1) of each node v, and
(u, 0)–(v, 1) and (u, 1)–(v, 0) for each edge uv. A component of the graph is bipartite if and only
if its double cover falls into two, and then each of these has one side's nodes as copies 0 and the
other side's as copies 1. If it does not, a path from (v, 0) to (v, 1) is a closed walk of odd
length, and that has an odd cycle in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice, pairwise
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple

import numpy as np

from gpumatch.numeric.arrays import first_true, is_instance

__all__ = [
    "LabelledEdges",
    "NodeGraph",
    "NumberedEdges",
    "is_networkx",
    "labelled_edges",
    "networkx_graph",
    "numbered_edges",
]

BACKEND = "gpumatch"
_NODES_NAMED = 20  # of a cycle, in an error


class NodeGraph:
    """A networkx graph in arrays, as networkx hands it to its backend ``gpumatch``.

    Parameters
    ----------
    nodes : list of nodes
        Their numbers are their places.
    indptr, indices : int arrays
        The neighbours of each node; of a directed graph, the successors.
    values : dict
        For each edge attribute that was asked for, an array in the order of `indices`.
    directed, multigraph : bool
        What kind of graph it was.
    """

    __networkx_backend__ = BACKEND

    def __init__(
        self,
        nodes: list[Hashable],
        indptr: np.ndarray,
        indices: np.ndarray,
        values: dict[Hashable, np.ndarray],
        *,
        directed: bool = False,
        multigraph: bool = False,
    ) -> None:
        self.nodes, self.indptr, self.indices, self.values = nodes, indptr, indices, values
        self.directed, self.multigraph = directed, multigraph

    @classmethod
    def of(cls, G: Any, values: Mapping[Hashable, Any] | None = None) -> NodeGraph:
        """The graph in arrays; itself if it is that already.

        Parameters
        ----------
        G : networkx.Graph or NodeGraph
        values : mapping, optional
            The edge attributes wanted, each with the value of edges that lack it. Those of a
            `NodeGraph` are what they are.

        Raises
        ------
        ValueError
            If an attribute is wanted of a multigraph, where an edge may have several values.
        """
        if isinstance(G, NodeGraph):
            return G
        nodes = list(G)
        neighbours = [those for _, those in G.adjacency()]
        indptr = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, neighbours), np.int64, len(nodes)), out=indptr[1:])
        heads: Iterable[Any] = chain.from_iterable(neighbours)
        if nodes != list(range(len(nodes))):  # not their own numbers
            heads = map(dict(zip(nodes, range(len(nodes)))).__getitem__, heads)
        indices = np.fromiter(heads, np.int32, int(indptr[-1]))
        arrays = {
            name: _values(G, neighbours, name, other) for name, other in (values or {}).items()
        }
        return cls(
            nodes, indptr, indices, arrays,
            directed=G.is_directed(), multigraph=G.is_multigraph(),
        )  # fmt: skip

    # -- what networkx asks a graph ---------------------------------------------------------------

    def is_directed(self) -> bool:
        return self.directed

    def is_multigraph(self) -> bool:
        return self.multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Any:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.number
        except TypeError:  # not hashable
            return False

    def __repr__(self) -> str:
        kind = "arcs" if self.directed else "entries"
        return f"NodeGraph({len(self)} nodes, {self.indices.size} {kind})"

    # -- in numbers -------------------------------------------------------------------------------

    @functools.cached_property
    def number(self) -> dict[Hashable, int]:
        """The number of each node."""
        return dict(zip(self.nodes, range(len(self.nodes))))

    @functools.cached_property
    def tails(self) -> np.ndarray:
        """The node that each entry of `indices` is a neighbour of."""
        return np.arange(len(self), dtype=np.int32).repeat(np.diff(self.indptr))

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """How many neighbours each node has; of a directed graph, how many successors."""
        return np.diff(self.indptr)

    @functools.cached_property
    def heads(self) -> list[list[int]]:
        """The neighbours of each node as lists."""
        flat, ends = self.indices.tolist(), self.indptr.tolist()
        return [flat[begin:end] for begin, end in pairwise(ends)]

    def value(self, name: Hashable) -> np.ndarray:
        """The values of an edge attribute, in the order of `indices`."""
        if name not in self.values:
            raise ValueError(f"the graph was converted without its edge attribute {name!r}")
        return self.values[name]

    def without_loops(self) -> NodeGraph:
        """The graph without edges from a node to itself."""
        is_kept = self.tails != self.indices
        if is_kept.all():
            return self
        indptr = np.concatenate([[0], is_kept.cumsum()])[self.indptr]
        values = {name: array[is_kept] for name, array in self.values.items()}
        return NodeGraph(
            self.nodes, indptr, self.indices[is_kept], values,
            directed=self.directed, multigraph=self.multigraph,
        )  # fmt: skip

    # -- two sides --------------------------------------------------------------------------------

    @functools.cached_property
    def components(self) -> np.ndarray:
        """The component of each node, in the order of their first nodes, but with gaps."""
        return self._copies.min(axis=0)

    @functools.cached_property
    def sides(self) -> np.ndarray:
        """0 or 1 for each node, 0 for the first of each component.

        Raises
        ------
        ValueError
            If the graph is not bipartite; the message names an odd cycle.
        """
        cycle = self.odd_cycle()
        if cycle is not None:
            names = ", ".join(map(repr, cycle[:_NODES_NAMED]))
            names += f", … ({len(cycle)} nodes)" if len(cycle) > _NODES_NAMED else ""
            raise ValueError(f"the graph is not bipartite: it has the odd cycle {names}")
        return (self._copies[0] > self._copies[1]).astype(np.int8)

    def odd_cycle(self) -> list[Hashable] | None:
        """The nodes of an odd cycle in their order around it, None if the graph is bipartite."""
        start = first_true(self._copies[0] == self._copies[1])
        if start is None:
            return None
        from scipy.sparse.csgraph import breadth_first_order

        size = len(self)
        _, before = breadth_first_order(self._double_cover(), start, directed=False)
        path: list[int] = []
        place: dict[int, int] = {}  # of a node on the path
        copy = size + start
        while copy % size not in place:
            node = copy % size
            place[node] = len(path)
            path.append(node)
            copy = int(before[copy])
        # A shortest path has no copy twice, so this is the node's other one: an odd way behind.
        return [self.nodes[v] for v in path[place[copy % size] :]]

    @functools.cached_property
    def _copies(self) -> np.ndarray:
        """The component of the double cover that each node's copies 0 and 1 are in."""
        from scipy.sparse.csgraph import connected_components

        # SciPy numbers components by their first vertex: by copies 0, as each has one.
        _, labels = connected_components(self._double_cover(), directed=False)
        return labels.reshape(2, -1)

    def _double_cover(self) -> Any:
        from gpumatch.interop.sparse import csr_of

        size, entries = len(self), self.indices.size
        indptr = np.concatenate([self.indptr, self.indptr[1:] + entries])
        indices = np.concatenate([self.indices + np.int32(size), self.indices])
        return csr_of(np.ones(2 * entries), indices, indptr, (2 * size, 2 * size))


def _values(G: Any, neighbours: list[Any], name: Hashable, other: Any) -> np.ndarray:
    """An attribute of all edges, in the order of the neighbours."""
    _refuse_multigraph(G, name)
    edges = chain.from_iterable(those.values() for those in neighbours)
    return _as_numbers([edge.get(name, other) for edge in edges], name, len(neighbours))


def _refuse_multigraph(G: Any, weight: Any) -> None:
    if G.is_multigraph():
        raise ValueError(
            f"a multigraph may have several values of {weight!r} for an edge: make a Graph of it, "
            "with the one that counts"
        )


# -- numbers of any kind ---------------------------------------------------------------------------


def _as_numbers(values: list[Any], weight: Any, nodes: int) -> np.ndarray:
    """The weights in an array that holds each of them exactly; None becomes NaN.

    Integers are in int64, and so are sums of them exact. Other numbers are in float64. If none of
    them is a float, as with fractions, their sums are exact, too: all are multiples of a power of
    two, so small ones that float64 holds each sum of so many nodes.

    Raises
    ------
    TypeError
        If one is no real number.
    ValueError
        If there is no such array.
    """
    if not values:
        return np.zeros(0, np.int64)
    try:
        array = np.array(values)
    except ValueError:  # lists of several lengths
        array = np.array(values, dtype=object)
    kind = array.dtype.kind if array.ndim == 1 else "O"
    if kind in "biu":
        return array
    # NumPy makes floats of integers of two types, too, and may round those from 2**53 on.
    has_floats = not all(isinstance(value, Integral) for value in values)
    if kind == "f" and has_floats and not (abs(array) >= _FLOAT_INTEGERS).any():
        return array
    numbers = [_as_number(value, weight) for value in values]
    if all(isinstance(number, int) and -(2**63) <= number < 2**63 for number in numbers):
        return np.array(numbers, np.int64)
    exact: list[int | Fraction] = [number for number in numbers if not isinstance(number, float)]
    for number in exact:
        if not _is_float(number):
            raise ValueError(
                f"weight {weight!r}: {_shown(number)} is in no 64-bit integer or float exactly: "
                "scale the weights to integers, or round them to floats"
            )
    if exact and len(exact) == len(numbers):
        unit = min((_power_of_two(number) for number in exact if number), default=Fraction(1))
        largest = Fraction(max(max(exact), -min(exact)))
        if (nodes + 1) * largest > _FLOAT_INTEGERS * unit:
            raise ValueError(
                f"weight {weight!r}: sums of weights like {_shown(largest)} are in no "
                "64-bit integer or float exactly: scale the weights to smaller integers, or round "
                "them to floats"
            )
    return np.array(list(map(float, numbers)), np.float64)


_FLOAT_INTEGERS = 2**53  # float64 holds every integer up to this
_EXPONENTS = 400  # decimal exponents beyond this are of no float64


def _as_number(value: Any, weight: Any) -> int | float | Fraction:
    """A weight as a number of Python, without rounding."""
    if value is None:
        return math.nan
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    is_time = isinstance(value, np.timedelta64)  # which is an Integral for Python
    if isinstance(value, (Integral, np.bool_)) and not is_time:
        return int(value)
    if isinstance(value, Rational) and not is_time:
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, Decimal):
        if not value.is_finite():
            return float(value)
        if value and abs(value.adjusted()) > _EXPONENTS:
            raise ValueError(f"weight {weight!r}: {value} is beyond the range of float64")
        return Fraction(value)
    if isinstance(value, Real) and not is_time:
        return float(value)
    raise TypeError(
        f"weight {weight!r} must be a number at every edge: one is {_shown(value)}, of type "
        f"{type(value).__name__}"
    )


def _is_float(number: int | Fraction) -> bool:
    """True if float64 holds it."""
    try:
        return float(number) == number
    except OverflowError:
        return False


def _power_of_two(number: int | Fraction) -> Fraction:
    """The greatest power of two that a number, which some float equals, is a multiple of."""
    if number.denominator > 1:
        return Fraction(1, number.denominator)
    return Fraction(number.numerator & -number.numerator)


def _shown(value: Any) -> str:
    text = str(value) if isinstance(value, (Fraction, int)) else repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def is_networkx(source: Any) -> bool:
    """True if `source` is a graph of networkx, or of its backend ``gpumatch``."""
    return isinstance(source, NodeGraph) or is_instance(source, "networkx", "Graph")


# -- graphs that need not be bipartite -------------------------------------------------------------


class NumberedEdges(NamedTuple):
    """The nodes of a graph, and the numbers of each edge's ends."""

    nodes: list[Hashable]
    tails: np.ndarray
    heads: np.ndarray
    weights: np.ndarray | None = None


def numbered_edges(G: Any, weight: Hashable = None) -> NumberedEdges:
    """The edges of a networkx graph of any kind, loops and parallel edges among them.

    Parameters
    ----------
    G : networkx.Graph or NodeGraph
    weight : edge attribute, optional
        Whose values to give with the edges, 1 where it is missing.

    Raises
    ------
    ValueError, TypeError
        If no edge has the attribute, or a value is no number or is not held exactly.
    """
    if weight is not None and not isinstance(G, NodeGraph):
        _check_attribute(G, weight)
        if G.is_multigraph():
            return _parallel_edges(G, weight)
    graph = NodeGraph.of(G, {} if weight is None else {weight: 1})
    tails, heads = graph.tails, graph.indices
    is_kept = np.ones(tails.size, bool) if graph.directed else tails <= heads
    weights = None if weight is None else graph.value(weight)[is_kept]
    return NumberedEdges(graph.nodes, tails[is_kept], heads[is_kept], weights)


def _parallel_edges(G: Any, weight: Hashable) -> NumberedEdges:
    nodes = list(G)
    number = dict(zip(nodes, range(len(nodes))))
    edges = list(G.edges(data=weight, default=1))
    ends = (number[end] for edge in edges for end in edge[:2])
    tails, heads = np.fromiter(ends, np.int32, 2 * len(edges)).reshape(-1, 2).T
    return NumberedEdges(
        nodes, tails, heads, _as_numbers([edge[2] for edge in edges], weight, len(nodes))
    )


# -- rows and columns ------------------------------------------------------------------------------


class LabelledEdges(NamedTuple):
    """The row and the column of each edge, and the nodes that are the rows and the columns."""

    rows: np.ndarray
    cols: np.ndarray
    row_labels: list[Hashable]
    col_labels: list[Hashable]
    weights: np.ndarray | None = None


def labelled_edges(
    G: Any, row_nodes: Iterable[Hashable] | None = None, weight: Hashable = None
) -> LabelledEdges:
    """The edges of a networkx graph, its sides told apart as `BipartiteGraph.from_networkx` says.

    Parameters
    ----------
    G : networkx.Graph or NodeGraph
    row_nodes : iterable of nodes, optional
    weight : edge attribute or function, optional
        Whose values to give with the edges, 1 where it is missing; or what gives them, called as
        ``weight(row, column, attributes)``, of a directed graph with the edge's own ends.

    Raises
    ------
    ValueError
        If an edge joins two rows or two columns, there is an odd cycle, a row is no node, a node's
        attribute ``bipartite`` is neither 0 nor 1, no edge has the attribute, or a value is not
        held exactly.
    TypeError
        If a value is no number.
    """
    is_function = callable(weight) and not isinstance(G, NodeGraph)
    if is_function:
        _refuse_multigraph(G, weight)
    graph = NodeGraph.of(G, {} if weight is None or is_function else {weight: 1})
    if weight is not None and not isinstance(G, NodeGraph) and not is_function:
        _check_attribute(G, weight)
    rows, is_col = _sides(G, graph, row_nodes)
    cols = is_col.nonzero()[0]
    tails, heads = graph.tails, graph.indices
    stray = first_true(is_col[tails] == is_col[heads])
    if stray is not None:
        u, v = graph.nodes[tails[stray]], graph.nodes[heads[stray]]
        raise ValueError(f"the graph is not bipartite: edge ({u!r}, {v!r}) stays on one side")
    from_col = is_col[tails]
    is_kept = np.ones(tails.size, bool) if graph.directed else ~from_col
    weights = None
    if callable(weight) and is_function:
        weights = _computed(G, weight, is_kept)
    elif weight is not None:
        weights = graph.value(weight)[is_kept]
    if graph.directed:
        tails, heads = np.where(from_col, heads, tails), np.where(from_col, tails, heads)
    else:  # each edge is there from both ends
        tails, heads = tails[is_kept], heads[is_kept]
    place = np.empty(len(graph), np.int32)
    place[rows], place[cols] = np.arange(rows.size), np.arange(cols.size)
    row_labels, col_labels = ([graph.nodes[v] for v in side.tolist()] for side in (rows, cols))
    return LabelledEdges(place[tails], place[heads], row_labels, col_labels, weights)


_EDGES_LOOKED_AT = 100  # for the names of attributes, in an error


def _check_attribute(G: Any, weight: Hashable) -> None:
    """Check that some edge has this attribute, if there are edges.

    ``"weight"``, which is taken when no attribute is named, may be missing if there are no others.
    """
    if any(weight in own for _, _, own in G.edges(data=True)) or G.number_of_edges() == 0:
        return
    first = (own for _, _, own in islice(G.edges(data=True), _EDGES_LOOKED_AT))
    known = ", ".join(map(repr, dict.fromkeys(chain.from_iterable(first))))
    if weight == "weight" and not known:
        return
    raise ValueError(
        f"weight: no edge has the attribute {weight!r}, but {known or 'none at all'}; "
        "with weight=None every edge costs 1"
    )


def _computed(G: Any, weight: Callable[..., Any], is_kept: np.ndarray) -> np.ndarray:
    """What a function says of each edge that is kept, in the order of the neighbours."""
    edges = ((u, v, own) for u, those in G.adjacency() for v, own in those.items())
    values = [weight(*edge) for edge, kept in zip(edges, is_kept.tolist()) if kept]
    return _as_numbers(values, weight, len(G))


def networkx_graph(edges: LabelledEdges) -> Any:
    """The networkx graph of these edges: what `labelled_edges` reads them and their order from."""
    import networkx as nx

    G = nx.Graph()
    G.add_nodes_from(edges.row_labels, bipartite=0)
    G.add_nodes_from(edges.col_labels, bipartite=1)
    ends = zip(edges.rows.tolist(), edges.cols.tolist())
    G.add_edges_from((edges.row_labels[r], edges.col_labels[c]) for r, c in ends)
    return G


def _sides(
    G: Any, graph: NodeGraph, row_nodes: Iterable[Hashable] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows, in their order, and for each node whether it is a column."""
    if row_nodes is not None:
        distinct = list(dict.fromkeys(row_nodes))
        missing = [node for node in distinct if node not in graph]
        if missing:
            raise ValueError(f"row_nodes: {missing[0]!r} is not a node of the graph")
        rows = np.array([graph.number[node] for node in distinct], dtype=np.int64)
        is_col = np.ones(len(graph), bool)
        is_col[rows] = False
        return rows, is_col
    side = _marked_sides(G, graph)
    return (side == 0).nonzero()[0], side == 1


def _marked_sides(G: Any, graph: NodeGraph) -> np.ndarray:
    """Each node's side: its attribute ``bipartite``, or what those in its component ask.

    If these contradict each other, some edge of the component stays on one side.
    """
    if isinstance(G, NodeGraph):
        return graph.sides
    marks = [mark for _, mark in G.nodes(data="bipartite")]
    stray = next((v for v, mark in enumerate(marks) if mark not in (0, 1, None)), None)
    if stray is not None:
        raise ValueError(
            f"node {graph.nodes[stray]!r} has the mark bipartite={marks[stray]!r}: "
            "it must be 0 for rows and 1 for columns"
        )
    side = np.array([-1 if mark is None else mark for mark in marks], dtype=np.int8)
    is_marked = side >= 0
    if is_marked.all():
        return side
    turned = np.zeros(2 * len(graph), np.int8)
    turned[graph.components[is_marked]] = (side ^ graph.sides)[is_marked]
    return np.where(is_marked, side, graph.sides ^ turned[graph.components])
