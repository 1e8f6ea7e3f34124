"""The algorithms of Date and Nagi."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch
from gpumatch import distributed
from graphs import costs as families
from tests import assignment_cases
from tests.distributed.ranks.checks import check_assignment, share, some_of

STEPS = {"forward pass", "reverse and augmentation", "dual update"}

PAPER_STEPS = {"hungarian-classical": {*STEPS, "matrix compression"}, "hungarian-tree": STEPS}


def papers(comm):
    """Both algorithms of Date and Nagi, and the steps of their Tables 4 and 5."""
    rng = np.random.default_rng(5)
    for algorithm, steps in PAPER_STEPS.items():
        for shape in ((1, 1), (8, 8), (6, 9), (9, 6), (0, 3)):
            yield f"{algorithm} {shape}"
            costs = rng.integers(0, 30, shape)
            a = check_assignment(costs, comm, algorithm)
            assert a.stats["algorithm"] == algorithm
            levels = tuple(phase["levels"] for phase in a.stats["trace"])
            assert set(comm.allgather(levels)) == {levels}  # every rank tells all of them
            for seconds in (a.stats["seconds"], a.stats["communication"]["seconds"]):
                assert {"initial reduction", "optimality check"} <= set(seconds)
                assert not a.size or steps <= set(seconds)
            holed = np.where(rng.random(shape) < 0.3, np.inf, costs)
            np.fill_diagonal(holed, 7.5)
            check_assignment(holed, comm, algorithm)
        yield f"{algorithm}, costs to be maximised, and sparse"
        check_assignment(csr_array(rng.integers(1, 9, (7, 7))), comm, algorithm, maximize=True)
        for family, size in (("machol_wien", 9), ("low_rank", 8)):
            yield f"{algorithm} {family}"
            check_assignment(families.make(family, size, size, seed=1), comm, algorithm)
        yield f"{algorithm}, no full assignment"
        lonely = np.full((3, 4), np.inf)
        lonely[:, 0] = 1
        with pytest.raises(gpumatch.InfeasibleError) as caught:
            distributed.assign(share(lonely, comm), comm=comm, algorithm=algorithm)
        assert (caught.value.rows.size > 1, caught.value.cols.tolist()) == (True, [0])
        yield f"{algorithm} takes no limit"
        with pytest.raises(ValueError, match="matches the whole smaller side"):
            distributed.assign(lonely, comm=comm, algorithm=algorithm, cost_limit=3)
        yield f"{algorithm}, no time"
        costs = share(families.make("machol_wien", 9, 9), comm)
        assert not distributed.assign(costs, comm=comm, algorithm=algorithm, time_limit=0).proven


def every_paper(comm, **how):
    for case in some_of(assignment_cases.CASES, comm):
        limit = {"easy": 100, "chained": 17, "hard": 17}[case.difficulty]
        for algorithm in PAPER_STEPS:
            if max(case.shape) <= limit:
                yield f"{algorithm} {case}"
                check_assignment(case.costs, comm, algorithm, maximize=case.maximize, **how)


GROUPS = papers, every_paper
