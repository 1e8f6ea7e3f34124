"""The front door to maximum cardinality matching."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from typing import Any

from gpumatch.arguments import checked_flag, checked_seed, checked_threads, refuse_unknown
from gpumatch.arrays import array_of, first_true
from gpumatch.backends import choose_matching
from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.contracts import MatchingTask
from gpumatch.control import Callback, Control, attach_result, with_interrupts_result
from gpumatch.homes import count_matched, cover_for, no_mates
from gpumatch.initial import initial_pairs
from gpumatch.interop.tensors import is_tensor
from gpumatch.pairs import Pairs
from gpumatch.registry import STARTS, BackendName, StartName
from gpumatch.tensors import solve_tensors


@with_interrupts_result
def maximum_matching(
    A: Any,
    *,
    algorithm: str = "auto",
    init: StartName = "auto",
    backend: BackendName = "auto",
    initial: Any = None,
    row_nodes: Iterable[Hashable] | None = None,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    **options: str,
) -> Matching:
    """Match as many rows to columns as the graph's edges allow.

    Parameters
    ----------
    A : BipartiteGraph, sparse or dense matrix or tensor, tuple of CSR arrays, or networkx graph
        Anything `BipartiteGraph` is made from. Stored entries are edges, stored zeros too; values
        are not looked at.
    algorithm : str
        ``"auto"`` or a name that `algorithms` lists. ``"auto"`` is ``"engine"``, and with
        ``backend="reference"`` it is ``"apfb-gpubfs-wr"``. With options that these do not take, it
        is the first algorithm that takes them.
    init : {"auto", "cheap", "karp-sipser", "min-degree", "none"}
        The start that is extended to a maximum matching.
    backend : {"auto", "cpu", "cuda", "reference"}
        Where to run. ``"auto"``: data on a device stays there; data on the host goes to the GPU
        if there is one and the graph is large enough to repay the copy.
    initial : Matching, or integer array or list of length nrows, optional
        A matching to begin from: ``initial[r]`` is row r's column, -1 for none.
    row_nodes : iterable of nodes, optional
        The nodes of a networkx graph that are rows; by default, as `BipartiteGraph.from_networkx`
        says.
    seed : int
        Fixes the choices that are free. With ``threads=1`` it fixes the CPU's result.
    threads : int, optional
        CPU threads; by default all cores this process may use.
    time_limit : float, optional
        Seconds after which the best matching so far is returned, with ``proven=False``.
    progress : bool
        Show a progress bar.
    callback : callable, optional
        Called as ``callback(progress)`` between pieces of work, with ``progress.matched``,
        ``progress.phase``, ``progress.seconds``, and ``progress.compiling``: those of the seconds
        in which code was compiled. If it returns anything true, the run ends as with `time_limit`.
    **options
        The algorithm's own: ``launch="ct"|"mt"`` and ``host_loop="batch"|"level"`` for the GPU
        algorithms of Deveci et al., ``frontier="scan"|"queue"`` for those of them with GPUBFS-WR.

    Returns
    -------
    Matching
        In NumPy arrays for a graph on the host, in CuPy arrays for one on a device, and in torch
        tensors for a tensor. Its size never
        depends on algorithm, backend or seed. Which of several maximum matchings it is may depend
        on them.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong; the message names it.
    RuntimeError
        If ``backend="cuda"`` finds no usable GPU.
    MemoryError
        If the GPU has too little free memory; raised before any work.
    KeyboardInterrupt
        On Ctrl-C, with the best matching so far as attribute ``result``; None if it came before
        the start.

    Notes
    -----
    O(nm) at worst for n vertices and m edges with every algorithm, O(√n m) with ``"hk"`` and
    ``"hkdw"``. The references are in `algorithms`.

    Examples
    --------
    >>> import gpumatch as gm
    >>> from scipy.sparse import csr_array
    >>> A = csr_array([[1, 1, 0], [1, 0, 0], [1, 0, 0]])
    >>> m = gm.maximum_matching(A)
    >>> m.size, m.proven
    (2, True)
    >>> gm.verify(A, m).size
    2
    """
    refuse_unknown(maximum_matching, "matching", options)
    progress = checked_flag(progress, "progress")
    control = Control(time_limit=time_limit, progress=progress, callback=callback)
    threads, seed = checked_threads(threads), checked_seed(seed)
    if is_tensor(A):
        again = functools.partial(
            maximum_matching, algorithm=algorithm, init=init, backend=backend, seed=seed,
            threads=threads, time_limit=time_limit, progress=progress, callback=callback, **options,
        )  # fmt: skip
        return solve_tensors(again, A, initial=initial, row_nodes=row_nodes)
    with control.part("graph"):
        given = as_bipartite(A, row_nodes)
    choice, start_name = choose_matching(
        algorithm, init, backend, options, on_device=given.on_device, nnz=given.nnz
    )
    start, search = STARTS[start_name][choice.backend].run_with({}), choice.search()
    with control.part("transfer"):
        graph = given.to_device() if choice.backend == "cuda" else given.to_host()
    mates = _initial_mates(initial, graph)
    task = MatchingTask(graph, *mates, control, threads, seed)
    control.total = min(graph.shape)
    stats: dict[str, Any] = {**choice.names(), "init": start_name, **choice.options}
    stats["start_size"] = 0 if initial is None else count_matched(mates[0])

    proven = False
    try:
        with control.part("start"):
            go_on = not control.tick(stats["start_size"]) and start(task)
            stats["start_size"] = count_matched(mates[0])
        if go_on and not control.tick(stats["start_size"]):
            with control.part("search"):
                proven = search(task)
    except KeyboardInterrupt as exc:
        attach_result(exc, _result(given, mates, False, stats, control))
        raise
    finally:
        if progress:
            control.close(count_matched(mates[0]))
    return _result(given, mates, proven, stats, control)


class Matching(Pairs):
    """A matching of a bipartite graph, with what is needed to prove it maximum.

    Attributes
    ----------
    row_to_col : int32 array, length nrows
        The column of each row, -1 if the row is unmatched.
    col_to_row : int32 array, length ncols
        The row of each column, -1 if the column is unmatched.
    row_ind, col_ind : int64 arrays
        The matched pairs, by row.
    unmatched_rows, unmatched_cols : int64 arrays, or lists of nodes for a networkx graph
        All others.
    size : int
        Number of matched edges.
    proven : bool
        Whether the algorithm ran to its end, so that the matching is maximum.
    stats : dict
        ``algorithm``, ``backend``, ``init``, ``start_size``, ``phases``, ``levels``, ``seconds``
        by part, ``compilation`` among them, and ``trace``: one dict a phase.

    Notes
    -----
    It can be pickled. The pickle has the arrays and the cover, not the graph.
    """

    def __init__(
        self,
        graph: BipartiteGraph,
        row_to_col: Any,
        col_to_row: Any,
        *,
        proven: bool,
        stats: dict[str, Any],
    ) -> None:
        super().__init__(row_to_col, col_to_row, (graph.row_labels, graph.col_labels))
        self.proven = proven
        self.stats = stats
        self._graph: BipartiteGraph | None = graph
        self._cover: tuple[Any, Any] | None = None

    def __repr__(self) -> str:
        proof = "maximum" if self.proven else "not proven maximum"
        return f"Matching(size {self.size}, {proof}, {self.stats.get('algorithm')})"

    def cover_ind(self) -> tuple[Any, Any]:
        in_rows, in_cols = self._cover_marks()
        return in_rows.nonzero()[0], in_cols.nonzero()[0]

    def independent_set(self) -> tuple[Any, Any]:
        """The rows and the columns of a maximum independent set: those outside the vertex cover.

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

        Their rows and columns have the numbers that they have in their own graph.

        Raises
        ------
        ValueError
            If the graph is no batch.
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


