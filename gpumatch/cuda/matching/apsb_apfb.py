"""APsB and APFB on the GPU, with GPUBFS or GPUBFS-WR.

M. Deveci, K. Kaya, B. Uçar, Ü. V. Çatalyürek, "GPU accelerated maximum cardinality matching
algorithms for bipartite graphs", Euro-Par 2013. The kernels are in gpubfs.cuh (Algorithms 2 and 4),
alternate.cuh (Algorithm 3, FixMatching); their headers say what the arrays hold.

`run` is Algorithm 1. There are two forms of its inner loop, with the same kernels:

``host_loop="batch"`` (the default)
    The loop is evaluated on the device: a level's kernel returns at once if the level before has
    inserted nothing (or, with APsB, has found a path). So the host launches a batch of levels, as
    one captured graph, and looks at the flags once a batch.
``host_loop="level"``
    As printed: the host sets the flags, launches one level's kernel, and reads the flags back.

With ``frontier="queue"`` the queue of frontier.cuh drives the same step of GPUBFS or GPUBFS-WR,
many levels in one cooperative launch, or one.

Device memory in addition to the graph and both mate arrays: 4 bytes a row (predecessor) and 4 a
column (levels), 4 more a column for the roots of GPUBFS-WR, and 8 a column for the queues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from gpumatch.contracts import Graph, MatchingTask
from gpumatch.cuda import frontier, memory
from gpumatch.cuda.frontier import LEVELS_A_LAUNCH, DeviceFrontier
from gpumatch.cuda.kernels import BLOCK, OFFSETS, Source, blocks_for, kernels_for
from gpumatch.cuda.launches import Board
from gpumatch.cuda.surveys import count_matched

SCANS = Source(
    "matching/apsb_apfb.cu",
    (
        "init_bfs_array_kernel<false, false>",
        "init_bfs_array_kernel<true, false>",
        "init_bfs_array_kernel<true, true>",
        "next_batch",
        # offsets; roots (WR), the ends' rows in the roots' entries, stop at the shortest (APsB)
        "gpubfs_kernel<{Offset}, false, false, false>",
        "gpubfs_kernel<{Offset}, false, false, true>",
        "gpubfs_kernel<{Offset}, true, false, false>",
        "gpubfs_kernel<{Offset}, true, true, true>",
        "alternate_kernel<false>",
        "alternate_kernel<true>",
        "fix_matching_kernel",
    ),
    {"Offset": OFFSETS},
    structs=("Counters", "Search<{Offset}>"),
)
QUEUES = Source(
    "matching/gpubfs_queue.cu",
    (
        *frontier.KERNELS,
        "search_gpubfs<{Offset}, false, false, false>",  # as SCANS has them
        "search_gpubfs<{Offset}, false, false, true>",
        "search_gpubfs<{Offset}, true, false, false>",
        "search_gpubfs<{Offset}, true, true, true>",
    ),
    {"Offset": OFFSETS},
    structs=(*frontier.STRUCTS, "Search<{Offset}>"),
    cooperative=True,
)

_BATCH = SCANS.constant("kBatch")
_CT_BLOCKS = 256  # the paper's constant number of blocks


class Variant(NamedTuple):
    """One of the paper's algorithms as template arguments of its kernels."""

    roots: bool  # GPUBFS-WR: a tree that has found a path is not grown further
    paths: bool  # its root's entry names the path's end, and Alternate walks only from there
    shortest: bool  # APsB: a search ends with the level that finds paths

    @property
    def start_level(self) -> int:
        """L0, as kStart in gpubfs.cuh."""
        return 2 if self.paths else 0


VARIANTS = {
    "apfb-gpubfs": Variant(roots=False, paths=False, shortest=False),
    "apfb-gpubfs-wr": Variant(roots=True, paths=False, shortest=False),
    "apsb-gpubfs": Variant(roots=False, paths=False, shortest=True),
    "apsb-gpubfs-wr": Variant(roots=True, paths=True, shortest=True),
}


