"""Pyomo decomposes a model on the backend, where Pyomo is installed."""

from __future__ import annotations

import logging

import pytest

nx = pytest.importorskip("networkx")
pyo = pytest.importorskip("pyomo.environ", reason="Pyomo is not installed")

from pyomo.contrib.incidence_analysis import IncidenceGraphInterface  # noqa: E402

CHAIN = 300  # equations: so many that the backend takes the graph


def test_a_models_structure_is_decomposed(caplog):
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(CHAIN), initialize=1.0)
    m.y = pyo.Var([0, 1], initialize=1.0)
    m.eq = pyo.ConstraintList()
    for k in range(CHAIN - 1):
        m.eq.add(m.x[k] + 2 * m.x[k + 1] == 1)
    m.eq.add(m.x[0] * m.x[1] == 2)
    m.eq.add(m.x[0] - m.x[1] == 3)  # one too many
    m.eq.add(m.y[0] + m.y[1] == 4)  # one too few
    with nx.config(backend_priority=["gpumatch"]), caplog.at_level(logging.DEBUG, "networkx"):
        variables, equations = IncidenceGraphInterface(m).dulmage_mendelsohn()
    used = "Using backend 'gpumatch' for call to 'hopcroft_karp_matching'"
    assert any(used in record.getMessage() for record in caplog.records)
    assert len(equations.unmatched) == 1
    assert len(variables.unmatched) == 1
    over = {constraint.name for constraint in (*equations.unmatched, *equations.overconstrained)}
    assert over == {"eq[1]", f"eq[{CHAIN}]", f"eq[{CHAIN + 1}]"}
    assert {variable.name for variable in variables.unmatched} <= {"y[0]", "y[1]"}