# -- arguments -----------------------------------------------------------------------------------


def _initial_mates(initial: Any, graph: BipartiteGraph) -> tuple[Any, Any]:
    """Both mate arrays on the graph's device, holding `initial` or nothing."""
    row_to_col, col_to_row = no_mates(graph)
    if initial is not None:
        rows, cols = initial_pairs(initial, graph.shape, graph.xp)
        stray = first_true(~graph.find(rows, cols)[1])
        if stray is not None:
            row, col = int(rows[stray]), int(cols[stray])
            raise ValueError(f"initial: row {row} is matched to column {col}, but that is no edge")
        row_to_col[rows], col_to_row[cols] = cols, rows
    return row_to_col, col_to_row


# -- results -------------------------------------------------------------------------------------


def _result(
    given: BipartiteGraph,
    mates: tuple[Any, Any],
    proven: bool,
    stats: dict[str, Any],
    control: Control,
) -> Matching:
    """The Matching, in arrays like the caller's."""
    row_to_col, col_to_row = mates
    if not proven:
        _drop_half_pairs(row_to_col, col_to_row)
        _drop_half_pairs(col_to_row, row_to_col)
        proven = count_matched(row_to_col) == min(given.shape)
    xp = given.xp
    return Matching(
        given,
        array_of(xp, row_to_col),
        array_of(xp, col_to_row),
        proven=proven,
        stats=stats | control.statistics(),
    )


def _drop_half_pairs(mates: Any, partners: Any) -> None:
    """Unmatch every vertex whose mate does not name it: the ends of a stopped augmentation."""
    mates[mates < 0] = -1
    vertices = (mates >= 0).nonzero()[0]
    mates[vertices[partners[mates[vertices]] != vertices]] = -1
