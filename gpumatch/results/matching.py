"""The result of `gpumatch.maximum_matching`."""

from __future__ import annotations

from typing import Any

from gpumatch.bipartite import BipartiteGraph
from gpumatch.dispatch.by_device import cover_for
from gpumatch.results.pairs import Pairs

__all__ = ["Matching"]


class Matching(Pairs):
    """A matching of a bipartite graph, with its proof.

    Attributes
    ----------
    row_to_col : int32 array, length nrows
        The column of each row, -1 if the row is unmatched.
    col_to_row : int32 array, length ncols
        The row of each column, -1 if the column is unmatched.
    row_ind, col_ind : int64 arrays
        The matched pairs, by row.
    unmatched_rows, unmatched_cols : int64 arrays, or lists of nodes for a networkx graph
        The rows and columns in no pair.
    size : int
        Number of matched edges.
    proven : bool
        True if the algorithm has ended by itself, so that the matching is maximum.
    stats : dict
        ``algorithm``, ``backend``, ``init``, ``start_size``, ``phases``, ``levels``, ``seconds``
        by part, ``compilation`` among them, and ``trace``: one dict a phase.

    Notes
    -----
    A matching can be pickled. The pickle has the arrays and the cover, not the graph.
    """

    def __init__(
        self,
        graph: BipartiteGraph | None,
        row_to_col: Any,
        col_to_row: Any,
        *,
        proven: bool,
        stats: dict[str, Any],
        cover: tuple[Any, Any] | None = None,
    ) -> None:
        labels = (None, None) if graph is None else (graph.row_labels, graph.col_labels)
        super().__init__(row_to_col, col_to_row, labels)
        self.proven = proven
        self.stats = stats
        self._graph, self._cover = (
            graph,
            cover,
        )  # marks of a cover; else the graph can have it found

    def __repr__(self) -> str:
        proof = "maximum" if self.proven else "not proven maximum"
        return f"Matching(size {self.size}, {proof}, {self.stats.get('algorithm')})"

    def cover_ind(self) -> tuple[Any, Any]:
        in_rows, in_cols = self._cover_marks()
        return in_rows.nonzero()[0], in_cols.nonzero()[0]

    def independent_set(self) -> tuple[Any, Any]:
        """The rows and the columns outside the vertex cover: a maximum independent set.

        Returns
        -------
        rows, cols : int64 arrays, or lists of nodes for a networkx graph
            No edge joins a row of `rows` to a column of `cols`.

        Raises
        ------
        ValueError
            If the matching is not maximum.
        """
        in_rows, in_cols = self._cover_marks()
        return self._in_nodes((~in_rows).nonzero()[0], (~in_cols).nonzero()[0])

    def split(self) -> list[Matching]:
        """The matchings of the graphs that `BipartiteGraph.batch` has put side by side.

        Each matching has the row and column numbers of its own graph.

        Raises
        ------
        ValueError
            If the graph is not a batch.
        """
        blocks = [] if self._graph is None else self._graph.blocks
        if not blocks:
            raise ValueError("only the matching of a batch can be split")
        found, row, col = [], 0, 0
        for block in blocks:
            row_to_col = self.row_to_col[row : row + block.nrows].copy()
            col_to_row = self.col_to_row[col : col + block.ncols].copy()
            row_to_col[row_to_col >= 0] -= col
            col_to_row[col_to_row >= 0] -= row
            found.append(
                Matching(block, row_to_col, col_to_row, proven=self.proven, stats=self.stats)
            )
            row, col = row + block.nrows, col + block.ncols
        return found

    def _cover_marks(self) -> tuple[Any, Any]:
        """The vertex cover as two bool arrays, found once."""
        if self._cover is None:
            if self._graph is None:
                raise ValueError("the matching was pickled before it was maximum: no cover is kept")
            cover = cover_for(self._graph)
            self._cover = cover(self._graph, self.row_to_col, self.col_to_row)
        return self._cover

    def __getstate__(self) -> dict[str, Any]:
        if self.proven:
            self._cover_marks()
        return {**self.__dict__, "_graph": None}
