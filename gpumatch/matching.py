"""The front door to maximum cardinality matching."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, Unpack, overload

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.contracts import MatchingTask
from gpumatch.dispatch.arguments import checked_flag, checked_seed, checked_threads, refuse_unknown
from gpumatch.dispatch.backends import choose_matching
from gpumatch.dispatch.by_device import count_matched, no_mates
from gpumatch.dispatch.named_arguments import AnyMatchingArguments, MatchingArguments
from gpumatch.dispatch.registry import STARTS, BackendName, StartName
from gpumatch.interop.tensors import is_tensor
from gpumatch.numeric.arrays import array_of, first_true
from gpumatch.problems import b_matching
from gpumatch.problems.initial import initial_pairs
from gpumatch.results.b_matching import BMatching
from gpumatch.results.matching import Matching
from gpumatch.results.tensors import solve_tensors
from gpumatch.running.control import Callback, Control, attach_result, with_interrupts_result


@overload
def maximum_matching(
    A: Any,
    *,
    algorithm: Literal["auto", "apfb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs", "apsb-gpubfs-wr"] = (
        ...
    ),
    row_capacity: None = None,
    col_capacity: None = None,
    **arguments: Unpack[AnyMatchingArguments],
) -> Matching: ...
@overload
def maximum_matching(
    A: Any,
    *,
    algorithm: Literal["engine", "hk", "hkdw", "pfp", "p-hk", "p-pfp", "p-dbfs"],
    row_capacity: None = None,
    col_capacity: None = None,
    **arguments: Unpack[MatchingArguments],
) -> Matching: ...
@overload
def maximum_matching(
    A: Any, *, algorithm: str = ..., init: StartName = ..., backend: BackendName = ...,
    initial: Any = ..., row_nodes: Iterable[Hashable] | None = ..., row_capacity: Any = ...,
    col_capacity: Any = ..., seed: int = ..., threads: int | None = ...,
    time_limit: float | None = ..., progress: bool = ..., callback: Callback | None = ...,
) -> BMatching: ...  # fmt: skip
@with_interrupts_result
def maximum_matching(
    A: Any,
    *,
    algorithm: str = "auto",
    init: StartName = "auto",
    backend: BackendName = "auto",
    initial: Any = None,
    row_nodes: Iterable[Hashable] | None = None,
    row_capacity: Any = None,
    col_capacity: Any = None,
    seed: int = 0,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
    **options: str,
) -> Matching | BMatching:
    """Match as many rows to columns as the graph's edges allow.

    With capacities, take as many edges as possible, so that no vertex is in more of them than its
    capacity: a maximum b-matching.

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
    row_capacity, col_capacity : int, integer array, or mapping, optional
        How many edges each row and each column may be in: one number for all, an array of length
        nrows or ncols, or for a networkx graph a mapping of nodes, in which those that are missing
        have 1. If only one of the two is given, the other side's are 1. b-matchings are found on
        the CPU, by the algorithm ``"engine"``; `initial` is a BMatching, or a pair of arrays: the
        rows and the columns of its edges.
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
        The algorithm's own: ``launch="ct"|"mt"``, ``host_loop="batch"|"level"`` and
        ``frontier="scan"|"queue"`` for the GPU algorithms of Deveci et al.

    Returns
    -------
    Matching, or BMatching if there are capacities
        In NumPy arrays for a graph on the host, in CuPy arrays for one on a device, and in torch
        tensors or JAX arrays for one of these. Its size never depends on algorithm, backend or
        seed. Which of several maximum matchings it is may depend on them.

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
    ``"hkdw"``. The references are in `algorithms`. A b-matching takes O(√m m) at worst (Even,
    Tarjan, SIAM J. Comput. 1975).

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

    Row 0 may have two columns, and each column one row:

    >>> b = gm.maximum_matching(A, row_capacity=[2, 1, 1])
    >>> b.edges().tolist()
    [[0, 1], [2, 0]]
    """
    refuse_unknown(maximum_matching, "matching", options)
    progress = checked_flag(progress, "progress")
    request = _Request(
        Control(time_limit=time_limit, progress=progress, callback=callback),
        algorithm, init, backend, options, checked_seed(seed), checked_threads(threads),
    )  # fmt: skip
    run: Callable[..., Any] = functools.partial(_solve, request)
    arguments: dict[str, Any] = {"initial": initial, "row_nodes": row_nodes}
    if row_capacity is not None or col_capacity is not None:
        run = functools.partial(_solve_with_capacities, request)
        arguments |= {"row_capacity": row_capacity, "col_capacity": col_capacity}
    return solve_tensors(run, A, **arguments) if is_tensor(A) else run(A, **arguments)


class _Request(NamedTuple):
    """The arguments of a call that say how to find a matching, checked but for the names."""

    control: Control
    algorithm: str
    init: str
    backend: str
    options: Mapping[str, str]
    seed: int
    threads: int


def _solve(
    request: _Request, A: Any, *, initial: Any, row_nodes: Iterable[Hashable] | None
) -> Matching:
    """The matching of a graph whose arrays are no tensors."""
    control, algorithm, init, backend, options, seed, threads = request
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
        if control.shows_bar:
            control.close(count_matched(mates[0]))
    return _result(given, mates, proven, stats, control)


def _solve_with_capacities(
    request: _Request,
    A: Any,
    *,
    initial: Any,
    row_nodes: Iterable[Hashable] | None,
    row_capacity: Any,
    col_capacity: Any,
) -> BMatching:
    """The b-matching of a graph whose arrays are no tensors."""
    if request.options:
        raise TypeError(f"a b-matching takes no option {next(iter(request.options))!r}")
    with request.control.part("graph"):
        given = as_bipartite(A, row_nodes)
    return b_matching.solve(
        given,
        row_capacity,
        col_capacity,
        request.control,
        algorithm=request.algorithm,
        init=request.init,
        backend=request.backend,
        initial=initial,
    )


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