def run(
    task: MatchingTask,
    *,
    algorithm: str,
    launch: str,
    host_loop: str = "batch",
    frontier: str = "scan",
) -> bool:
    """Extend the matching to a maximum one (Algorithm 1); False when `control` stops it.

    The matching found depends on the order in which the device runs its threads. `seed` and
    `threads` have no influence on it.

    Parameters
    ----------
    launch : {"ct", "mt"}
        256 blocks of 256 threads, or a thread for each vertex.
    host_loop : {"batch", "level"}
        When the host looks at the flags: after many levels, or after each one as in the paper.
    frontier : {"scan", "queue"}
        Whether a level scans all columns, as in the paper, or reads a queue.
    """
    control = task.control
    make = SEARCHES[frontier, host_loop]
    search = make(task.graph, *task.mates, VARIANTS[algorithm], launch)
    matched = count_matched(task.row_to_col)
    is_stuck = False
    path_found = True
    while path_found:
        if control.tick(matched):
            return False
        search.init_bfs_array()
        path_found = search.bfs(should_stop=partial(control.tick, matched))
        if search.was_stopped:
            return False
        found, before = 0, matched
        if path_found:
            search.alternate(everywhere=is_stuck)
            search.fix_matching()
            found, matched = search.counts()
        # With `paths`, ends whose predecessors others have overwritten can leave no walk at all.
        # Walking from every end always augments, as alternate.cuh argues.
        is_stuck = matched == before
        control.phase(
            levels=search.levels_run, launches=search.launches, found=found, matched=matched
        )
    return True


class _Phases(ABC):
    """The arrays of a search and the kernels that end a phase, for both drivers."""

    source: Source

    def __init__(
        self,
        graph: Graph,
        row_to_col: cp.ndarray,
        col_to_row: cp.ndarray,
        variant: Variant,
        launch: str,
    ) -> None:
        nrows, ncols = graph.shape
        need = 4 * (nrows + ncols * (1 + variant.roots)) + self.extra_bytes(ncols)
        memory.require_memory(need, "the search")
        self.graph, self.variant = graph, variant
        self.row_to_col, self.col_to_row = row_to_col, col_to_row
        self.levels = cp.empty(ncols, cp.int32)
        self.root = cp.empty(ncols if variant.roots else 1, cp.int32)
        self.predecessor = cp.empty(nrows, cp.int32)
        self.kernels = kernels_for(SCANS, Offset=graph.col_indptr.dtype)
        self.col_grid = self.row_grid = (_CT_BLOCKS,)
        if launch == "mt":
            self.col_grid, self.row_grid = (blocks_for(ncols),), (blocks_for(nrows),)
        self.board = Board(SCANS.struct("Counters"))
        self.was_stopped = False
        self.launches = self.levels_run = 0

    @staticmethod
    def extra_bytes(ncols: int) -> int:
        return 0

    @abstractmethod
    def bfs(self, should_stop: Callable[[], bool]) -> bool:
        """Run levels until one inserts nothing or, with APsB, finds a path; whether any was."""

    def launch(self, kernel: str, grid: tuple[int], *arguments: Any) -> None:
        self.kernels[kernel](grid, (BLOCK,), arguments)
        self.launches += 1

    def init_bfs_array(self) -> None:
        self.launches = self.levels_run = 0
        self.launch(
            _instance("init_bfs_array_kernel", self.variant.roots, self.variant.paths),
            self.col_grid,
            *(np.int32(self.graph.ncols), self.col_to_row),  # IN
            *(self.levels, self.root, self.board.state),  # OUT
        )

    def alternate(self, *, everywhere: bool) -> None:
        self.board.clear()
        paths = self.variant.paths and not everywhere
        self.launch(
            _instance("alternate_kernel", paths),
            self.row_grid,
            np.int32(self.graph.nrows),  # IN
            *(self.row_to_col, self.col_to_row),  # IN, OUT
            *(self.predecessor, self.levels, self.root),  # IN
            self.board.state,  # OUT
        )

    def fix_matching(self) -> None:
        self.launch(
            "fix_matching_kernel",
            self.row_grid,
            np.int32(self.graph.nrows),  # IN
            self.row_to_col,  # IN, OUT
            self.col_to_row,  # IN
            self.board.state,  # OUT
        )

    def counts(self) -> tuple[int, int]:
        """Ends of paths that the phase has found, and matched rows after it."""
        self.board.look()
        return int(self.board.seen["ends"]), int(self.board.seen["matched"])

    def search_struct(self) -> np.ndarray:
        """The kernels' argument Search<Offset>, passed by value."""
        kernels = kernels_for(self.source, Offset=self.graph.col_indptr.dtype)
        return kernels.struct("Search")(
            col_indptr=self.graph.col_indptr,  # IN
            col_indices=self.graph.col_indices,
            ncols=self.graph.ncols,
            row_to_col=self.row_to_col,  # IN, OUT
            col_to_row=self.col_to_row,
            levels=self.levels,
            root=self.root,
            predecessor=self.predecessor,
        )


