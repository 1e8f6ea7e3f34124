"""Maximum matching by two forests that grow towards each other: the CPU's default.

Alternating trees grow breadth first from all unmatched rows and from all unmatched columns at once.
In a phase, the forest whose next level has fewer edges grows by it, until either cannot grow. Where
trees of the two meet, an augmenting path runs from root to root. A tree takes part in one path and
stops growing. After augmenting, trees that had a path release their vertices. The others stay, and
released vertices are grafted onto them, if that is less work than growing the trees again. When the
phases have read the edges twice and the end is not in sight, the next phase is a sweep of
depth-first searches (PFP). It comes sooner if phases find few paths.

The matching is maximum. This is clear if a side has no unmatched vertex left. Otherwise the last
phase found no path. Then no tree has a bridge (names as in `forests`), and one forest, say that of
the rows, is expanded whole. By the invariant of `forests`, every column next to one of its rows is
in some tree. That tree is not in the columns' forest, so it is in the rows'. Such a column is
matched, and its mate is in the same tree. So alternating paths from the unmatched rows never leave
the forest, which holds no unmatched column. There is no augmenting path (Berge).

The invariant holds for these reasons. Expanding a vertex establishes it, because each neighbour
without a tree joins the vertex's tree, and a neighbour in a tree of the other forest closes a path
unless that tree has one already. Releasing a pair of mates breaks it for the pair's neighbours in
trees that stay, and grafting restores it. If both forests have such neighbours, the pair closes a
path. If one has, the pair joins it. If none has, nothing is broken. If threads have collided, all
trees start from their roots again.

Graphs of few edges, and others on which few short paths are missing, are solved before any forest
has its arrays: see `one_by_one`.

Every phase but the last matches at least one row more and visits a vertex once: O(rows · edges).
Each sweep is O(edges), no more than the phases before it.

Multi-source search, one path a tree and grafting are those of MS-BFS-Graft (Azad, Buluç and
Pothen). It grows one forest, and changes to bottom-up steps if a level is wide. Here the second
forest replaces these. The table has all edges read, grafts included, per edge of the graph, from
the cheap matching. "one forest" is that of the rows, grafted by the paper's rule (alpha = 5):

    graph                 one forest  with grafting  two forests  with grafting
    ego-twitter                10.0           21.9          1.6            1.6
    ca-AstroPh                  7.2           10.1          0.7            0.7
    cit-HepTh                  10.0           12.3          2.2            2.2
    copter2                     5.7            4.9          1.4            1.4
    luxembourg_osm              2.0            1.8          2.0            1.6
    grid 1024, p = .65          1.8            1.6          1.8            1.3
    delaunay 2^18, permuted     3.7            5.2          1.9            1.9
    uniform 2^20, d = 3         3.8            1.9          0.7            0.7

Sweeps are for the rare graph on which few trees find a path, because the trees in front leave no
room for those behind. In a triangular pattern, and in other nested neighbourhoods, any tree has all
columns after two levels. So a phase finds one path, and reads half of the edges. A sweep then
matches half of the unmatched vertices, and is repeated while it matches many. If a sweep matches
few, the next is from the other side: on 2,000 rows whose columns are the first ones, as many as
drawn at random, sweeps of the rows take 8 ms, and sweeps of the columns 66.

On delaunay 2^18, from a start that left 193 rows unmatched on one border, the engine needed 26
phases and 23 readings of its edges without sweeps, and 9 and 5 with them.

References
----------
Azad, Buluç, Pothen, *Computing maximum cardinality matchings in parallel on bipartite graphs via
tree-grafting*, IEEE TPDS 28(1), 2017; sweeps: see `lookahead_search`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpumatch.contracts import MatchingTask
from gpumatch.cpu.matching.forests import Forests
from gpumatch.cpu.matching.lookahead_search import LookaheadSearch
from gpumatch.cpu.matching.one_by_one import search
from gpumatch.cpu.matching.sides import BUDGET, larger_side, smaller_side
from gpumatch.cpu.numba_tools.workers import Workers
from gpumatch.numeric.arrays import count_matched

__all__ = ["DEFAULT", "Tuning", "match_rows", "run"]


@dataclass(frozen=True)
class Tuning:
    """The numbers that the engine decides by: `DEFAULT`, unless a caller passes others.

    The size of a matching does not depend on them. "Edges" are those of the graph.
    """

    few_edges: int = 2**13
    """Edges up to which a graph is small: its arrays fit into a cache."""
    readings: int = 16
    """How many times rows that are searched one by one may read all edges of a small graph.

    It takes less than a millisecond. Of a larger graph they may read all edges once.
    """
    most_read: int = BUDGET
    """Edges that they may read in any graph, because that is one call."""
    patience: float = 2
    """How many times phases read all edges before a sweep takes its turn.

    With 1 and 4 the phases of a uniform graph with 2**17 rows and d = 3, from the cheap matching,
    read its edges 2.3 and 2.4 times; with 2 they read them 2.1 times. Most graphs are done before
    a sweep.
    """
    hopeless: float = 4
    """Readings of all edges that paths one by one are expected to need, from which on a sweep of
    the rows comes before the forests. It needs no columns' lists.
    """
    haste: float = 0.25
    """In place of `hopeless` if phases find few paths, unless the last sweeps have found few."""
    poor: int = 2
    """Sweeps that may find few: the first is from the smaller side, the next from the other."""
    few: int = 16
    """A phase or a sweep finds few paths if so many times as many vertices are still unmatched."""
    again: int = 4
    """A sweep follows a sweep that has matched one in so many of the unmatched vertices."""
    grafting: float = 1.0
    """Edges that grafting may read for each edge that growing anew would.

    With the paper's 5 the same graph is read 3.9 times, with 1 it is read 2.1 times. Below 1
    nothing changes there, or on a grid and a power-law graph.
    """


DEFAULT = Tuning()


def run(task: MatchingTask, tuning: Tuning | None = None) -> bool:
    """Extend the matching to a maximum one; True unless ``control`` stopped it."""
    tuning = tuning or DEFAULT
    graph, row_to_col, col_to_row, control = task.graph, *task.mates, task.control
    matched = count_matched(row_to_col)
    if matched == graph.ncols:
        return True
    if control.tick(matched):
        return False
    found, paid, done = _search_rows(task, matched, 1, tuning)
    matched += found
    if done or _saturated(row_to_col, graph.indptr):
        return True
    unpaid, poor = 0, 0
    sweeps = _Sweeps(task)
    with Workers(task.threads, graph.nnz) as workers:
        if tuning.hopeless * graph.nnz * found < paid * (graph.nrows - matched):
            swept, done = sweeps.run(graph.nrows > graph.ncols, workers, matched, tuning.again)
            if swept < 0:
                return False
            matched += swept
            if done or _saturated(row_to_col, graph.indptr):
                return True
        forests = Forests(graph, row_to_col, col_to_row, workers, tuning.grafting)
        while True:
            if control.tick(matched) or not forests.grow(control, matched):
                return False
            if not forests.augment(control, matched):
                return False
            found = forests.found
            matched += found
            control.phase(levels=forests.levels, found=found, matched=matched, edges=forests.read)
            if not found or not forests.unmatched:
                return True
            unpaid += forests.read
            unmatched = forests.unmatched
            is_slow = tuning.few * found < unmatched
            hastens = is_slow and poor < tuning.poor
            if unpaid < (tuning.haste if hastens else tuning.patience) * graph.nnz:
                if not forests.renew(control, matched):
                    return False
                continue
            forests.replant()
            swept, done = sweeps.run(bool(poor % 2), workers, matched, tuning.again)
            if swept < 0:
                return False
            matched += swept
            if done:
                return True
            poor = poor + 1 if tuning.few * swept < unmatched else 0
            forests.replant()
            unpaid = 0


class _Sweeps:
    """The sweeps of both sides, each with arrays that are made for its first one."""

    def __init__(self, task: MatchingTask) -> None:
        self.task = task
        self.searches: dict[bool, LookaheadSearch] = {}

    def run(
        self, from_larger: bool, workers: Workers, matched: int, again: int
    ) -> tuple[int, bool]:
        """Sweep from one side while that matches one in ``again`` of the unmatched vertices.

        Returns the number of paths, -1 if the control stopped it; and whether the matching is
        maximum.
        """
        task, control = self.task, self.task.control
        if from_larger not in self.searches:
            side_of = larger_side if from_larger else smaller_side
            self.searches[from_larger] = LookaheadSearch(side_of(task.graph, *task.mates), workers)
        swept, unmatched = 0, min(task.graph.shape) - matched
        while True:
            found = self.searches[from_larger].phase(control, matched + swept)
            if found < 0:
                return -1, False
            swept += found
            control.phase(levels=0, found=found, matched=matched + swept)
            if found in (0, unmatched):
                return swept, True
            if again * found < unmatched:
                return swept, False
            unmatched -= found


def match_rows(
    task: MatchingTask, matched: int, readings: int = 1, tuning: Tuning | None = None
) -> tuple[int, bool]:
    """Match row after row while few edges seem to be enough: these readings of all, or some more.

    Returns
    -------
    found, done : int, bool
        Rows matched in addition; whether the matching is maximum.
    """
    found, _, done = _search_rows(task, matched, readings, tuning or DEFAULT)
    return found, done


def _search_rows(
    task: MatchingTask, matched: int, readings: int, tuning: Tuning
) -> tuple[int, int, bool]:
    """Do as `match_rows`; tell also how many edges were read for the paths."""
    graph = task.graph
    readings = max(readings, tuning.readings if graph.nnz <= tuning.few_edges else 1)
    most = min(readings * graph.nnz, tuning.most_read)
    if most == 0:
        return 0, 0, False
    found, levels, read, paid, done = search(
        graph.indptr, graph.indices, most,  # IN
        *task.mates,  # OUT
    )  # fmt: skip
    if read > 0:
        task.control.phase(levels=levels, found=found, matched=matched + found, edges=read)
    return found, paid, done


def _saturated(mate: np.ndarray, indptr: np.ndarray) -> bool:
    """True if all vertices that have edges are matched."""
    unmatched = np.flatnonzero(mate < 0)
    return bool(np.all(indptr[unmatched + 1] == indptr[unmatched]))
