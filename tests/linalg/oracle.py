"""The Dulmage–Mendelsohn decomposition by SciPy's matching and networkx, for small patterns."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

PATTERNS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0.05, 0.6)).flatmap(
    lambda drawn: hnp.arrays(np.int8, drawn[:2], elements=st.floats(0, 1).map(drawn[2].__gt__))
)
SQUARES = st.tuples(st.integers(0, 10), st.floats(0.05, 0.5)).flatmap(
    lambda drawn: hnp.arrays(
        np.int8, (drawn[0], drawn[0]), elements=st.floats(0, 1).map(drawn[1].__gt__)
    )
)


def decomposition(A):
    """The coarse parts and the square blocks, each as a frozenset of rows and one of columns."""
    A = np.asarray(A) != 0
    nrows, ncols = A.shape
    mate = dict.fromkeys(range(nrows), -1)
    if A.any():
        mate |= dict(enumerate(maximum_bipartite_matching(csr_array(A), "column").tolist()))
    arcs = nx.DiGraph()
    arcs.add_nodes_from([("r", i) for i in range(nrows)] + [("c", j) for j in range(ncols)])
    arcs.add_edges_from((("r", i), ("c", j)) for i, j in np.argwhere(A).tolist())
    arcs.add_edges_from((("c", j), ("r", i)) for i, j in mate.items() if j >= 0)
    free_rows = [("r", i) for i, j in mate.items() if j < 0]
    free_cols = [("c", j) for j in range(ncols) if j not in mate.values()]
    below = set().union(free_rows, *(nx.descendants(arcs, v) for v in free_rows))
    above = set().union(free_cols, *(nx.ancestors(arcs, v) for v in free_cols))
    middle = arcs.subgraph(set(arcs) - below - above)
    blocks = {_sides(block) for block in nx.strongly_connected_components(middle)}
    return _sides(above), blocks, _sides(below)


def of_result(d):
    """The same of a result of dmperm."""
    p, q, r, s, cc, rr = (part.tolist() for part in d)
    blocks = {
        (frozenset(p[r[k] : r[k + 1]]), frozenset(q[s[k] : s[k + 1]])) for k in range(len(r) - 1)
    }
    above = frozenset(p[: rr[1]]), frozenset(q[: cc[2]])
    below = frozenset(p[rr[2] :]), frozenset(q[cc[3] :])
    return above, blocks - {above, below}, below


def _sides(vertices):
    return tuple(frozenset(v for side, v in vertices if side == kind) for kind in "rc")
