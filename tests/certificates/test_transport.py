"""The checker of flows accepts true results and refuses every lie in one."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.certificates import CertificateError, TransportCertificate
from gpumatch.certificates.units import products

COSTS = np.array([[4, 1, 3, 9], [2, 0, 5, 9], [3, 2, 2, 1]])
SUPPLY, DEMAND = np.array([2, 3, 4]), np.array([3, 1, 4, 6])
SPARSE = (np.array([0, 2, 3, 5]), np.array([0, 1, 1, 1, 2]), np.array([1, 2, 3, 4, 5]), (3, 3))
FIELDS = (
    *("row_ind", "col_ind", "flow", "flow_units", "row_flow", "col_flow", "pair_costs"),
    *("row_dual", "col_dual", "row_bounds", "col_bounds", "unit", "size", "total"),
    *("objective", "gap", "maximize", "cardinality", "cost_limit", "pair_capacity"),
)
QUESTIONS = {
    "full": (COSTS, SUPPLY, DEMAND, {}),
    "floats": (COSTS / 7, SUPPLY / 7, DEMAND / 7, {}),
    "bounds": (COSTS, SUPPLY, ([1, 0, 2, 3], [3, 1, 4, 6]), {}),
    "limit": (COSTS, SUPPLY, DEMAND, {"cost_limit": 2}),
    "most": (SPARSE, [2, 3, 1], [1, 2, 9], {"cardinality": "maximum"}),
    "room": (COSTS, SUPPLY, DEMAND, {"pair_capacity": 2}),
    "cut": (COSTS, SUPPLY, DEMAND, {"pair_capacity": COSTS % 2 + 0.5, "cardinality": "maximum"}),
    "gate": (COSTS, SUPPLY, DEMAND, {"pair_capacity": 1, "cost_limit": 4}),
    "gain": (COSTS, DEMAND[:3], SUPPLY.sum(), {"maximize": True, "cardinality": "any"}),
}


def claim_of(t):
    """A copy of a result that can be changed."""
    claim = SimpleNamespace(**{name: getattr(t, name) for name in FIELDS})
    for name, value in vars(claim).items():
        if isinstance(value, np.ndarray):
            setattr(claim, name, value.copy())
    claim.row_bounds, claim.col_bounds = (
        tuple(part.copy() for part in pair) for pair in (t.row_bounds, t.col_bounds)
    )
    claim.cover_ind = t.cover_ind
    return claim


def question(name):
    costs, supply, demand, how = QUESTIONS[name]
    t = gm.transport(costs, supply, demand, threads=1, **how)
    masses = {"supply": supply, "demand": demand}
    if "pair_capacity" in how:
        masses["pair_capacity"] = how["pair_capacity"]
    return costs, masses, claim_of(t)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_true_result_is_accepted(name):
    costs, masses, claim = question(name)
    found = gm.verify(costs, claim, **masses)
    assert isinstance(found, TransportCertificate)
    assert (found.problem, found.size, found.objective) == (
        "transport",
        claim.size,
        claim.objective,
    )
    assert found.gap <= found.allowance
    assert str(found).startswith("optimal: ")
    assert gm.verify(costs, claim).edges > 0


def shifted(name, by, at=0):
    """Add to a number of an array."""

    def lie(claim):
        array = getattr(claim, name)
        array[at] += by

    return lie


def put(name, value):
    """Set a field."""
    return lambda claim: setattr(claim, name, value)


def moved_unit(claim):
    """Move a unit to another column, in all that the result says of it."""
    units = claim.flow_units
    pair = int(np.argmax(units > 1))
    units[pair] -= 1
    claim.flow = units * claim.unit
    claim.total = int(units.sum()) * claim.unit
    for name, ends in (("row_flow", claim.row_ind), ("col_flow", claim.col_ind)):
        sums = np.bincount(ends, units, len(getattr(claim, name)))
        setattr(claim, name, (sums * claim.unit).astype(claim.flow.dtype))
    claim.objective = float((claim.pair_costs * claim.flow).sum())
    if claim.pair_costs.dtype.kind == "i" and claim.flow.dtype.kind == "i":
        claim.objective = int(claim.objective)


LIES = {
    "another row": shifted("row_ind", 1),
    "a row that is none": shifted("row_ind", 99, -1),
    "a column that is none": shifted("col_ind", -9),
    "another flow": shifted("flow", 1),
    "more units": shifted("flow_units", 1),
    "no units": shifted("flow_units", -(2**62)),
    "another row's flow": shifted("row_flow", 1),
    "another column's flow": shifted("col_flow", 1),
    "another pair's cost": shifted("pair_costs", 1),
    "a unit less": moved_unit,
    "a smaller row dual": shifted("row_dual", -3),
    "larger column duals": lambda claim: claim.col_dual.__iadd__(50),
    "smaller column duals": lambda claim: claim.col_dual.__isub__(50),
    "NaN": lambda claim: setattr(claim, "row_dual", claim.row_dual * math.nan),
    "few duals": lambda claim: setattr(claim, "col_dual", claim.col_dual[1:]),
    "other bounds": lambda claim: claim.row_bounds[1].__iadd__(2**50),
    "bounds below 0": lambda claim: claim.col_bounds[0].__isub__(1),
    "another unit": put("unit", 3),
    "another size": put("size", 99),
    "another total": put("total", -1),
    "another objective": lambda claim: setattr(claim, "objective", claim.objective + 1),
    "another gap": put("gap", 5),
    "a gap below 0": put("gap", -1),
    "no number": put("objective", math.nan),
    "the other way": lambda claim: setattr(claim, "maximize", not claim.maximize),
    "no answer": put("maximize", 1),
    "capacities that are exceeded": put("pair_capacity", 0),
    "capacities of other pairs": put("pair_capacity", np.zeros((2, 2), np.int64)),
    "capacities of no units": put("pair_capacity", 0.5),
    "a cardinality that is none": put("cardinality", "most"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_lie_is_refused(name, lie):
    costs, masses, claim = question(name)
    LIES[lie](claim)
    with pytest.raises(CertificateError):
        gm.verify(costs, claim, **masses)


def test_a_wrong_cover_is_refused():
    costs, masses, claim = question("most")
    rows, cols = claim.cover_ind()
    for cover in ((rows[1:], cols), (rows, cols[1:]), (np.array([7]), cols)):
        claim.cover_ind = lambda cover=cover: cover
        with pytest.raises(CertificateError):
            gm.verify(costs, claim, **masses)


@pytest.mark.parametrize("name", ["room", "cut"])
def test_capacities_are_those_of_the_caller(name):
    costs, masses, claim = question(name)
    claim.pair_capacity = None
    with pytest.raises(CertificateError, match="other capacities"):
        gm.verify(costs, claim, **masses)
    costs, masses, claim = question(name)
    wrong = {**masses, "pair_capacity": np.asarray(masses["pair_capacity"]) + 0.25}
    with pytest.raises(CertificateError, match="capacity of a pair"):
        gm.verify(costs, claim, **wrong)


def test_a_wrong_cut_is_refused():
    costs, masses, claim = question("cut")
    rows, cols = claim.cover_ind()
    for cut in ((rows[1:], cols), (rows, cols[1:]), (np.arange(3), np.arange(4))):
        if [len(part) for part in cut] == [len(rows), len(cols)]:
            continue
        claim.cover_ind = lambda cut=cut: cut
        with pytest.raises(CertificateError, match=r"but the cut has|units, but needs"):
            gm.verify(costs, claim, **masses)
        with pytest.raises(CertificateError, match="the gap is"):
            gm.verify(costs, claim, optimal=False, **masses)


def test_what_a_mass_may_be_off_by():
    """By less than a unit, and by nothing if units are 1; numbers that are no float64 as well."""
    for masses in (np.float32([0.25, 0.5]), np.longdouble([0.25, 0.5]), [0.25, 0.5]):
        t = gm.transport([[1.0, 2.0], [3.0, 1.0]], np.asarray(masses, np.float64), 1.5)
        gm.verify([[1.0, 2.0], [3.0, 1.0]], t, supply=masses, demand=1.5)
        with pytest.raises(CertificateError, match="supply 1 is"):
            gm.verify([[1.0, 2.0], [3.0, 1.0]], t, supply=[0.25, 0.5 + 2**-50], demand=1.5)
    t = gm.transport([[1, 2]], 3, 2)
    for wrong in (3.5, 2**63, np.uint64(2**63), -3):
        with pytest.raises(CertificateError, match="supply 0 is"):
            gm.verify([[1, 2]], t, supply=wrong)
    gm.verify([[1, 2]], t, supply=3.0, demand=np.array([2, 2], np.uint64))


def test_sums_of_products_are_exact():
    random = np.random.default_rng(0)
    for values in (
        random.integers(-(2**62), 2**62, 500),
        random.normal(size=500) * 10.0 ** random.integers(-300, 280, 500),
        np.full(500, 5e-324),
    ):
        counts = random.integers(0, 2 ** random.integers(1, 62, 500))
        exact = sum(Fraction(v) * u for v, u in zip(values.tolist(), counts.tolist()))
        assert products(values, counts) == exact
        assert products(values[:3], counts[:3]) == sum(
            Fraction(v) * u for v, u in zip(values[:3].tolist(), counts[:3].tolist())
        )


def test_masses_are_those_of_the_caller():
    costs, masses, claim = question("floats")
    for name in masses:
        wrong = {**masses, name: masses[name] * (1 + 1e-15)}
        with pytest.raises(CertificateError, match=name):
            gm.verify(costs, claim, **wrong)
    with pytest.raises(TypeError, match="supply is for BatchTransport or Transport; got Assign"):
        gm.verify(COSTS, gm.assign(COSTS), supply=1)


def test_a_worse_flow_is_accepted_if_it_need_not_be_optimal():
    costs, masses, claim = question("gain")
    moved_unit(claim)
    claim.gap = math.inf
    found = gm.verify(costs, claim, optimal=False, **masses)
    assert found.gap > 0
    assert "not proven optimal" in str(found)
