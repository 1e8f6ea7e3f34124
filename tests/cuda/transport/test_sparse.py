"""The engine for sparse transport, on a GPU or on the emulator of its kernels."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

cp = pytest.importorskip("cupy")

from gpumatch.cuda.transport.sparse import auction, engine  # noqa: E402
from gpumatch.cuda.transport.sparse.network import Network  # noqa: E402
from gpumatch.running.control import Control  # noqa: E402
from tests.cpu.transport.problems import (  # noqa: E402
    check,
    least_cost,
    no_duals,
    random_task,
    task_of,
)
from tests.cuda.transport.on_device import (  # noqa: E402
    confirm,
    on_device,
    on_host,
    proved,
    short_launches,
)

pytestmark = pytest.mark.gpu
KINDS = [
    pytest.mark.parametrize("few", [0, 2**30], ids=["auction", "host"]),
    pytest.mark.parametrize("limit", [False, True], ids=["all", "limits"]),
    pytest.mark.parametrize("integer", [True, False], ids=["int", "float"]),
]


def of_each_kind(test):
    for mark in KINDS:
        test = mark(test)
    return test


def try_seeds(seeds, integer, limit, size, most):
    for seed in seeds:
        task = random_task(
            seed, dense=False, integer=integer, limit=limit, size=size, most=most
        )  # fmt: skip
        confirm(cp, engine.solve, task, least_cost(task))


@pytest.mark.emulated
@of_each_kind
def test_random_problems(monkeypatch, few, limit, integer):
    monkeypatch.setattr(engine, "FEW", few)
    try_seeds(range(6), integer, limit, size=9, most=6)


@of_each_kind
def test_many_random_problems(monkeypatch, few, limit, integer):
    monkeypatch.setattr(engine, "FEW", few)
    try_seeds(range(100, 140), integer, limit, size=9, most=6)
    for seed in range(140, 160):
        task = random_task(
            seed, dense=False, integer=integer, limit=limit, size=60, most=10**6
        )  # fmt: skip
        proved(cp, engine.solve, task)


@pytest.mark.emulated
def test_masses_are_not_unfolded():
    rng = np.random.default_rng(1)
    supply, demand = rng.integers(1, 2**48, 5), rng.integers(1, 2**47, 6)
    demand[2] += supply.sum() - demand.sum() + 7
    task = task_of(rng.integers(0, 9, (5, 6)), supply, demand, dense=False)
    solution, _ = proved(cp, engine.solve, task)
    assert solution.is_optimal
    assert solution.stats["paths"] <= 40


@pytest.mark.emulated
def test_given_duals_of_any_kind():
    task = random_task(8, dense=False, integer=True, limit=True, size=9)
    best = least_cost(task)
    for scale in (0, 3, 10**15):
        given = tuple(dual - scale * (k + 1) for k, dual in enumerate(no_duals(task)))
        confirm(cp, engine.solve, dataclasses.replace(task, initial=given), best)
    found = on_host(engine.solve(on_device(cp, task)))
    again = dataclasses.replace(task, initial=(found.row_dual, found.col_dual))
    confirm(cp, engine.solve, again, best)


@pytest.mark.emulated
@pytest.mark.parametrize("few", [0, 2**30], ids=["auction", "host"])
def test_it_stops_with_a_flow_and_feasible_duals(monkeypatch, few):
    monkeypatch.setattr(engine, "FEW", few)
    monkeypatch.setattr(auction.Tuning.__new__, "__defaults__", short_launches(1))
    task = random_task(2, dense=False, integer=True, limit=False, size=14, most=9)
    for last in (1, 2):
        ticks = itertools.count(1)
        control = Control(callback=lambda _, ticks=ticks, last=last: next(ticks) >= last)
        solution = on_host(
            engine.solve(on_device(cp, dataclasses.replace(task, control=control)))
        )  # fmt: skip
        assert not solution.is_optimal
        assert solution.infeasible_rows is None
        check(task, solution)


@pytest.mark.emulated
def test_nothing_to_ship():
    none = np.zeros(0, np.int64)
    costs = np.array([[3, -1], [2, 5]])
    for supply, demand, limits in (
        ([0, 0], [2, 3], None),
        ([0, 0], [0, 0], None),
        ([4, 1], [0, 0], np.array([7, -2])),
    ):
        task = task_of(costs, np.array(supply), np.array(demand), limits=limits, dense=False)
        confirm(cp, engine.solve, task, least_cost(task))
    empty = task_of(np.zeros((0, 2), np.int64), none, np.array([1, 2]), dense=False)
    confirm(cp, engine.solve, empty, 0)
    useless = task_of(
        costs[:1], np.array([1]), np.array([0, 1]), np.array([[False, True]]), dense=False
    )
    for initial in (None, no_duals(useless)):
        confirm(cp, engine.solve, dataclasses.replace(useless, initial=initial), None)
    barred = task_of(costs, np.array([1, 0]), np.array([1, 2]), np.ones((2, 2), bool), dense=False)
    confirm(cp, engine.solve, barred, None)


@pytest.mark.emulated
def test_integers_too_large_for_an_auction_are_left_to_the_host(monkeypatch):
    monkeypatch.setattr(engine, "FEW", 0)
    costs = np.array([[2**55, 1], [3, 4]])
    for factor, has_auction in ((1, True), (16, False)):
        task = task_of(costs * factor, np.array([1, 1]), np.array([1, 1]), dense=False)
        found = confirm(cp, engine.solve, task, 4 * factor)
        assert ("bidding_rounds" in found.stats) == has_auction


@pytest.mark.emulated
def test_flow_of_all_entries():
    """Columns without demand have no entries in the network, and limits have some."""
    task = on_device(cp, random_task(3, dense=False, integer=True, limit=True, size=9))
    indptr, indices = task.indptr.get(), task.indices.get()
    room, flow = task.demand.get() * 1, np.zeros(indices.size, np.int64)
    for row in range(indptr.size - 1):
        left = int(task.supply.get()[row])
        for entry in range(indptr[row], indptr[row + 1]):
            flow[entry] = units = min(left, room[indices[entry]])
            left -= units
            room[indices[entry]] -= units
    network = Network(task)
    network.ship(cp.asarray(flow))
    assert flow.any()
    assert (network.flow_of_entries().get() == flow).all()
