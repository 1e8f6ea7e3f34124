"""Pairs that join the trees of a flow into one tree, so that hardly any pivot must.

The pairs with flow are a forest, in which duals are known but for a shift of each tree. Prices of
an auction tell these shifts nearly. Without more, each tree would hang at the root, far from its
duals, and a pivot would bring it to its place. Here trees join one after the other instead: all
that have not joined are shifted together, until a pair of one of their rows with a column that has
joined is tight. This pair, which carries nothing, is that tree's way to the root. If all pairs with
flow are tight and none costs less than its duals, that stays so, and the tree is optimal at once.

It is Prim's algorithm on trees. The shift of a tree is the key in the heap, less that of the tree
of the column, as in Dijkstra's.

    part[w]       the tree of node w: a node that stands for it
    shift[w]      of such a node: what is added to the duals of its rows and taken from its columns'
    way[w]        of such a node: the best arc by which its tree may join
    first, after  the nodes of a tree as a list; NONE at its end
    begins, into  the arcs to column j are into[begins[j]] to into[begins[j + 1]]
    keys, heap    a binary heap of trees by the shift at which they would join

Reference: Megiddo, *On finding primal- and dual-optimal bases*, ORSA Journal on Computing 3, 1991.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpumatch.cpu.numba_tools.compiled import kernel
from gpumatch.cpu.searches.heap import drop_top, push
from gpumatch.running.kept_memory import kept_empty

__all__ = ["ways_between"]

NONE = -1
BUDGET = 2**22
"""Arcs that a kernel looks at before it returns to Python: a tenth of a second."""

Tree = tuple[np.ndarray, ...]


def ways_between(
    arcs: tuple[np.ndarray, np.ndarray, np.ndarray],
    count: int,
    tree: Tree,
    dual: np.ndarray,
    price: np.ndarray,
    beat: Callable[[], None],
) -> np.ndarray:
    """The arcs without flow by which the trees of a planted flow join that of the root.

    The arrays are those of `simplex`. Trees of no mass have no arcs, and none of these. ``price``
    has nearly right duals of the columns. ``beat`` may raise Stopped.
    """
    nodes, nrows = dual.size, dual.size - 1 - price.size
    part, first, after, way = np.empty((4, nodes), np.int32)
    shift, best = np.empty((2, nodes))
    begins, into = np.zeros(price.size + 2, np.int64), kept_empty(count, np.int32)
    list_arcs(
        arcs, count, nrows,  # IN
        begins, into,  # OUT
    )  # fmt: skip
    label(
        tree, dual, price,  # IN
        (part, shift, first, after, best, way),  # OUT
    )  # fmt: skip
    heap, keys = kept_empty(count + 2, np.int32), kept_empty(count + 2, np.float64)
    heap[0], keys[0], waiting = nodes - 1, 0.0, 1
    while waiting:
        waiting = join(
            arcs, begins, into, dual,  # IN
            (part, shift, first, after, best, way), (keys, heap),  # OUT
            waiting, nrows, BUDGET,  # IN
        )  # fmt: skip
        beat()
    return way[(best == -np.inf) & (way >= 0)].astype(np.int64)


@kernel
def list_arcs(arcs, count, nrows, begins, into):
    """List the arcs to each column, but for those of the root. ``begins`` is 0 before."""
    _, heads, _ = arcs
    root = nrows + begins.size - 2
    for one in range(root, count):
        begins[heads[one] - nrows + 2] += 1
    for place in range(2, begins.size):
        begins[place] += begins[place - 1]
    for one in range(root, count):
        place = heads[one] - nrows + 1
        into[begins[place]] = one
        begins[place] += 1


@kernel
def label(tree, dual, price, parts):
    """Find the tree of each node: that of the root has the arcs of the root with flow."""
    _, _, flow, _, child, after_child, _ = tree
    part, shift, first, after, best, way = parts
    parent = tree[0]
    root = parent.size - 1
    nrows = root - price.size
    for node in range(root + 1):
        first[node] = after[node] = way[node] = NONE
        best[node], shift[node], part[node] = np.inf, 0.0, root
    first[root] = root
    top = child[root]
    while top != NONE:
        own = root if flow[top] > 0 else top
        node, total, cols = top, 0.0, 0
        while node != NONE:
            part[node], after[node], first[own] = own, first[own], node
            if node >= nrows:
                total += dual[node] - price[node - nrows]
                cols += 1
            if child[node] != NONE:
                node = child[node]
                continue
            while node != top and after_child[node] == NONE:
                node = parent[node]
            node = NONE if node == top else after_child[node]
        if own != root and cols > 0:
            shift[own] = total / cols
        top = after_child[top]


@kernel
def join(arcs, begins, into, dual, parts, heaps, waiting, nrows, budget):
    """Let trees join in the order of their keys; return how many keys wait in the heap."""
    part, shift, first, after, best, _ = parts
    keys, heap = heaps
    root = part.size - 1
    spent = 0
    while waiting > 0 and spent < budget:
        key, own = keys[0], heap[0]
        waiting -= 1
        drop_top(keys, heap, waiting)
        if best[own] == -np.inf:
            continue
        best[own] = -np.inf
        shift[own] += key
        node = first[own]
        while node != NONE:
            if node == root:
                for row in range(nrows):
                    waiting = _offer(arcs, row, 0.0, dual, parts, heaps, waiting)
                spent += nrows
            elif node >= nrows:
                price = dual[node] - shift[own]
                for place in range(begins[node - nrows], begins[node - nrows + 1]):
                    waiting = _offer(arcs, into[place], price, dual, parts, heaps, waiting)
                spent += begins[node - nrows + 1] - begins[node - nrows]
            node = after[node]
    return waiting


@kernel
def _offer(arcs, one, price, dual, parts, heaps, waiting):
    """Offer an arc to a column of this price as the way of its row's tree; return the keys."""
    part, shift, _, _, best, way = parts
    tails, _, cost = arcs
    row = tails[one]
    own = part[row]
    key = cost[one] - dual[row] - price - shift[own]
    if key < best[own]:
        best[own], way[own] = key, one
        push(heaps[0], heaps[1], waiting, key, own)
        return waiting + 1
    return waiting
