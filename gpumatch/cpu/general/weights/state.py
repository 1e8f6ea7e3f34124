"""The encoding of a general weighted matching, of its blossoms, and of the tree of a search.

A *node* is a vertex, numbered 0 to n - 1, or a blossom, an odd set of vertices, numbered from n on.
The nodes that lie in no blossom are *top* nodes. The children of a blossom are nodes, too; they are
a ring, in which an edge leads from each child to the next.

All weights are doubled, so that duals are integers. The slack of edge ij between two top nodes is
``dual[i] + dual[j] - weight[ij]``.

``nodes``, a record for each node:

    dual     of a vertex its dual, of a blossom its dual (>= 0). In the tree of a search, what
             follows from it at distance d is the dual of now:
                              a vertex in it        the blossom itself
                 FREE node    dual - time           dual
                 OUTER node   dual - d              dual + 2 d
                 INNER node   dual + d - time       dual - 2 (d - time)
    time     of a top node, as above; 0 between two searches
    reach    of a vertex outside OUTER nodes: the least dual[v] - weight of its edges to vertices v
             of OUTER nodes; FAR if it has none
    edge     the edge of `reach`, as it is seen from v: v << 32 | its place in the row of v
    link     of an INNER node: the edge vx by which it joined the tree, x in it: v << 32 | x
    top      of a vertex: the node from which `above` leads to its top node
    label    FREE, OUTER or INNER, of top nodes; GONE, of a blossom that this search has expanded;
             of a node that was absorbed by a blossom of the tree OUTER
    mate     of the base of a top node: the other end of its matched edge, or -1. Of other vertices
             it has no meaning
    base     of a top node: the vertex whose edge leaves the node, or which is unmatched
    above    parent in the union-find forest of nodes; itself if none. Between two searches no
             node has one. A node that is absorbed by a blossom of the tree is below that one. A
             blossom that is expanded is below its largest child, whose vertices keep their `top`
    seat     of a vertex in a blossom that this search has expanded: its place in `seats`
             (`seats.py`); else -1

``rings``, another record for each node, for what is needed less often:

    parent, child        the blossom around a node, or -1; of a blossom, one of its children
    next, here, there    the next child in the ring, and the edge that leads to it: from vertex
                         `here` of this node to vertex `there` of the next one
    first, last          the first and the last of a node's vertices
    after                of a vertex: the one after it in the node, so that the vertices of each
                         child are in one piece
    size                 the number of vertices
    mark                 a stamp of the walk that looks for the common node of two paths
    floor                where the seats of a vertex begin

The mates of vertices inside blossoms follow from the bases (`blossoms.settle`), and are written
when a blossom is expanded.

``state``, int64, one for each of the names below; ``work`` has the other arrays of a search:

    keys, codes    the heap of events, by the distance at which they happen (`search`)
    outer          the vertices of OUTER nodes
    touched        the vertices that have a `reach`
    tree           the nodes that have had a label, or a time
    ring           scratch for the children of a blossom
    spare          a stack of the numbers of blossoms that are not in use
    seats          the trees of `seats.py`
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel

__all__ = [
    "BOUND",
    "DISTANCE",
    "END",
    "EXPANDED",
    "FAR",
    "FREE",
    "GIVEN_UP",
    "GONE",
    "INNER",
    "LAST",
    "LEVEL",
    "NONE",
    "NOTHING",
    "OUTER",
    "OUTERS",
    "PATIENCE",
    "ROOT",
    "SCANNED",
    "SEARCHES",
    "SEATED",
    "SHRUNK",
    "SPARES",
    "STAMP",
    "STATES",
    "TOUCHED",
    "TREE",
    "UNMATCHED",
    "WAITING",
    "find",
    "new_nodes",
    "new_work",
    "top_of",
]

NODE = np.dtype(
    [(name, np.int64) for name in ("dual", "time", "reach", "edge", "link")]
    + [(name, np.int32) for name in ("top", "label", "mate", "base", "above", "seat")]
)
RING = np.dtype(
    [(name, np.int32) for name in ("parent", "child", "next", "here", "there", "first", "last")]
    + [(name, np.int32) for name in ("after", "size", "mark", "floor")]
)

NONE = -1
FREE, OUTER, INNER, GONE = range(4)
FAR = 2**62
"""A distance beyond all others."""
NOTHING = -FAR
"""The end of a search that is given up."""

(
    LEVEL,      # the dual at which a vertex may be unmatched
    PATIENCE,   # edges that a search looks at before it is given up
    LAST,       # the count of edges looked at at which this one is
    ROOT,       # the first vertex that has not been looked at for a search
    DISTANCE,   # how far the duals of the tree have moved
    BOUND,      # the distance at which the search ends, as far as is known; FAR if it is not known
    END,        # how it ends then: v << 32 | place of an edge; -1 - v: v becomes unmatched; NOTHING
    WAITING,    # events on the heap
    OUTERS,     # length of `outer`
    TOUCHED,    # length of `touched`
    TREE,       # length of `tree`; 0 between two searches
    SPARES,     # length of `spare`
    SEATED,     # length of `seats`
    STAMP,      # the last stamp
    UNMATCHED,  # unmatched vertices
    GIVEN_UP,   # searches of this round that were given up
    SEARCHES,   # counts for the statistics: searches,
    SHRUNK,     # blossoms made,
    EXPANDED,   # blossoms expanded,
    SCANNED,    # and edges looked at
    STATES,
) = range(21)  # fmt: skip


def new_nodes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The records of n unmatched vertices, and room for their blossoms.

    There are at most (n - 1) / 2 of these at a time, and as many that a search has expanded.
    """
    nodes, rings = np.empty(2 * n, NODE), np.empty(2 * n, RING)
    numbers = np.arange(2 * n, dtype=np.int32)
    nodes["dual"], nodes["time"], nodes["reach"] = 0, 0, FAR
    nodes["label"], nodes["mate"] = FREE, NONE
    for name in ("top", "base", "above"):
        nodes[name] = numbers
    nodes["seat"] = NONE
    for name in ("parent", "child", "mark"):
        rings[name] = NONE
    rings["first"] = rings["last"] = numbers
    rings["size"] = 1
    return nodes, rings


def new_work(n: int, nnz: int) -> tuple[np.ndarray, ...]:
    """The arrays of searches, and the state before the first one.

    Each edge is put on the heap at most once from either end; `search.advance` sees that there is
    room for more.
    """
    room = nnz + 4 * n + 1
    spare = np.arange(2 * n - 1, n - 1, -1, dtype=np.int32)
    state = np.zeros(STATES, np.int64)
    state[SPARES] = spare.size
    return (
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(6 * n, np.int32),
        np.empty(n, np.int32),
        spare,
        np.empty(2 * n, np.int32),
        state,
    )


@kernel
def find(nodes, node):
    """The top node of a node of the tree."""
    above = nodes[node].above
    while above != node:
        further = nodes[above].above
        nodes[node].above = further
        node, above = further, nodes[further].above
    return node


@kernel
def top_of(nodes, vertex):
    """The top node of a vertex."""
    return find(nodes, nodes[vertex].top)
