"""Date and Nagi's searches on the device, beside the reference, which is the paper.

Both begin an iteration from the same matching and duals, and then each has one way only: the same
columns in the same levels, the same theta, the same leaves. Which leaf of a tree gets its path is a
race. So after each iteration the device goes on from the reference's matching.
"""

from __future__ import annotations

import operator

import numpy as np

from gpumatch.contracts import Solution
from gpumatch.costs import DenseCosts
from gpumatch.reference import date2016 as reference
from gpumatch.reference.exact_slacks import Slacks
from gpumatch.reference.interleaving import Grid
from graphs import costs

FAR = 2**63 - 1  # kNever
MEMBER = np.dtype([("base", "i8"), ("row", "i4"), ("", "i4")])

MATRICES = {
    "ties": costs.uniform_integer(40, factor=0.2, seed=1),
    "uniform": costs.uniform_integer(60, seed=2),
    "distinct": costs.uniform_integer(50, factor=1e6, seed=3),
    "wide": costs.uniform_integer(30, 47, 10, seed=4),
    "two costs": costs.two_cost(36, p=0.12, seed=5),
    "products": costs.machol_wien(12),
    "many columns": costs.machol_wien(9, 1_501),
}


class Beside:
    """A search on the device, and the reference's state."""

    variant: type[reference.Classical | reference.Tree]
    kind: str  # the module and the class of the search

    def __init__(self, matrix, hungarian):
        self.hungarian, cp = hungarian, hungarian.problem.cp
        nrows, ncols = matrix.shape
        values = cp.asarray(matrix)
        solution = Solution(
            *(cp.full(size, -1, np.int32) for size in matrix.shape),
            *(cp.zeros(size, np.int64) for size in matrix.shape),
        )
        units = hungarian.problem.attempts(DenseCosts(values).problem(False, False), None)[0]
        self.problem = hungarian.problem.Problem(values, units, None, solution)
        self.state = reference.State(Slacks(matrix, np.ones(matrix.shape, bool)))
        self.grid = Grid("ct", 0)
        reference.reduce_rows(self.state, grid=self.grid)
        if nrows == ncols:
            reference.reduce_columns(self.state, grid=self.grid)
        self.problem.reduce()
        self.search = operator.attrgetter(self.kind)(hungarian)(self.problem)
        self.following = self.variant(self.state, self.grid)

    @property
    def stage(self):
        return int(self.search.seen["at"]["stage"])

    def step(self):
        self.search.go_on()

    def stages(self, *names):
        return [*map(self.search.source.constant, names)]

    def compare_duals(self):
        """Equal, but that the reference's may all be higher for rows and lower for columns."""
        rows = 2 * self.problem.row_dual.get() - self.state.slacks.row_dual
        cols = 2 * self.problem.col_dual.get() - self.state.slacks.col_dual
        assert {*rows.tolist()} == {*(-cols).tolist()}
        assert np.unique(rows).size == 1

    def compare_leaves(self, ends):
        search = self.search
        assert int(search.seen["at"]["leaves"]) == ends.size
        assert search.leaves[: ends.size].get().tolist() == ends.tolist()

    def augment(self, ends):
        """Rows that get columns on the device; then it goes on from the reference's matching."""
        state, problem, cp = self.state, self.problem, self.hungarian.problem.cp
        reference.reverse_pass(state, ends, grid=self.grid)
        roots = reference.compact(state.row_mark == reference.AUGMENT, grid=self.grid)
        reference.augmentation_pass(state, roots, grid=self.grid)
        self.step()
        row_to_col, col_to_row = problem.row_to_col.get(), problem.col_to_row.get()
        rows = np.flatnonzero(row_to_col >= 0)
        assert (col_to_row[row_to_col[rows]] == rows).all()
        assert np.count_nonzero(col_to_row >= 0) == rows.size
        assert not state.slacks.at(rows, row_to_col[rows]).any()
        problem.row_to_col[:] = cp.asarray(state.row_to_col.astype(np.int32))
        problem.col_to_row[:] = cp.asarray(state.col_to_row.astype(np.int32))
        return rows

    def record(self):
        """What the device has counted in the last iteration."""
        return self.search.board.records(int(self.search.seen["at"]["phase"]))[-1]

    def run(self):
        """All iterations of both; how many there were."""
        count = 0
        while self.iterate():
            count += 1
        return count


class TreeBeside(Beside):
    """The alternating trees, compared after each step."""

    variant, kind = reference.Tree, "tree.PaperTree"

    def compare(self, frontier):
        """Frontier, trees, covers, marks, slacks and duals are the same."""
        state, search = self.state, self.search
        members = search.members.get().view(MEMBER)["row"].ravel()
        assert members[: int(search.seen["at"]["members"])].tolist() == frontier.tolist()
        assert search.rows[0].get().tolist() == state.row_pred.tolist()
        assert search.cols[0].get().tolist() == state.col_pred.tolist()
        row_mark, col_mark = search.row_mark.get(), search.col_mark.get()
        assert row_mark.tolist() == state.row_mark.tolist()
        assert ((row_mark == reference.INACTIVE) == state.row_cover).all()
        assert ((col_mark == reference.VISITED) == state.col_cover).all()
        assert ((col_mark == reference.REVERSE) == (state.col_mark == reference.REVERSE)).all()
        slack = search.slack.get()
        is_far = state.slack == state.slacks.far
        assert ((slack == FAR) == is_far).all()
        assert (2 * slack[~is_far] == state.slack[~is_far]).all()
        self.compare_duals()

    def iterate(self):
        """One iteration of both; False if all rows have columns."""
        state, grid = self.state, self.grid
        state.uncover()
        matched = reference.check_optimality(state, grid=grid)
        self.step()
        if matched == state.nrows:
            assert self.stage == self.hungarian.sources.DONE
            return False
        frontier = self.following.first_frontier()
        self.compare(frontier)
        levels = updates = 0
        while True:
            while frontier.size:
                self.following.expand(frontier)
                frontier = self.following.contract()
                self.step()
                levels += 1
                self.compare(frontier)
            ends = reference.compact(state.col_mark == reference.REVERSE, grid=grid)
            self.compare_leaves(ends)
            if ends.size:
                break
            frontier = self.following.update()
            self.step()
            updates += 1
            self.compare(frontier)
        rows = self.augment(ends)
        assert rows.tolist() == np.flatnonzero(state.row_to_col >= 0).tolist()
        found = state.matched - matched
        assert self.record()[:4] == [levels, found, updates, found]
        return True


class ClassicalBeside(Beside):
    """The classical variant, compared after the last level and after each update of the duals.

    Of several rows of a level that lead to a column, any may be its parent. So what is compared is
    the level. Once the duals have changed, levels are counted anew from all rows in trees. How many
    of the trees have leaves depends on the parents, but one has at least.
    """

    variant, kind = reference.Classical, "classical.Classical"

    def levels(self, row_pred, col_pred, before):
        """Level of each matched column that is in a tree, and was not before."""
        mates = self.state.col_to_row
        found = dict.fromkeys(before, 0)

        def level(col):
            if col not in found:
                parent = int(row_pred[col_pred[col]])
                found[col] = 1 + (0 if parent == -1 else level(parent))
            return found[col]

        inside = np.flatnonzero((col_pred != -1) & (mates != -1)).tolist()
        return {col: level(col) for col in inside if col not in before}

    def compare(self, before):
        """The same columns have joined the trees in the same levels; which these are."""
        state, search = self.state, self.search
        here = self.levels(search.rows[0].get(), search.cols[0].get(), before)
        assert here == self.levels(state.row_pred, state.col_pred, before)
        assert {*here, *before} == {*np.flatnonzero(state.col_cover).tolist()}
        return {*here, *before}

    def iterate(self):
        """One iteration of both; False if all rows have columns."""
        state, grid = self.state, self.grid
        augments, updates_duals = self.stages("kAugment", "kDualUpdate")
        state.uncover()
        matched = reference.check_optimality(state, grid=grid)
        ends_of_levels = augments, updates_duals, self.hungarian.sources.DONE
        inside, updates = set(), 0
        frontier = self.following.first_frontier() if matched < state.nrows else None
        while True:
            self.step()
            while self.stage not in ends_of_levels:
                self.step()
            if frontier is None:
                assert self.stage == self.hungarian.sources.DONE
                return False
            while frontier.size:
                self.following.expand(frontier)
                frontier = self.following.contract()
            inside = self.compare(inside)
            ends = reference.compact(state.col_mark == reference.REVERSE, grid=grid)
            self.compare_leaves(ends)
            assert self.stage == (augments if ends.size else updates_duals)
            if ends.size:
                break
            frontier = self.following.update()
            self.step()
            updates += 1
            self.compare_duals()
        assigned = np.flatnonzero(state.row_to_col >= 0)
        rows = self.augment(ends)
        found = rows.size - matched
        assert found > 0
        assert {*assigned.tolist()} <= {*rows.tolist()}
        assert self.record()[1:4] == [found, updates, found]
        return True
