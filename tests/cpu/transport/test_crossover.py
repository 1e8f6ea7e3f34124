"""Trees of any flow, and the pivots that make it optimal, against a linear program."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gpumatch.contracts import Stopped
from gpumatch.contracts.transport import TransportSolution, TransportTask
from gpumatch.cpu.transport import crossover, engine, planting, simplex, sweeps
from gpumatch.cpu.transport.crossover import Basis
from gpumatch.cpu.transport.flows import Flows
from gpumatch.running.control import Control
from tests.cpu.transport.problems import check, least_cost, random_task, task_of

KINDS = [(integer, limit) for integer in (True, False) for limit in (True, False)]


def some_flow(task, seed):
    """A flow by pairs in a random order, most of them with less than they could carry."""
    rng, flow = np.random.default_rng(seed), np.zeros(task.indices.size, np.int64)
    left, need = task.supply.copy(), task.demand.copy()
    owner = np.repeat(np.arange(task.shape[0]), np.diff(task.indptr))
    for entry in rng.permutation(flow.size):
        row, col = owner[entry], task.indices[entry]
        units = min(left[row], need[col])
        flow[entry] = units if rng.random() < 0.5 else rng.integers(units + 1)
        left[row] -= flow[entry]
        need[col] -= flow[entry]
    return flow


def basis_of(task, flow):
    entries = task.indptr, task.indices, task.data
    price = np.zeros(task.demand.size)
    return Basis(entries, task.supply, task.demand, task.row_limit, flow, price, task.control)


def sums(task, flow):
    """The units of rows and of columns."""
    owner = np.repeat(np.arange(task.shape[0]), np.diff(task.indptr))
    return (
        np.bincount(owner, flow, task.shape[0]), np.bincount(task.indices, flow, task.shape[1])
    )  # fmt: skip


def solution_of(task, basis):
    """The flow and the duals of a basis as an engine returns them."""
    flow, price = basis.flow(), basis.prices()
    owner = np.repeat(np.arange(task.shape[0]), np.diff(task.indptr))
    slack = task.data - price[task.indices]
    low = np.zeros(task.shape[0], task.dtype)
    for row in range(task.shape[0]):
        ends = [*slack[owner == row], *([] if task.row_limit is None else [task.row_limit[row]])]
        low[row] = min(ends, default=0)
    used = np.flatnonzero(flow)
    return TransportSolution(
        owner[used], task.indices[used].astype(np.int64), flow[used], low, price, True
    )


def check_strong(basis):
    """An arc of the tree without flow points to the root, so no sequence of pivots repeats."""
    empty = np.flatnonzero(basis.tree[2][basis.nrows : -1] == 0)
    assert not basis.has_demand[empty].any()


@pytest.mark.parametrize(("integer", "limit"), KINDS)
def test_any_flow_leads_to_the_optimum(monkeypatch, integer, limit):
    """All conditions of the contract hold, for zero masses and for spare demand, too."""
    optima = 0
    for seed in range(150):
        monkeypatch.setattr(sweeps, "BLOCK", 64 if seed % 3 else 1)
        most = 6 if seed % 2 else 10**9
        task = random_task(seed, dense=False, integer=integer, limit=limit, most=most, size=9)
        least = least_cost(task)
        basis = basis_of(task, some_flow(task, seed))
        basis.solve()
        check_strong(basis)
        sent = sums(task, basis.flow())[0]
        assert (basis.unshipped() == task.supply - sent).all()
        if least is None:
            assert basis.unshipped().any()
            continue
        cost = check(task, solution_of(task, basis), 0 if integer else 1e-12)
        assert cost == pytest.approx(least, abs=1e-7, rel=1e-9)
        optima += 1
    assert optima > 50


def test_cycles_lose_an_arc_and_no_masses():
    """Flow turns along each cycle in the cheaper direction, until it has an empty arc."""
    rng = np.random.default_rng(0)
    costs = rng.integers(0, 99, (7, 9))
    flow = rng.integers(1, 9, (7, 9))
    task = task_of(costs, flow.sum(axis=1) + 1, flow.sum(axis=0), dense=False)
    basis = basis_of(task, flow.ravel().copy())
    before = (basis.flow() * task.data).sum()
    assert basis.closing.size == 63 + 7 - 16
    assert (basis.flow() == flow.ravel()).all()
    while basis.closing.size:
        done = simplex.absorb(
            basis.arcs, basis.used, basis.units, basis.closing, 0,
            basis.tree, basis.nrows, 1,
        )  # fmt: skip
        assert done == 1
        basis.closing = basis.closing[done:]
        after = (basis.flow() * task.data).sum() + basis.unshipped() @ basis.arcs[2][:7]
        assert after <= before + 7 * basis.arcs[2][0]
        rows, cols = sums(task, basis.flow())
        assert (rows + basis.unshipped() == task.supply).all()
        assert (cols <= task.demand).all()
    assert np.count_nonzero(basis.flow()) <= 7 + 9
    assert (basis.tree[2] >= 0).all()


def test_ties_do_not_cycle():
    """Equal costs and masses make every pivot degenerate."""
    costs = np.zeros((30, 30), np.int64)
    costs[:15, :15] = 1
    task = task_of(costs, np.full(30, 2), np.full(30, 2), dense=False)
    basis = basis_of(task, (2 * np.eye(30, dtype=np.int64)).ravel())
    basis.solve()
    check_strong(basis)
    assert check(task, solution_of(task, basis)) == 0


def test_units_wait_where_paths_are_dear():
    """Where a path costs more than an arc to the root, a unit stays, and paths go on from there."""
    size = 3 * crossover.FAR
    ends = np.arange(size)
    supply = np.ones(size, np.int64)
    task = TransportTask(
        supply, supply, Control(), indptr=np.minimum(2 * np.arange(size + 1), 2 * size - 1),
        indices=np.stack([ends, ends + 1], 1).ravel()[:-1].astype(np.int32),
        data=np.tile([1, 0], size)[:-1],
    )  # fmt: skip
    flow = np.zeros(2 * size - 1, np.int64)
    flow[1::2] = 1  # each row but the last ships to the column behind its own
    basis = basis_of(task, flow)
    basis.solve()
    assert basis.flow().sum() == size - 1
    flows = Flows(
        (task.indptr, task.indices, task.data), supply, supply, None, basis.prices(),
        task.control, basis.flow(),
    )  # fmt: skip
    flows.part_slack(0.0)
    assert flows.shipped == size - 1
    assert flows.serve() is None
    assert (flows.flow[::2] == 1).all()


@pytest.mark.parametrize("ticks", range(4))
def test_a_stopped_crossover_keeps_the_masses(monkeypatch, ticks):
    monkeypatch.setattr(planting, "BUDGET", 4)
    monkeypatch.setattr(sweeps, "BUDGET", 4)
    rng, left = np.random.default_rng(ticks), iter(range(ticks))
    control = Control(callback=lambda progress: next(left, None) is None)
    flow = rng.integers(0, 9, (8, 8))
    task = task_of(rng.random((8, 8)), flow.sum(axis=1), flow.sum(axis=0), dense=False)
    basis = basis_of(dataclasses.replace(task, control=control), flow.ravel().copy())
    with pytest.raises(Stopped):
        basis.solve()
    rows, cols = sums(task, basis.flow())
    assert (rows + basis.unshipped() == task.supply).all()
    assert (cols <= task.demand).all()


def test_costs_whose_sums_would_overflow_are_left_to_paths():
    assert crossover.takes((-(2**40), 2**40), (1000, 1000))
    assert not crossover.takes((0, 2**52), (1000, 1000))
    assert not crossover.takes((-(2**52), 0), (1000, 1000))


@pytest.mark.parametrize(("integer", "limit"), KINDS)
def test_an_optimal_flow_and_its_prices_need_no_pivot(integer, limit):
    """Its trees join by tight pairs; by other prices they would not."""
    pivots = 0
    for seed in range(60):
        task = random_task(seed, dense=False, integer=integer, limit=limit, most=6, size=12)
        found = engine.solve(task)
        if not found.is_optimal:
            continue
        flow = np.zeros(task.indices.size, np.int64)
        for row, col, units in zip(found.rows, found.cols, found.flow):
            first, last = task.indptr[row : row + 2]
            flow[first + np.searchsorted(task.indices[first:last], col)] = units
        entries = task.indptr, task.indices, task.data
        wrong = np.random.default_rng(seed).normal(size=task.demand.size) * 100
        for price in (found.col_dual, wrong):
            basis = Basis(
                entries, task.supply, task.demand, task.row_limit, flow.copy(), price, task.control
            )  # fmt: skip
            basis.solve()
            check_strong(basis)
            check(task, solution_of(task, basis), 0 if integer else 1e-12)
            if price is found.col_dual:
                assert basis.pivots == 0
        pivots += basis.pivots
    assert pivots > 0
