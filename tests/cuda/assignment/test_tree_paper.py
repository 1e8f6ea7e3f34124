"""The paper's trees on the device, step by step beside the reference, which is the paper.

Both begin an iteration from the same matching and duals, and then each has one way only: the same
rows in the frontiers, the same columns in the same levels, the same theta. Which leaf of a tree
gets its path is a race. So after each iteration the device goes on from the reference's matching.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpumatch.reference import date2016 as reference
from gpumatch.reference.exact_slacks import Slacks
from gpumatch.reference.interleaving import Grid
from graphs import costs

pytestmark = pytest.mark.gpu

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
    """The search on the device and the reference's state, compared after each step."""

    def __init__(self, matrix):
        import cupy as cp

        from gpumatch.contracts import Solution
        from gpumatch.costs import DenseCosts
        from gpumatch.cuda.assignment import hungarian

        self.hungarian = hungarian
        nrows, ncols = matrix.shape
        values = cp.asarray(matrix)
        solution = Solution(
            *(cp.full(size, -1, np.int32) for size in matrix.shape),
            *(cp.zeros(size, np.int64) for size in matrix.shape),
        )
        units = hungarian._attempts(DenseCosts(values).problem(False, False), None)[0]
        problem = hungarian._Problem(values, units, None, solution)
        problem.reduce()
        self.search = hungarian._PaperTree(problem)
        self.state = reference.State(Slacks(matrix, np.ones(matrix.shape, bool)))
        self.grid = Grid("ct", 0)
        reference.reduce_rows(self.state, grid=self.grid)
        if nrows == ncols:
            reference.reduce_columns(self.state, grid=self.grid)
        self.variant = reference.Tree(self.state, self.grid)

    def step(self):
        self.search.go_on()

    @property
    def stage(self):
        return int(self.search.seen["at"]["stage"])

    def compare(self, frontier):
        """Frontier, trees, covers, marks, slacks and duals are the same."""
        state, search, problem = self.state, self.search, self.search.problem
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
        rows = 2 * problem.row_dual.get() - state.slacks.row_dual
        cols = 2 * problem.col_dual.get() - state.slacks.col_dual
        assert {*rows.tolist()} == {*(-cols).tolist()}
        assert np.unique(rows).size == 1

    def iterate(self):
        """One iteration of both; False if all rows have columns."""
        state, search, grid = self.state, self.search, self.grid
        state.uncover()
        matched = reference.check_optimality(state, grid=grid)
        self.step()
        if matched == state.nrows:
            assert self.stage == self.hungarian._DONE
            return False
        frontier = self.variant.first_frontier()
        self.compare(frontier)
        levels = updates = 0
        while True:
            while frontier.size:
                self.variant.expand(frontier)
                frontier = self.variant.contract()
                self.step()
                levels += 1
                self.compare(frontier)
            ends = reference.compact(state.col_mark == reference.REVERSE, grid=grid)
            assert int(search.seen["at"]["leaves"]) == ends.size
            assert search.leaves[: ends.size].get().tolist() == ends.tolist()
            if ends.size:
                break
            frontier = self.variant.update()
            self.step()
            updates += 1
            self.compare(frontier)
        self.augment(ends)
        phase = int(search.seen["at"]["phase"])
        found = state.matched - matched
        record = search.board.records(phase)[-1][:4]
        assert record == [levels, found, updates, found]
        return True

    def augment(self, ends):
        """The same trees give paths; then the device goes on from the reference's."""
        import cupy as cp

        state, problem = self.state, self.search.problem
        reference.reverse_pass(state, ends, grid=self.grid)
        roots = reference.compact(state.row_mark == reference.AUGMENT, grid=self.grid)
        reference.augmentation_pass(state, roots, grid=self.grid)
        self.step()
        row_to_col, col_to_row = problem.row_to_col.get(), problem.col_to_row.get()
        assert ((row_to_col >= 0) == (state.row_to_col >= 0)).all()
        rows = np.flatnonzero(row_to_col >= 0)
        assert (col_to_row[row_to_col[rows]] == rows).all()
        assert np.count_nonzero(col_to_row >= 0) == rows.size
        assert not state.slacks.at(rows, row_to_col[rows]).any()
        problem.row_to_col[:] = cp.asarray(state.row_to_col.astype(np.int32))
        problem.col_to_row[:] = cp.asarray(state.col_to_row.astype(np.int32))


@pytest.mark.parametrize("blocks", [1, 3, None])
@pytest.mark.parametrize("name", MATRICES)
def test_each_step_is_the_papers(name, blocks, monkeypatch):
    from gpumatch.cuda.assignment import hungarian

    monkeypatch.setattr(hungarian, "_STEPS_A_LAUNCH", 1)
    if blocks is not None:
        monkeypatch.setattr(hungarian, "_most_blocks", lambda: blocks)
    both = Beside(MATRICES[name])
    iterations = 0
    while both.iterate():
        iterations += 1
    assert iterations > 1


def test_initial_assignments_are_a_maximum_matching_of_tight_pairs():
    """As the reference has it, and as the paper's Table 2 counts."""
    from gpumatch import assign

    matrix = costs.uniform_integer(300, seed=7)
    there, here = (
        assign(matrix, algorithm="hungarian-tree", backend=backend, search="paper")
        for backend in ("reference", "cuda")
    )
    initial, expected = (sum(phase["initial"] for phase in a.stats["trace"]) for a in (here, there))
    assert initial == expected
    assert 250 < initial < 300
    assert sum(phase["found"] for phase in here.stats["trace"]) == 300
    assert here.objective == there.objective
