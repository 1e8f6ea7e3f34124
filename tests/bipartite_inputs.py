"""One small graph in every form that is taken, and what a graph made of them must hold."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import scipy.sparse as sp

from gpumatch import BipartiteGraph

# The graph that every input below stands for: an empty row, an empty column.
DENSE = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
INDPTR, INDICES = [0, 2, 2, 4], [1, 3, 0, 1]
COL_INDPTR, COL_INDICES = [0, 1, 3, 3, 4], [2, 0, 2, 0]
ROWS, COLS = [0, 0, 2, 2], [1, 3, 0, 1]
SHAPE = (3, 4)


def arrays(dtype=np.int32):
    return np.array(INDPTR, dtype), np.array(INDICES, dtype)


def spaced(values):
    """The values as every other entry of a larger array."""
    wide = np.full(2 * len(values), 99, np.int32)
    wide[::2] = values
    return wide[::2]


def read_only(values):
    array = np.array(values, np.int32)
    array.flags.writeable = False
    return array


class DLPackOnly:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, values):
        self.array = np.array(values)

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def names(vertices, letter):
    return [f"{letter}{i}" for i in range(vertices)]


def networkx_graph(kind=nx.Graph, marked=True):
    """Rows are r0, r1, …, columns c0, c1, …, added in mixed order."""
    G = kind()
    for side, nodes in ((1, names(4, "c")), (0, names(3, "r"))):
        G.add_nodes_from(nodes, **({"bipartite": side} if marked else {}))
    G.add_edges_from((f"c{c}", f"r{r}") for r, c in zip(ROWS, COLS))
    return G


def doubled(G):
    G.add_edges_from(list(G.edges()))
    return G


FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]
SOURCES = {
    **{
        f"{kind.__name__} {form}": lambda kind=kind, form=form: kind(DENSE).asformat(form)
        for kind, form in itertools.product((sp.csr_array, sp.csr_matrix), FORMATS)
    },
    "tuple of 3": lambda: (*arrays(), SHAPE),
    "tuple of 4": lambda: (*arrays(), np.ones(4), SHAPE),
    "tuple of lists": lambda: (INDPTR, INDICES, list(SHAPE)),
    "shape as array": lambda: (*arrays(), np.array(SHAPE)),
    **{
        f"{dtype} indices": lambda dtype=dtype: (*arrays(dtype), SHAPE)
        for dtype in ("int8", "uint8", "int16", "uint32", "int64", "uint64", ">i4", ">i8", "<u2")
    },
    "int64 offsets only": lambda: (arrays(np.int64)[0], arrays()[1], SHAPE),
    "spare room": lambda: (INDPTR, [*INDICES, -7, 10**6], SHAPE),
    "unsorted": lambda: (INDPTR, [3, 1, 1, 0], SHAPE),
    "unsorted >u8": lambda: (np.array(INDPTR, ">u8"), np.array([3, 1, 1, 0], ">u8"), SHAPE),
    "duplicates": lambda: ([0, 3, 3, 6], [1, 3, 1, 0, 0, 1], SHAPE),
    "many duplicates": lambda: ([0, 513, 513, 515], [1] * 256 + [3] * 257 + [0, 1], SHAPE),
    "non-contiguous": lambda: (spaced(INDPTR), spaced(INDICES), SHAPE),
    "read-only": lambda: (read_only(INDPTR), read_only(INDICES), SHAPE),
    "DLPack": lambda: (DLPackOnly(INDPTR), DLPackOnly(INDICES), SHAPE),
    "COO with duplicates": lambda: sp.coo_array(
        (np.ones(6), ([*ROWS, 0, 2], [*COLS, 1, 1])), shape=SHAPE
    ),
    "COO whose duplicates cancel": lambda: sp.coo_array(
        ([1.0, -1.0, 1, 1, 1], ([0, *ROWS], [1, *COLS])), shape=SHAPE
    ),
    **{
        f"dense {dtype}": lambda dtype=dtype: DENSE.astype(dtype)
        for dtype in ("bool", "int8", "uint64", "float16", "float64", "complex128", ">f4")
    },
    "dense NaN": lambda: np.where(DENSE, np.nan, 0),
    "dense inf": lambda: np.where(DENSE, -np.inf, -0.0),
    "dense by columns": lambda: np.asfortranarray(DENSE),
    "dense view": lambda: np.repeat(DENSE, 2, axis=1)[:, ::2],
    "dense DLPack": lambda: DLPackOnly(DENSE),
    "np.matrix": lambda: np.asmatrix(DENSE),
    "lists": lambda: DENSE.tolist(),
    "BipartiteGraph": lambda: BipartiteGraph(DENSE),
    "networkx": networkx_graph,
    "networkx directed": lambda: networkx_graph(nx.DiGraph),
    "networkx parallel edges": lambda: doubled(networkx_graph(nx.MultiGraph)),
    "networkx both": lambda: doubled(networkx_graph(nx.MultiDiGraph)),
}


def assert_is_the_graph(graph):
    assert (graph.shape, graph.nrows, graph.ncols, graph.nnz) == (SHAPE, 3, 4, 4)
    found = graph.indptr, graph.indices, graph.col_indptr, graph.col_indices
    for array, expected in zip(found, (INDPTR, INDICES, COL_INDPTR, COL_INDICES)):
        assert array.tolist() == expected
        assert array.dtype == np.int32
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned
