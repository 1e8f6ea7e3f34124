"""Small transport problems in compiled calls: the same optima as other code, and most of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.costs import CostBatch
from gpumatch.numeric.exact_sums import summands
from gpumatch.problems import small_transports, transport
from gpumatch.problems.masses import masses_of, masses_of_many
from gpumatch.problems.request import Request
from gpumatch.running.control import Control

WATCHED = 1e9  # a time limit, so that other code answers


def drawn(random):
    """Costs, masses and a wish of a small problem; costs of a kind, so that ties are frequent."""
    n, m = random.integers(1, 8, 2)
    shape, kind = (n, m), random.integers(5)
    C = (
        random.integers(-5, 6, shape),
        random.integers(-(2**46), 2**46, shape),
        random.random(shape) - 0.3,
        random.integers(0, 9, shape).astype(np.float32),
        np.exp(4 * random.normal(size=shape)),
    )[kind]
    wish = {"maximize": bool(random.integers(2))}
    if kind in (2, 4) and random.integers(2):
        C[random.random(shape) < 0.2] = -math.inf if wish["maximize"] else math.inf
    draws = (
        lambda k: random.integers(0, 4, k),
        lambda k: random.integers(0, 2**40, k),
        lambda k: random.random(k),
        lambda k: np.full(k, 1 / k),
    )
    draw = draws[random.integers(4)]
    if random.integers(2):
        wish["cardinality"] = "any"
    if random.integers(2):
        wish["cost_limit"] = (0.25, 2, -1)[random.integers(3)]
    return C, draw(n), draw(m), wish


def flow_or_error(C, supply, demand, **more):
    try:
        return gm.transport(C, supply, demand, **more)
    except gm.InfeasibleError as error:
        return str(error)


def worth(t):
    """What a flow costs less the limit of its units: ties at the limit may ship more or less."""
    limit = t.cost_limit or 0
    return t.objective - limit * t.total


def test_small_problems_are_solved_as_by_other_code():
    random, quick = np.random.default_rng(1), 0
    for _ in range(400):
        C, supply, demand, wish = drawn(random)
        t = flow_or_error(C, supply, demand, **wish)
        other = flow_or_error(C, supply, demand, **wish, time_limit=WATCHED)
        if isinstance(other, str):
            assert t == other
            continue
        quick += "costs" not in t.stats["seconds"]
        assert t.proven
        assert other.proven
        assert worth(t) == pytest.approx(worth(other), rel=1e-12, abs=1e-12)
        if isinstance(other.objective, int):
            assert (type(t.objective), worth(t)) == (int, worth(other))
        for name in ("flow", "row_dual", "pair_costs"):
            assert getattr(t, name).dtype == getattr(other, name).dtype
        assert (t.unit, t.dtype, t.cost_limit) == (other.unit, other.dtype, other.cost_limit)
        gm.verify(C, t, supply=supply, demand=demand)
    assert quick > 340


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_takes_one_call_for_many_problems(monkeypatch, threads):
    monkeypatch.setattr(transport, "solve", None)  # no problem is solved by itself
    random = np.random.default_rng(2)
    C = random.integers(-50, 50, (300, 6, 8))
    supply, demand = random.integers(0, 9, (300, 6)), random.integers(0, 9, 8)
    calls = []
    t = gm.transport(C, supply, demand, threads=threads, callback=calls.append)
    assert 1 <= len(calls) < 30
    assert t.proven.all()
    assert (t.gap == 0).all()
    gm.verify(C, t, supply=supply, demand=demand)
    assert t.total.tolist() == np.minimum(supply.sum(1), demand.sum()).tolist()
    assert t[-1].flow.sum() == t.total[-1] == t.row_flow[-1].sum() == t.col_flow[-1].sum()
    assert t.size.tolist() == [one.size for one in t]
    assert t.objective.tolist() == [one.objective for one in t]
    assert sum(one.stats["scans"] for one in t) < 300 * 6 * 8 * 4


def test_other_code_solves_what_kernels_leave():
    C = np.ones((4, 2, 2))
    C[1, 0, 0] = 2.0**400
    C[2, :, 0] = math.inf
    demand = np.array([[1, 1], [1, 1], [0, 2], [1, 1]])
    t = gm.transport(C, 1, demand)
    assert t.proven.all()
    assert t.objective.tolist() == [2, 2, 2, 2]
    marked = gm.transport(C, 1, 1, on_error="mark")
    assert list(marked.errors) == [2]
    assert marked.proven.tolist() == [True, True, False, True]
    C[3, 1, 1] = math.nan
    with pytest.raises(ValueError, match="problem 3: "):
        gm.transport(C, 1, demand)
    with pytest.raises(ValueError, match=r"costs\[1, 1\]|NaN"):
        gm.transport(C[3], 1, 1)


@pytest.mark.parametrize("stop", [lambda progress: True, KeyboardInterrupt])
def test_a_batch_of_small_problems_can_be_stopped(monkeypatch, stop):
    from gpumatch.cpu.transport import small_batch

    monkeypatch.setattr(small_batch, "RANGE", 16)
    C, seen = np.random.default_rng(3).random((40, 4, 4)), []

    def watch(progress):
        seen.append(progress.matched)
        if len(seen) < 4:
            return False
        if stop is KeyboardInterrupt:
            raise KeyboardInterrupt
        return stop(progress)

    if stop is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt) as caught:
            gm.transport(C, 1, 1, callback=watch, threads=1)
        t = caught.value.result
    else:
        t = gm.transport(C, 1, 1, callback=watch, threads=1)
    assert 0 < t.proven.sum() < 40
    assert seen == sorted(seen)
    gm.verify(C, t, optimal=False, supply=1, demand=1)


def test_masses_of_many_are_those_of_each():
    random = np.random.default_rng(4)
    shape = (5, 7)
    sizes = np.stack([random.integers(1, 6, 200), random.integers(1, 8, 200)], axis=1)
    every = np.tile(shape, (200, 1))
    wide = np.exp(20 * random.normal(size=(200, 5)))
    halves = (
        random.integers(1, 2**8, (200, 7)) * 2.0**-3 + random.integers(0, 2, (200, 7)) * 2.0**-62
    )
    for supply, demand, lengths in (
        (random.integers(0, 9, (200, 5)), 3, every),
        (wide, random.random((200, 7)), sizes),
        (random.random((200, 5)), halves, every),
        (np.ones((200, 5)), halves, every),
        (np.ones(5, np.float32) / 5, np.ones(7) / 7, every),
        ([np.arange(n) for n, _ in sizes], [np.ones(m) for _, m in sizes], sizes),
    ):
        many = masses_of_many(supply, demand, lengths, shape)
        for k, (n, m) in enumerate(lengths.tolist()):
            own = [
                mass[k]
                if isinstance(mass, list)
                else mass[k, :length]
                if np.ndim(mass) == 2
                else mass
                for mass, length in ((supply, n), (demand, m))
            ]
            one = masses_of(*own, (n, m))
            assert (many[k].unit, many[k].dtype) == (one.unit, one.dtype)
            for side, other in zip(many[k][:2], one[:2]):
                assert [part.tolist() for part in side] == [part.tolist() for part in other]
    for wrong in (-1, math.nan, 2**62, "1", True, [1, 2, 3], np.ones((3, 5)), (0, 1)):
        assert masses_of_many(wrong, 1, every, shape) is None
    assert not summands(np.zeros(0))


def test_what_is_no_small_problem():
    request = Request.of(Control())
    for C in (np.zeros((0, 3)), np.zeros((129, 128)), np.ones((2, 2), bool), csr_array((2, 2))):
        assert small_transports.solve_one(C, 1, 1, request) is None
    largest = request._replace(cardinality="maximum")
    assert small_transports.solve_one(np.ones((2, 2)), 1, 1, largest) is None
    assert small_transports.solve(CostBatch(np.ones((1, 2, 2))), 1, 1, largest) is None
    assert small_transports.solve_one(np.ones((2, 2)), (0, 1), 1, request) is None


def unfolded(C, supply, demand):
    """The costs of single units."""
    return C[np.repeat(np.arange(supply.size), supply)][
        :, np.repeat(np.arange(demand.size), demand)
    ]


WISHES = [
    {"maximize": maximize, "cardinality": cardinality, "cost_limit": limit}
    for maximize in (False, True)
    for cardinality in ("full", "any")
    for limit in (None, 2, -1)
]


def check_against_units(count, wish, seed):
    """Random problems, with ties, zero masses and forbidden pairs, against `assign` of units."""
    random, sign = np.random.default_rng(seed), -1 if wish["maximize"] else 1
    problems, units = [], []
    for _ in range(count):
        n, m = random.integers(1, 5, 2)
        C = random.integers(-4, 6, (n, m)).astype(np.float64)
        C[random.random((n, m)) < random.choice([0, 0.2])] = sign * math.inf
        supply, demand = random.integers(0, 4, n), random.integers(0, 4, m)
        problems.append((C, supply, demand))
        units.append(unfolded(C, supply, demand))
    t = gm.transport(*map(list, zip(*problems)), **wish, on_error="mark")
    a = gm.assign(units, **wish, on_error="mark")
    limit = wish["cost_limit"] or 0
    assert t.errors.keys() == a.errors.keys()
    assert t.proven.sum() == count - len(t.errors)
    assert ((t.objective - limit * t.total) == (a.objective - limit * a.size))[t.proven].all()
    return len(t.errors)


def test_random_problems_against_units():
    assert sum(check_against_units(150, wish, k) for k, wish in enumerate(WISHES))


@pytest.mark.long
def test_a_hundred_thousand_random_problems_against_units():
    each = -(-100_000 // len(WISHES))
    for k, wish in enumerate(WISHES):
        check_against_units(each, wish, k + 100)


def drawn_network(random):
    """A sparse problem, its masses and a wish; a row or a column may have no pair or no mass."""
    n, m = random.integers(1, 12, 2)
    allowed = random.random((n, m)) < random.choice([0.3, 0.7, 1.0])
    is_whole = random.integers(2)
    C = random.integers(-5, 9, (n, m)) if is_whole else random.normal(size=(n, m))
    rows, cols = allowed.nonzero()
    C = csr_array((C[rows, cols], (rows, cols)), shape=(n, m))
    wish = {"maximize": bool(random.integers(2))}
    if random.integers(2):
        wish["cardinality"] = "any"
    if random.integers(2):
        wish["cost_limit"] = (0.25, 2, -1)[random.integers(3)]
    masses = [random.integers(0, 5, k) * random.choice([1, 2**30]) for k in (n, m)]
    if random.integers(3) == 0:  # totals agree, and all can be shipped
        flow = random.integers(0, 9, rows.size)
        masses = [np.bincount(part, flow, k).astype(int) for part, k in ((rows, n), (cols, m))]
    return C, *masses, wish


def test_networks_are_solved_as_by_other_code():
    random, quick = np.random.default_rng(2), 0
    for _ in range(500):
        C, supply, demand, wish = drawn_network(random)
        t = flow_or_error(C, supply, demand, **wish)
        other = flow_or_error(C, supply, demand, **wish, time_limit=WATCHED)
        if isinstance(other, str):
            assert t == other
            continue
        quick += "costs" not in t.stats["seconds"]
        assert (t.proven, type(t.objective)) == (True, type(other.objective))
        assert worth(t) == pytest.approx(worth(other), rel=1e-12, abs=1e-12)
        for name in ("row_ind", "col_ind", "flow", "row_dual", "col_dual", "pair_costs"):
            assert getattr(t, name).dtype == getattr(other, name).dtype
        gm.verify(C, t, supply=supply, demand=demand)
    assert quick > 300


def test_larger_dense_problems_are_networks_of_all_pairs():
    random = np.random.default_rng(3)
    for shape in ((80, 90), (100, 60)):
        C, masses = random.random(shape), [random.integers(0, 9, k) for k in shape]
        for wish in ({}, {"cost_limit": 0.02}, {"cardinality": "any", "maximize": True}):
            t = gm.transport(C, *masses, **wish)
            assert "costs" not in t.stats["seconds"]
            other = gm.transport(C, *masses, **wish, time_limit=WATCHED)
            assert worth(t) == pytest.approx(worth(other), rel=1e-12)
            gm.verify(C, t, supply=masses[0], demand=masses[1])


def test_unusual_entries_are_left_to_other_code():
    supply, demand = [1, 2], [2, 1, 1]
    changes = {
        "order": lambda a: np.copyto(a[1][:2], [2, 0]),
        "twice": lambda a: np.copyto(a[1][:2], [0, 0]),
        "beyond": lambda a: np.copyto(a[1][:2], [0, 7]),
        "nan": lambda a: np.copyto(a[2][:1], math.nan),
        "inf": lambda a: np.copyto(a[2][:1], math.inf),
        "large": lambda a: np.copyto(a[2][:1], 2.0**400),
        "stuck": lambda a: np.copyto(a[0], [0, 0, 4]),
    }
    for name, change in changes.items():
        arrays = np.array([0, 2, 4]), np.array([0, 2, 0, 1]), np.array([5.0, 1.0, 2.0, 3.0])
        change(arrays)
        C, found = csr_array((2, 3)), []
        C.indptr, C.indices, C.data = arrays
        for more in ({}, {"time_limit": WATCHED}):
            try:
                found.append(gm.transport(C.copy(), supply, demand, **more).objective)
            except ValueError as error:
                found.append(str(error))
        assert found[0] == found[1], name
        assert isinstance(found[0], str) == (name in ("beyond", "nan", "stuck")), name
