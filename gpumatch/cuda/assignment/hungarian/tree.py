"""The Hungarian algorithm with alternating trees on the GPU: the host code of two kernels.

tree.cu has our trees, tree_paper.cu the paper's. Device memory in addition to the costs: with our
trees 80 bytes a row and 44 a column, with the paper's 41 bytes a row and 33 a column.
"""

from __future__ import annotations

import cupy as cp
import numpy as np

from gpumatch.contracts import AssignmentTask
from gpumatch.cuda.assignment.hungarian.problem import Problem
from gpumatch.cuda.assignment.hungarian.search import Patience, Search, members_for, solve
from gpumatch.cuda.assignment.hungarian.sources import TREE, TREE_PAPER

__all__ = ["run"]

_FAR = np.uint64(2**64 - 1)  # kFar in tree.cu
_AT_NEAREST_LEAF, _AT_SECOND_LEAF, _ANYWHERE = map(
    TREE.constant, ("kAtNearestLeaf", "kAtSecondLeaf", "kAnywhere")
)


def run(task: AssignmentTask, *, search: str = "levels", patience: Patience | None = None) -> bool:
    """Match the rows at least cost, as `gpumatch.contracts` states; True unless stopped.

    With ``search="levels"``, the columns of a range of slacks join in each level, and searches
    continue past the nearest leaf. ``search="paper"`` is the search of the paper. A run that
    exceeds `patience` returns False, as if it were stopped.
    """
    kinds = {"levels": Tree, "paper": PaperTree}
    return solve(kinds[search], task, patience)


class Tree(Search):
    source = TREE
    kernel = "hungarian_tree<{{Cost}}, {}>"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.dist = cp.empty((2, problem.ncols), np.uint64)
        self.col_root = cp.empty(problem.ncols, np.int32)
        self.first_leaf = cp.empty(problem.nrows, np.uint64)
        self.frontier = [members_for(self.kernels, problem.nrows) for _ in range(2)]
        made = np.zeros(3, TREE.struct("Level").dtype)
        made["least"] = made["bound"] = _FAR
        self.made = cp.asarray(made.view(np.uint8))
        start = np.zeros(1, TREE.struct("Search").dtype)
        start["spread"] = problem.units.largest
        self.search = cp.asarray(start.view(np.uint8))
        self.ending = _ANYWHERE if problem.all_match else _AT_SECOND_LEAF
        if problem.units.is_patient:
            self.ending = _AT_NEAREST_LEAF

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return Search.bytes_needed(nrows, ncols) + 40 * nrows + 20 * ncols

    def own_struct(self) -> np.ndarray:
        return self.kernels.struct("Slacks")(
            dist=self.dist[0],  # OUT, then IN
            joined_at=self.dist[1],
            frontier=self.frontier,
            made=self.made,  # IN, OUT
            search=self.search,
            most=self.problem.units.most_distance,  # IN
            ending=self.ending,
            col_root=self.col_root,  # OUT, then IN
            first_leaf=self.first_leaf,
        )


class PaperTree(Search):
    source = TREE_PAPER
    kernel = "hungarian_tree_paper<{{Cost}}, {}>"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.slack = cp.empty(problem.ncols, np.int64)
        self.row_mark = cp.empty(problem.nrows, np.uint8)
        self.col_mark = cp.empty(problem.ncols, np.uint8)

    @staticmethod
    def bytes_needed(nrows: int, ncols: int) -> int:
        return Search.bytes_needed(nrows, ncols) + nrows + 9 * ncols

    def own_struct(self) -> np.ndarray:
        return self.kernels.struct("Slacks")(
            slack=self.slack,  # OUT, then IN
            row_mark=self.row_mark,
            col_mark=self.col_mark,
        )
