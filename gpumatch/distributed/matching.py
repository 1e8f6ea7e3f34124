"""The front door to maximum matching of a graph that is divided among ranks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from gpumatch.bipartite import BipartiteGraph, as_bipartite
from gpumatch.dispatch.arguments import check_one_of, checked_flag
from gpumatch.distributed.blocks import Split, agree_on_columns, split_of, taken
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.devices import BACKENDS, take_device
from gpumatch.distributed.forests import Forests
from gpumatch.distributed.results import DistributedMatching
from gpumatch.running.control import Callback, Control, with_interrupts_result
from gpumatch.running.interrupts import InterruptsHeld

__all__ = ["forest_kernels", "graph_of", "maximum_matching"]


@with_interrupts_result
def maximum_matching(
    block: Any,
    *,
    comm: Any = None,
    backend: str = "cpu",
    time_limit: float | None = None,
    progress: bool = False,
    callback: Callback | None = None,
) -> DistributedMatching:
    """Match as many rows to columns as possible, each rank holding some of the rows.

    All ranks of the communicator call it together, each with its own block.

    Parameters
    ----------
    block : matrix, tuple of CSR arrays, ``(function, shape)``, or path of a file
        This rank's rows, with all columns, in rank order: rank 0 has the first rows. Anything that
        `gpumatch.BipartiteGraph` is made from, on the host or, with ``backend="cuda"``, on a GPU.
        Or, the same on all ranks, a function that gives rows ``begin`` to ``end`` of a matrix of
        the shape, called as ``function(begin, end)``; or a .npy file of a dense matrix, which is
        mapped into memory, or a Matrix Market file, of which this rank keeps its rows. Then the
        rows are divided evenly.
    comm : mpi4py communicator, optional
        By default ``MPI.COMM_WORLD``.
    backend : {"cpu", "cuda"}
        Where a rank has its rows: ``"cuda"`` is on a GPU each, as for `assign`.
    time_limit : float, optional
        Seconds after which all ranks return the best matching so far, with ``proven=False``. The
        first rank whose time is up decides.
    progress : bool
        Show a progress bar, on rank 0.
    callback : callable, optional
        As for `gpumatch.maximum_matching`, on each rank. If that of any rank returns anything true,
        all ranks stop.

    Returns
    -------
    DistributedMatching
        This rank's share, in NumPy arrays.

    Raises
    ------
    ValueError, TypeError
        On all ranks, if any rank's block is wrong; the message names the rank.
    ImportError
        If mpi4py is missing.
    KeyboardInterrupt
        On all ranks, after a Ctrl-C on any, with its share so far as attribute ``result``.

    RuntimeError
        On all ranks, if one has no GPU for ``"cuda"``.

    Notes
    -----
    A rank holds its rows' edges, two numbers for each of its rows, three for each column of its
    share, and a byte for each row and each column of the whole graph.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> m = gm.distributed.maximum_matching(np.array([[1, 1], [1, 0]]))
    >>> m.size, m.row_to_col.tolist()  # on one rank
    (2, [1, 0])
    """
    with Communicator(comm) as world:
        shows = checked_flag(progress, "progress") and world.rank == 0
        world.control = Control(time_limit=time_limit, progress=shows, callback=callback)
        check_one_of("backend", backend, BACKENDS)
        if backend == "cuda":
            take_device(world)
        with world.step("graph"):
            graph, rows, cols = graph_of(block, world, backend)
        world.control.total = min(rows.total, cols.total)
        forests = Forests(graph, rows, cols, world, forest_kernels(backend))
        with world.step("start"):
            forests.start()
        with world.step("search"):
            proven = forests.search()
        world.settle()
        if shows:
            world.control.close(forests.matched)
    return world.outcome(_result(forests, backend, proven))


def graph_of(
    block: Any, world: Communicator, backend: str | None = None
) -> tuple[BipartiteGraph, Split, Split]:
    """The graph of this rank's rows and all columns, and how both sides are divided.

    Where the backend has it; without one, where it is given.
    """
    graph = as_bipartite(taken(block, world))
    if graph.on_device and backend == "cpu":
        raise ValueError("block: it is on a GPU: pass backend='cuda', or copy it to the host")
    if backend == "cuda":
        graph = graph.to_device()
    agree_on_columns(graph.ncols, world)
    return graph, split_of(graph.nrows, world), Split.even(graph.ncols, world)


def forest_kernels(backend: str = "cpu") -> ModuleType:
    """What a rank computes by itself for `Forests`."""
    with InterruptsHeld():
        if backend == "cuda":
            from gpumatch.cuda.distributed import forests as on_device

            return on_device
        from gpumatch.cpu.distributed import forests as on_host
    return on_host


def _result(forests: Forests, backend: str, proven: bool) -> DistributedMatching:
    rows, cols, world = forests.rows, forests.cols, forests.world
    stats = {
        "algorithm": "engine",
        "backend": backend,
        "init": "cheap",
        "start_size": forests.start_size,
        **world.statistics(),
        **world.control.statistics(),
    }
    return DistributedMatching(
        (rows.total, cols.total),
        range(rows.slice.start, rows.slice.stop),
        range(cols.slice.start, cols.slice.stop),
        *forests.mates(),
        forests.matched,
        proven=proven,
        cover=forests.cover() if proven else None,
        stats=stats,
    )
