"""What a result says of itself is true, wherever its run was stopped: `proven`, and the gap.

The optimum is found by exact dynamic programming over sets of columns.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.dense import tuning as dense_tuning
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.tuning import Effort
from gpumatch.dispatch.backends import Choice
from tests.cpu.assignment.tuned import tune
from tests.recorded import assignment
from tests.recorded.record import in_small_steps

HOMES = [
    (algorithm.name, backend)
    for algorithm in gm.algorithms("assignment")
    for backend in algorithm.backends
    if backend != "cuda"
]
WISHES = {
    "full": {},
    "maximum": {"cardinality": "maximum"},
    "any": {"cardinality": "any"},
    "limit": {"cost_limit": 2},
    "limits": {"cost_limit": [2, 0, -3, 5, 1]},
    "maximum, limit": {"cardinality": "maximum", "cost_limit": 1},
}
SHAPES = [(5, 5), (5, 6)]
MOST = {"cpu": 40, "reference": 6}  # stops of a run


@functools.cache
def matrix(shape, kind, is_deficient=False):
    """Costs of both signs, of which a full assignment is dear; -7 to 7, or some digits more."""
    rng = np.random.default_rng(sum(shape))
    costs = rng.integers(-7, 8, shape) * 1.0
    costs[rng.random(shape) < 0.25] = math.inf
    np.fill_diagonal(costs, 6)
    if is_deficient:
        costs[2:, 2:] = math.inf
    return costs if kind == "ints" else costs + np.where(costs < 7, rng.random(shape), 0)


@functools.cache
def least(shape, kind, is_deficient, maximize, name):
    """The best value of what may be compared: (unmatched rows that are missing, cost less limits).

    Of k pairs, `value` subtracts the limits of their rows.
    """
    costs, sign = matrix(shape, kind, is_deficient), -1 if maximize else 1
    limits = limits_of(name, shape[0])
    bound = sign * WISHES[name]["cost_limit"] if name == "maximum, limit" else math.inf
    best = {0: (0, Fraction(0))}
    for row, line in enumerate(costs):
        following = {}
        for taken, (missing, cost) in best.items():
            options = [(taken, (missing + 1, cost))]
            for col, paid in enumerate(line):
                if paid < math.inf and sign * paid <= bound and not taken >> col & 1:
                    more = sign * (Fraction(paid) - limits[row])
                    options.append((taken | 1 << col, (missing, cost + more)))
            for key, value in options:
                following[key] = min(value, following.get(key, value), key=order(name))
        best = following
    return min(best.values(), key=order(name))


def order(name):
    """Whether fewer missing rows come first."""
    return (lambda value: value[1]) if name in ("any", "limit", "limits") else (lambda value: value)


def limits_of(name, nrows):
    limit = 0 if name.startswith("maximum") else WISHES[name].get("cost_limit", 0)
    return [Fraction(one) for one in (limit if isinstance(limit, list) else [limit] * nrows)]


def check_claims(a, shape, kind, is_deficient, name):
    missing, best = least(shape, kind, is_deficient, a.maximize, name)
    costs, sign = matrix(shape, kind, is_deficient), -1 if a.maximize else 1
    limits = limits_of(name, shape[0])
    pairs = list(zip(*(side.tolist() for side in a)))
    ours = sum((sign * (Fraction(costs[pair]) - limits[pair[0]]) for pair in pairs), Fraction(0))
    assert a.gap >= 0  # no NaN either
    if order(name)((1, 0)) != 0 and shape[0] - a.size > missing:
        assert (a.gap, a.proven) == (math.inf, False)
        return
    distance = ours - best
    assert distance >= 0
    if kind == "ints":
        assert distance == 0 or not a.proven
        assert a.gap >= distance
    else:
        rounding = 1e-13
        assert distance < rounding or not a.proven
        assert a.gap >= distance - Fraction(rounding)


def run(home, form, shape, kind, is_deficient, maximize, name, initial, **how):
    costs = matrix(shape, kind, is_deficient)
    wish = WISHES[name]
    if form == "sparse":
        rows, cols = np.nonzero(costs < math.inf)
        stored = costs[rows, cols].astype(int if kind == "ints" else float)
        costs = csr_array((stored, (rows, cols)), shape=shape)
    elif maximize:
        costs = np.where(costs < math.inf, costs, -math.inf)
    algorithm, backend = home
    how |= {"algorithm": algorithm, "backend": backend, "threads": 1}
    return gm.assign(costs, maximize=maximize, initial=initial, **wish, **how)


@pytest.mark.parametrize("name", WISHES)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("home", HOMES, ids=map("-on-".join, HOMES))
def test_claims_hold_at_every_stop(monkeypatch, home, form, name):
    """Also of the engine for large matrices, which serves every second problem here.

    Each two values of kind, deficiency and sign meet in a half of their combinations. Neighbours of
    this test take different halves.
    """
    choices = itertools.product(("ints", "floats"), (False, True), (False, True))
    half = HOMES.index(home) + [*WISHES].index(name) + (form == "sparse")
    for number, (kind, is_deficient, maximize) in enumerate(choices):
        if is_deficient and name == "full":
            continue
        if (number.bit_count() + half) % 2:
            continue
        problem = SHAPES[number // 2 % 2], kind, is_deficient
        few = 0 if number % 2 else 2**17
        tune(monkeypatch, dense_tuning, small=few, middle=few)
        initial = None if number % 3 == 0 else np.arange(5)
        solve = functools.partial(run, home, form, *problem, maximize, name, initial)
        for a in stops(solve, MOST[home[1]]):
            check_claims(a, *problem, name)


def stops(solve, most):
    """The results of a run stopped at its k-th tick, or interrupted there, for each k; the whole.

    Ticks come often. If there are more than `most`, those are k that are spread over all.
    """
    ticks = []
    with in_small_steps(assignment.WITH_BUDGETS, 12):
        yield solve(time_limit=0)
        yield solve(callback=lambda _: ticks.append(1))
        for stop in np.unique(np.linspace(0, len(ticks) - 1, most).astype(int)).tolist():
            calls = itertools.count()
            yield solve(callback=lambda _, calls=calls, stop=stop: next(calls) >= stop)
            calls = itertools.count()

            def interrupt(_, calls=calls, stop=stop):
                if next(calls) >= stop:
                    raise KeyboardInterrupt

            try:
                result = solve(callback=interrupt)  # threads may take fewer ticks
            except KeyboardInterrupt as exc:
                result = exc.result
            if result is not None:
                yield result


ON_DEVICE = [
    pytest.param(a.name, marks=pytest.mark.emulated if a.name == "auction" else ())
    for a in gm.algorithms("assignment")
    if "cuda" in a.backends
]


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("algorithm", ON_DEVICE)
def test_claims_hold_at_stops_on_a_device(algorithm, form):
    """The first ones are where an auction has no duals yet."""
    home = algorithm, "cuda"
    problems = ("full", "ints", False), ("maximum", "floats", True), ("limit", "ints", False)
    for name, kind, is_deficient in problems:
        problem = SHAPES[0], kind, is_deficient
        solve = functools.partial(run, home, form, *problem, False, name, np.arange(5))
        for a in stops(solve, 4):
            check_claims(a, *problem, name)


# -- gaps ------------------------------------------------------------------------------------------


class Claims:
    """An algorithm that pairs rows in order, and says that these duals of columns are feasible."""

    def __init__(self, row_dual, col_dual, ends=True):
        self.duals, self.ends = (row_dual, col_dual), ends

    def __call__(self, task):
        solution, pairs = task.solution, np.arange(task.costs.shape[0])
        solution.row_to_col[:] = solution.col_to_row[: pairs.size] = pairs
        solution.row_dual[:], solution.col_dual[:] = self.duals
        solution.has_duals = True
        return self.ends


@pytest.fixture
def with_claims(monkeypatch):
    """Let the algorithm be one that makes these claims."""

    def claim(*duals, **how):
        monkeypatch.setattr(Choice, "search", lambda _: Claims(*duals, **how))

    return claim


@pytest.mark.parametrize("number", [int, float])
def test_a_negative_gap_is_a_fault(with_claims, number):
    with_claims([2, 2], [0, 0])
    with pytest.raises(RuntimeError, match="internal error: an assignment costs 2"):
        gm.assign(np.eye(2, dtype=number), algorithm="hungarian-tree", backend="cpu")


def test_what_is_stopped_is_proven_by_a_gap_of_0(with_claims):
    costs, how = np.eye(2, dtype=int), {"algorithm": "hungarian-tree", "backend": "cpu"}
    for dual, gap in ((0, 2), (1, 0)):
        with_claims([dual, dual], [0, 0], ends=False)
        a = gm.assign(costs, **how)
        assert (a.objective, a.gap, a.proven) == (2, gap, gap == 0)


@pytest.mark.parametrize("number", [int, float])
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_what_is_loose_is_finished_by_exact_paths(with_claims, form, number):
    """The assignment that is claimed is the worst, its duals are feasible."""
    with_claims([0, 0], [0, 0])
    costs = form(np.array([[5, 1], [1, 5]], number))
    a = gm.assign(costs, algorithm="hungarian-tree", backend="cpu")
    assert (a.objective, a.gap, a.proven) == (2, 0, True)
    gm.verify(costs, a)


def one_dear_cost(n):
    costs = np.random.default_rng(n).random((n, n))
    costs[3, 5] = 1e18
    return costs


def wide(n):
    """Some pairs a row, of costs that differ by 30 orders of magnitude."""
    rng = np.random.default_rng(n)
    costs = np.full((n, n), math.inf)
    costs[np.arange(n)[:, None], rng.integers(0, n, (n, 8))] = np.exp(7 * rng.normal(size=(n, 8)))
    np.fill_diagonal(costs, np.exp(7 * rng.normal(size=n)))
    return costs


@pytest.mark.parametrize("shape", ["square", "wide", "deficient"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("costs", [one_dear_cost(120), wide(400)], ids=["one dear cost", "wide"])
@pytest.mark.parametrize("algorithm", ["engine", "shortest-augmenting-path", "auction"])
def test_what_is_proven_is_so_by_the_costs_in_use(monkeypatch, algorithm, costs, form, shape):
    """Its gap is as small as sums of these are rounded, whatever unused costs are."""
    tune(
        monkeypatch,
        sparse_tuning,
        small=0,
        **dict.fromkeys(["trial", "trial_with_spare"], Effort(False, 0, 0, 0)),
    )  # so it holds an auction
    n = len(costs)
    if shape == "wide":
        costs = costs[:-9]
    elif shape == "deficient":
        costs = costs.copy()
        costs[: n // 3, n // 4 :] = math.inf
    rows, cols = np.nonzero(costs < math.inf)
    given = costs
    if form == "sparse":
        given = csr_array((costs[rows, cols], (rows, cols)), shape=costs.shape)
    a = gm.assign(given, cardinality="maximum", algorithm=algorithm, backend="cpu")
    assert a.proven
    assert 0 <= a.gap <= 1e-12 * a.objective
    if shape != "deficient":
        best = costs[linear_sum_assignment(costs)].sum()
        assert a.objective == pytest.approx(best, rel=1e-12)


# -- batches and ranks -----------------------------------------------------------------------------


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_are_proven_by_the_costs_in_use(dtype, maximize):
    """What the kernels do not prove is solved alone: dear pairs make their prices too coarse."""
    rng, sign = np.random.default_rng(4), -1 if maximize else 1
    costs = rng.random((60, 7, 7)).astype(dtype)
    costs[rng.random(costs.shape) < 0.25] = 1e18
    costs *= sign
    batch = gm.assign(costs, maximize=maximize)
    assert batch.proven.all()
    best = [problem[linear_sum_assignment(problem, maximize)].sum() for problem in costs]
    assert batch.objective == pytest.approx(best, rel=1e-6 if dtype == np.float32 else 1e-12)
    for problem, a in zip(costs, batch):
        assert 0 <= a.gap <= 1e-12 * abs(a.objective)
        alone = gm.assign(problem, maximize=maximize)
        assert (alone.proven, alone.objective) == (True, a.objective)


@pytest.mark.parametrize("algorithm", ["engine", "hungarian-classical", "hungarian-tree"])
def test_claims_of_ranks_hold_at_every_stop(algorithm):
    pytest.importorskip("mpi4py")
    for kind, name in itertools.product(("ints", "floats"), ("full", "maximum", "any")):
        if algorithm != "engine" and name != "full":
            continue
        costs = matrix((5, 5), kind)

        def solve(callback, costs=costs, name=name):
            wish = WISHES[name] | {"algorithm": algorithm}
            return gm.distributed.assign(costs, callback=callback, **wish)

        ticks = []
        whole = solve(lambda _, ticks=ticks: ticks.append(1))
        assert whole.proven
        for stop in range(len(ticks)):
            calls = itertools.count()
            a = solve(lambda _, calls=calls, stop=stop: next(calls) >= stop)
            distance = a.objective - whole.objective
            if name != "any" and a.size < whole.size:
                assert (a.gap, a.proven) == (math.inf, False)
            else:
                assert a.gap >= max(distance - 1e-13, 0)
                assert distance <= 1e-13 or not a.proven


def dearest(task):
    """An algorithm that says it is exact, and whose pairs cost most: its duals show the gap."""
    solution, costs = task.solution, task.costs.dense()
    solution.row_to_col[:] = solution.col_to_row[:] = -1
    if costs.size:
        rows, cols = linear_sum_assignment(np.where(costs < math.inf, -costs, 1e9))
        solution.row_to_col[rows], solution.col_to_row[cols] = cols, rows
        solution.row_dual[:] = costs.min(axis=1)
    solution.col_dual[:] = 0
    solution.has_duals = True
    return True


@pytest.mark.parametrize("lone", ["rows", "columns", "both"])
def test_largest_assignments_are_finished_on_the_sides_of_their_cover(monkeypatch, lone):
    """A row without a pair is in neither part, and no pair stays that a path has changed."""
    monkeypatch.setattr(Choice, "search", lambda _: dearest)
    costs = np.random.default_rng(4).random((9, 14))
    if lone != "columns":
        costs[6:] = math.inf
    if lone != "rows":
        costs[:, 3:] = math.inf
    for given in (costs, costs.T):
        a = gm.assign(given, cardinality="maximum", algorithm="hungarian-tree", backend="cpu")
        kept = np.isfinite(costs).any(axis=1), np.isfinite(costs).any(axis=0)
        block = costs[kept[0]][:, kept[1]]
        rows, cols = linear_sum_assignment(block)
        assert (a.size, a.proven) == (min(block.shape), True)
        assert a.objective == pytest.approx(block[rows, cols].sum())
        gm.verify(given, a)


def hard_for_rounding(rng):
    """Costs whose duals may be far greater than the costs of the pairs."""
    n, m = rng.integers(1, 20, 2)
    kind = rng.integers(3)
    if kind == 0:  # some points, and copies of most of them: nearly all pairs cost nothing
        points = rng.random((max(n, m), 2))
        costs = ((points[:n, None] - rng.permutation(points)[None, :m]) ** 2).sum(axis=2)
    elif kind == 1:
        costs = np.exp(7 * rng.normal(size=(n, m)))
    else:
        costs = 10 ** rng.uniform(-9, 9, (n, m))
    if rng.random() < 0.3:
        costs[rng.random(costs.shape) < 0.4] = math.inf
    return costs


@pytest.mark.parametrize(
    "algorithm",
    ["engine", "shortest-augmenting-path", "auction", "hungarian-classical", "hungarian-tree"],
)
def test_what_is_proven_is_accepted(algorithm):
    """`verify` knows only the costs of the pairs: a result must not be proven by greater ones."""
    rng = np.random.default_rng(8)
    unproven = 0
    for _ in range(250):
        costs, how = hard_for_rounding(rng), {"cardinality": str(rng.choice(["maximum", "any"]))}
        if how["cardinality"] == "any" or rng.random() < 0.3:
            how["cost_limit"] = float(
                rng.choice(costs[costs < math.inf], 1)[0] if (costs < math.inf).any() else 1
            )
        a = gm.assign(costs, algorithm=algorithm, backend="cpu", **how)
        gm.verify(costs, a, optimal=a.proven)
        unproven += not a.proven
    assert unproven <= 2


@pytest.mark.parametrize("limit", [1, np.ones(3, int)], ids=["one", "each row's"])
@pytest.mark.parametrize("number", [int, float])
def test_what_is_stopped_and_proven_keeps_its_limit(limit, number):
    """Nothing is searched, and nothing need be: each pair costs as much as the limit."""
    costs = np.ones((3, 4), number)
    for maximize in (False, True):
        a = gm.assign(costs, cost_limit=limit, maximize=maximize, time_limit=0)
        assert (a.size, a.proven) == (3, True)
        gm.verify(costs, a)
