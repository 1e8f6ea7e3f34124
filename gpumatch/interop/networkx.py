"""Bipartite networkx graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np


class LabelledEdges(NamedTuple):
    """The row and the column of each edge, and the nodes that are the rows and the columns."""

    rows: np.ndarray
    cols: np.ndarray
    row_labels: list[Hashable]
    col_labels: list[Hashable]


def labelled_edges(G: Any, row_nodes: Iterable[Hashable] | None) -> LabelledEdges:
    """The edges of a networkx graph, its sides told apart as `BipartiteGraph.from_networkx` says.

    Raises
    ------
    ValueError
        If an edge joins two rows or two columns, or the two sides cannot be told apart.
    """
    rows, cols = _sides(G, row_nodes)
    number = {node: i for i, node in enumerate(rows)}
    number.update((node, ~i) for i, node in enumerate(cols))  # columns count -1, -2, …
    ends = np.array([(number[u], number[v]) for u, v in G.edges()], dtype=np.int64).reshape(-1, 2)
    ends = np.sort(ends, axis=1)  # column first
    one_side = (ends[:, 0] < 0) == (ends[:, 1] < 0)
    if one_side.any():
        u, v = list(G.edges())[int(one_side.argmax())]
        raise ValueError(f"the graph is not bipartite: edge ({u!r}, {v!r}) stays on one side")
    return LabelledEdges(ends[:, 1], ~ends[:, 0], rows, cols)


def networkx_graph(edges: LabelledEdges) -> Any:
    """The networkx graph of these edges: what `labelled_edges` reads them and their order from."""
    import networkx as nx

    rows, cols, row_labels, col_labels = edges
    G = nx.Graph()
    G.add_nodes_from(row_labels, bipartite=0)
    G.add_nodes_from(col_labels, bipartite=1)
    G.add_edges_from((row_labels[r], col_labels[c]) for r, c in zip(rows.tolist(), cols.tolist()))
    return G


def _sides(G: Any, row_nodes: Iterable[Hashable] | None) -> tuple[list[Hashable], list[Hashable]]:
    if row_nodes is None:
        side = G.nodes(data="bipartite")
        if all(mark in (0, 1) for _, mark in side):
            return [n for n, mark in side if mark == 0], [n for n, mark in side if mark == 1]
        import networkx as nx

        try:
            row_nodes = nx.bipartite.sets(G)[0]
        except nx.NetworkXException as exc:
            raise ValueError(
                f"the sides of the networkx graph can't be told apart ({exc}): give its nodes the "
                "attribute bipartite=0 or 1, or use BipartiteGraph.from_networkx(G, row_nodes)"
            ) from exc
        row_nodes = [node for node in G if node in row_nodes]
    rows = list(dict.fromkeys(row_nodes))
    known = set(rows)
    missing = known.difference(G)
    if missing:
        raise ValueError(f"row_nodes: {next(iter(missing))!r} is not a node of the graph")
    return rows, [node for node in G if node not in known]
