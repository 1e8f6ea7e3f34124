"""The GPU's matching engine: the host's side of engine.cu, which says how it works.

The search needs the edges of one side only, and grows trees from the free vertices of that side.
It takes the side with fewer free vertices that have an edge. On a tie it takes the columns, as the
cheap start does, because trees from the side that chose in the start find a path sooner. If the
graph holds one direction only, that one is used unless the other side is much smaller, so that CSR
does not have to be transposed.

If most vertices are in long chains, the graph is contracted first (`chains`). Then the start and
the search run on the contracted graph, and the chains are matched after them.

Device memory in addition to the graph and both mate arrays: 8 bytes a far vertex, 32 a near one (64
with int64 offsets) and 4 a free near one. `chains` states what a contraction needs.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Control, Graph, MatchingTask
from gpumatch.cuda import memory
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Kernels, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board, Cooperative, record_seconds
from gpumatch.cuda.matching import chains, min_degree
from gpumatch.cuda.matching.chains import Census, Contraction
from gpumatch.cuda.surveys import count_matched

_KERNEL = "matching_engine<{Offset}>"
SOURCE = Source(
    "matching/engine.cu",
    ("survey<{Offset}>", _KERNEL),
    {"Offset": OFFSETS},
    structs=("State", "Far", "Member<{Offset}>", "Engine<{Offset}>"),
    cooperative=True,
)

_BLOCK = SOURCE.constant("kBlock")
_DONE = SOURCE.constant("kDone")
_TRACE = SOURCE.constant("kTraceLength"), 2  # {levels, found} of each phase
_STEPS_A_LAUNCH = 256  # the host looks in between: progress, time limit, Ctrl-C
_PARTS = ("collect", "wide levels", "narrow levels", "augment", "release")
_MUCH_SMALLER = 4  # a side this many times smaller is worth a transposition


class _Side(NamedTuple):
    """The near side of a search: its edges, its mates and the mates of the far side."""

    indptr: cp.ndarray
    indices: cp.ndarray
    mate: cp.ndarray
    far_mate: cp.ndarray


def run(task: MatchingTask) -> bool:
    """Extend the matching to a maximum one; False when `control` stops it.

    Which of several maximum matchings is found depends on the order in which the device runs its
    threads. `seed` and `threads` have no influence on it.
    """
    survey = _survey(task.graph, *task.mates)
    if min(survey.free_rows, survey.free_cols) and chains.may_pay(task.graph, survey.census):
        contraction = chains.contract(task.graph)
        if contraction is not None:
            return _extend_contracted(task, contraction, survey.matched)
    proven, phases = _extend(task, survey, survey.matched)
    matched = survey.matched
    for levels, found in phases:
        matched += found
        task.control.phase(levels=levels, found=found, matched=matched)
    return proven


def _extend_contracted(task: MatchingTask, contraction: Contraction, matched: int) -> bool:
    """Replace the matching by a maximum one of the contracted graph and of its chains.

    If the run is stopped, the larger matching is kept.
    """
    control, graph, pairs = task.control, contraction.graph, contraction.pairs
    mates = memory.unmatched(graph.nrows), memory.unmatched(graph.ncols)
    own = dataclasses.replace(task, graph=graph, row_to_col=mates[0], col_to_row=mates[1])
    min_degree.run(own)
    survey = _survey(graph, *mates)
    try:
        proven, phases = _extend(own, survey, survey.matched + pairs)
    finally:
        size = count_matched(mates[0]) + pairs
        if size > matched:
            for mate, found in zip(task.mates, contraction.match(*mates)):
                mate[:] = found
    size = max(size, matched)
    control.phase(levels=sum(n for n, _ in phases), found=size - matched, matched=size)
    return proven


def _extend(task: MatchingTask, survey: _Survey, matched: int) -> tuple[bool, list[list[int]]]:
    """Extend the matching to a maximum one, and return the levels and paths of each phase.

    The first result is False when the control stops it. `matched` is the number of pairs that the
    control hears of, before any are found.
    """
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    kernels = kernels_for(SOURCE, Offset=_any_offsets(graph).dtype)
    _, free_rows, free_cols, _ = survey
    if free_rows < free_cols:
        near = _Side(graph.indptr, graph.indices, row_to_col, col_to_row)
    else:
        near = _Side(graph.col_indptr, graph.col_indices, col_to_row, row_to_col)
    search = _Search(kernels, near, min(free_rows, free_cols), matched)
    proven = False
    try:
        search.go_on()
        proven = search.finish(control)
    finally:
        if not proven:
            search.hand_back()
    record_seconds(control, _PARTS, search.board.seen["spent"])
    return proven, search.phases()


class _Survey(NamedTuple):
    """Matched rows, the free rows and free columns that have an edge, and the degrees.

    A side whose edges would have to be made first has more free vertices than there are, and its
    degrees are not counted.
    """

    matched: int
    free_rows: int
    free_cols: int
    census: Census


def _survey(graph: Graph, row_to_col: cp.ndarray, col_to_row: cp.ndarray) -> _Survey:
    """The survey of a graph. The edges of a side that is much smaller are made first."""
    kernels = kernels_for(SOURCE, Offset=_any_offsets(graph).dtype)
    nrows, ncols = graph.shape
    rows = graph.indptr if graph.has_rows or _MUCH_SMALLER * nrows < ncols else None
    cols = graph.col_indptr if graph.has_cols or _MUCH_SMALLER * ncols < nrows else None
    counts = cp.zeros(6, cp.int32)
    kernels["survey<{Offset}>"](
        (blocks_for(max(graph.shape)),),
        (BLOCK,),
        (
            *(_or_null(rows), np.int32(nrows), row_to_col),  # IN
            *(_or_null(cols), np.int32(ncols), col_to_row),
            counts,  # IN, OUT
        ),
    )
    matched, free_rows, free_cols, *degrees = counts.get().tolist()
    beyond = max(graph.shape) + 1
    return _Survey(
        matched,
        beyond if rows is None else free_rows,
        beyond if cols is None else free_cols,
        Census(*degrees),
    )


def _any_offsets(graph: Graph) -> cp.ndarray:
    return graph.indptr if graph.has_rows else graph.col_indptr


def _or_null(array: cp.ndarray | None) -> cp.ndarray | np.uintp:
    return np.uintp(0) if array is None else array


class _Search:
    """The launches of one run; its board's state is a `State` of engine.cu."""

    def __init__(self, kernels: Kernels, near: _Side, free: int, matched: int) -> None:
        nnear, nfar = near.mate.size, near.far_mate.size
        sizes = [kernels.struct(name).nbytes for name in ("Far", "Member")]
        needed = sizes[0] * nfar + 2 * sizes[1] * nnear + 4 * free
        memory.require_memory(needed, "the matching engine")
        self._near = near
        self._far, self._log = (
            cp.empty((count, size), cp.uint8)
            for count, size in ((nfar, sizes[0]), (2 * nnear, sizes[1]))
        )
        self._path_end = cp.empty(free, cp.int32)
        self.board = Board(kernels.struct("State"), _TRACE)
        self._engine = kernels.struct("Engine")(
            indptr=near.indptr,  # IN
            indices=near.indices,
            nnear=nnear,
            nfar=nfar,
            mate=near.mate,  # IN, OUT
            far_mate=near.far_mate,
            far=self._far,  # OUT, then IN
            path_end=self._path_end,
            log=self._log,
            state=self.board.state,
            trace=self.board.trace,
            barrier=self.board.barrier,
        )
        blocks = -(-max(nnear, nfar, 1) // _BLOCK)  # fewer blocks wait less at a barrier
        self._kernel = Cooperative(kernels, _KERNEL, block=_BLOCK, most=blocks)
        self._is_begun = False
        self.board.seen["matched"] = matched
        self.board.tell()

    def phases(self) -> list[list[int]]:
        """Levels and paths of each phase, as far as they are recorded."""
        return self.board.records(int(self.board.seen["phase"]))

    def go_on(self) -> None:
        """Make a bounded number of steps."""
        self._kernel(
            self._engine,  # IN, OUT
            np.int32(_STEPS_A_LAUNCH),  # IN
        )
        self._is_begun = True
        self.board.look()

    def finish(self, control: Control) -> bool:
        """Go on until the engine is done; False when `control` stops it before."""
        seen = self.board.seen
        while seen["stage"] != _DONE:
            if control.tick(int(seen["matched"])):
                return False
            self.go_on()
        return True

    def hand_back(self) -> None:
        """Write the mates of the far side so far; a search that ends does that itself."""
        if self._is_begun:
            self._near.far_mate[:] = self._far.view(cp.int32)[:, 0]
