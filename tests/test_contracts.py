"""What `gpumatch.contracts` promises of tasks and solutions, and what algorithms answer."""

from __future__ import annotations

import numpy as np
import pytest

import graphs
from gpumatch import algorithms
from gpumatch.bipartite import BipartiteGraph
from gpumatch.contracts import AssignmentTask, GeneralMatchingTask, MatchingTask, Solution
from gpumatch.contracts.general_weights import GeneralWeightTask
from gpumatch.contracts.transport import TransportTask
from gpumatch.costs import DenseCosts
from gpumatch.dispatch import registry
from gpumatch.dispatch.by_device import no_mates
from gpumatch.general.graph import weighted_of
from gpumatch.numeric.half_approximate import HalfMatchingTask
from gpumatch.problems.cardinality import empty_solution
from gpumatch.running.control import Control
from graphs import costs

SEARCHES = [
    pytest.param(a.problem, home, id=f"{a.problem}-{a.name}-{backend}")
    for a in algorithms()
    for backend, home in a.homes.items()
    if backend != "cuda"
]
STARTS = [
    pytest.param("matching", home, id=f"start-{name}-{backend}")
    for name, homes in registry.STARTS.items()
    for backend, home in homes.items()
    if backend != "cuda" and name != "none"
]


def general_task(function, control):
    """A mesh of triangles with equal weights."""
    graph = weighted_of(graphs.make("delaunay", 7))
    arrays = graph.indptr.astype(np.int64), graph.indices, graph.weights
    if function.endswith("half_approximate:run"):
        return HalfMatchingTask(*arrays, control)
    if ".weights." in function:
        return GeneralWeightTask(*arrays, 0, control)
    mates = np.full(graph.order, -1, np.int32), np.zeros(graph.order, np.int8)
    cover = registry.load(registry.DOUBLE_COVERS["cpu"])
    return GeneralMatchingTask(*arrays[:2], *mates, cover, control)


def task_for(problem, control):
    if problem == "matching":
        graph = BipartiteGraph(graphs.make("hexa", 90, seed=3))
        return MatchingTask(graph, *no_mates(graph), control)
    given = DenseCosts(costs.make("machol_wien", 12)).problem(False, False)
    if problem == "transport":
        masses = np.arange(12)
        return TransportTask(masses, masses[::-1].copy(), control, given.values.astype(np.int64))
    return AssignmentTask(given, empty_solution(given), control)


@pytest.mark.parametrize(("problem", "home"), SEARCHES + STARTS)
def test_an_algorithm_says_whether_it_has_ended(problem, home):
    run = home.run_with({})

    def has_ended(control):
        if problem.startswith("general-"):
            answer = run(general_task(home.function, control))
            return getattr(answer, "finished", getattr(answer, "is_optimal", answer))
        answer = run(task_for(problem, control))
        return getattr(answer, "is_optimal", answer)

    assert has_ended(Control()) is True
    calls = []
    stop = Control(callback=lambda progress: calls.append(progress) or True)
    assert has_ended(stop) is (not calls)


def solution(first, *, shape=(2, 3), cover=None):
    """Numbers that are all different, from `first` on."""
    sizes = np.cumsum([shape[0], shape[1], shape[0]])
    arrays = np.split(first + np.arange(2 * sum(shape)), sizes)
    return Solution(*arrays[:2], *(a.astype(float) for a in arrays[2:]), True, cover)


def as_lists(s):
    return [array.tolist() for array in (*s.mates, *s.duals)]


def test_an_empty_solution():
    for is_integer, kind in ((True, np.int64), (False, np.float64)):
        empty = Solution.empty((2, 3), is_integer=is_integer)
        assert as_lists(empty) == [[-1, -1], [-1, -1, -1], [0, 0], [0, 0, 0]]
        assert [a.dtype for a in empty.mates] == [np.int32] * 2
        assert [a.dtype for a in empty.duals] == [kind] * 2
        assert (empty.has_duals, empty.cover, empty.xp) == (False, None, np)


def test_solutions_are_copied_cleared_and_turned():
    cover = np.array([0]), np.array([1, 2])
    one = solution(5, cover=cover)
    assert as_lists(one) == [[5, 6], [7, 8, 9], [10, 11], [12, 13, 14]]
    turned = one.transpose()
    assert as_lists(turned) == [[7, 8, 9], [5, 6], [12, 13, 14], [10, 11]]
    assert turned.has_duals
    assert turned.cover == cover[::-1]
    assert turned.row_to_col is one.col_to_row
    assert solution(5).transpose().cover is None
    same, copied = one.to_host(), one.copy()
    assert all(a is b for a, b in zip((*same.mates, *same.duals), (*one.mates, *one.duals)))
    for other in (same, copied):
        assert (other.has_duals, other.cover) == (True, cover)
    one.clear()
    assert as_lists(one) == [[-1, -1], [-1, -1, -1], [0, 0], [0, 0, 0]]
    assert as_lists(copied) == as_lists(solution(5))
    one.assign_from(copied)
    assert as_lists(one) == as_lists(copied)


def test_a_task_can_be_handed_on():
    given = DenseCosts(np.ones((2, 3)))
    control, fallback = Control(), id
    task = AssignmentTask(given, solution(5), control, 7, 3, 11, fallback)
    other = DenseCosts(np.zeros((2, 3)))
    assert task.with_costs(other).costs is other
    assert task.with_costs(other).solution is task.solution
    seen = []

    def run(task):
        seen.append(task)
        task.solution.row_dual[:] = 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.run_on_host(run)
    (handed,) = seen
    told = handed.control, handed.limit, handed.threads, handed.seed, handed.fallback
    assert told == (control, 7, 3, 11, fallback)
    assert task.solution.row_dual.tolist() == [1, 1]
    graph = BipartiteGraph(np.ones((2, 3)))
    matching = task.matching(graph, *task.mates)
    assert matching.graph is graph
    assert matching.mates[0] is task.mates[0]
    assert matching.mates[1] is task.mates[1]
    assert (matching.control, matching.threads, matching.seed) == (control, 3, 11)