class SteppedPhases(_Phases):
    """BFS as in the paper: a launch a level, whose kernel scans all of bfs_array."""

    source = SCANS

    def bfs(self, should_stop: Callable[[], bool]) -> bool:
        """The inner loop of Algorithm 1, line by line; whether a path was found."""
        kernel = _instance("gpubfs_kernel", "{Offset}", *self.variant)
        search, flags = self.search_struct(), self.board.seen
        path_found = False
        bfs_level = self.variant.start_level
        while True:
            flags["inserted"][0] = flags["found"][0] = 0
            flags["level"] = bfs_level
            self.board.tell()
            self.launch(
                kernel,
                self.col_grid,
                search,
                self.board.state,  # IN, OUT
                np.int32(0),  # IN
            )
            self.board.look()
            self.levels_run += 1
            bfs_level += 1
            vertex_inserted, level_found = bool(flags["inserted"][0]), bool(flags["found"][0])
            path_found |= level_found
            if not vertex_inserted or (self.variant.shortest and level_found):
                return path_found
            if should_stop():
                self.was_stopped = True
                return path_found


class ScannedPhases(_Phases):
    """The same levels in batches, each as one captured graph of kernels."""

    source = SCANS

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.batch = self._captured_batch()

    def bfs(self, should_stop: Callable[[], bool]) -> bool:
        """Run levels until one inserts nothing or, with APsB, finds a path; whether any was."""
        path_found = False
        while True:
            self.batch.launch(cp.cuda.get_current_stream())
            self.launches += 1 + _BATCH
            self.board.look()
            inserted, found = self.board.seen["inserted"], self.board.seen["found"]
            last = inserted == 0
            if self.variant.shortest:
                last |= found != 0
            run = int(last.argmax()) + 1 if last.any() else _BATCH
            self.levels_run += run
            path_found |= bool(found[:run].any())
            if last.any():
                return path_found
            if should_stop():
                self.was_stopped = True
                return path_found

    def _captured_batch(self) -> Any:
        """A batch of levels as one graph of kernels."""
        kernel = _instance("gpubfs_kernel", "{Offset}", *self.variant)
        search = self.search_struct()
        level, next_batch = self.kernels[kernel], self.kernels["next_batch"]
        with cp.cuda.Stream(non_blocking=True) as stream:
            stream.begin_capture()
            next_batch((1,), (BLOCK,), (self.board.state,))  # IN, OUT
            for step in range(_BATCH):
                level(
                    self.col_grid,
                    (BLOCK,),
                    (
                        search,
                        self.board.state,  # IN, OUT
                        np.int32(step),  # IN
                    ),
                )
            return stream.end_capture()


class QueuedPhases(_Phases):
    """BFS driven by a queue: the levels' columns only, many levels a launch."""

    source = QUEUES
    levels_a_launch = LEVELS_A_LAUNCH

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        kernel = _instance("search_gpubfs", "{Offset}", *self.variant)
        kernels = kernels_for(QUEUES, Offset=self.graph.col_indptr.dtype)
        self.frontier = DeviceFrontier(kernels, kernel, self.graph.ncols, self.col_grid[0])

    @staticmethod
    def extra_bytes(ncols: int) -> int:
        return DeviceFrontier.nbytes(ncols)

    def init_bfs_array(self) -> None:
        super().init_bfs_array()
        self.launches += self.frontier.start_from_free(self.col_to_row, self.variant.start_level)

    def bfs(self, should_stop: Callable[[], bool]) -> bool:
        """Run levels until the queue is empty or, with APsB, a path is found; whether any was."""
        while True:
            self.frontier.search(self.search_struct(), levels=self.levels_a_launch)
            self.launches += 1
            self.levels_run = self.frontier.level - self.variant.start_level
            path_found = bool(self.frontier.found.any())
            if self.frontier.size == 0 or (self.variant.shortest and path_found):
                return path_found
            if should_stop():
                self.was_stopped = True
                return path_found


class SteppedQueuedPhases(QueuedPhases):
    """The same, a level a launch."""

    levels_a_launch = 1


SEARCHES: dict[tuple[str, str], type[_Phases]] = {  # by frontier and host_loop
    ("scan", "batch"): ScannedPhases,
    ("scan", "level"): SteppedPhases,
    ("queue", "batch"): QueuedPhases,
    ("queue", "level"): SteppedQueuedPhases,
}


def _instance(template: str, *arguments: str | bool) -> str:
    """The C++ name of a template's instance."""
    return (
        f"{template}<{', '.join(str(a).lower() if isinstance(a, bool) else a for a in arguments)}>"
    )
