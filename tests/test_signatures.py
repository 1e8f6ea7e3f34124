"""What public functions take if they are not told: a change of it is a change for every caller."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gpumatch as gm
from gpumatch import csgraph, distributed, general, io, linalg, optimize, plot

RUN = {"backend": "auto", "seed": 0, "threads": None}
CALL = {"time_limit": None, "progress": False, "callback": None}
READ = {"format": "auto", "duplicates": None, "max_bytes": 2**32}
DEFAULTS = {
    gm.maximum_matching: {
        **RUN, **CALL, "algorithm": "auto", "init": "auto", "initial": None, "row_nodes": None,
        "row_capacity": None, "col_capacity": None,
    },
    gm.assign: {
        **RUN, **CALL, "algorithm": "auto", "objective": "sum", "maximize": False,
        "cardinality": "full", "cost_limit": None, "initial": None, "weight": "weight",
        "row_nodes": None, "sizes": None, "on_error": "raise",
    },
    gm.transport: {
        **RUN, **CALL, "algorithm": "auto", "maximize": False, "cardinality": "full",
        "cost_limit": None, "pair_capacity": None, "initial": None, "sizes": None,
        "on_error": "raise",
    },
    gm.verify: {
        "optimal": True, "sizes": None, "supply": None, "demand": None, "pair_capacity": None,
        "weight": "weight", "triangle": "both",
    },
    gm.algorithms: {"problem": None},
    gm.warmup: {"backend": "auto", "tell": None},
    gm.BipartiteGraph.from_edges: {"shape": None},
    gm.BipartiteGraph.from_networkx: {"row_nodes": None},
    gm.BipartiteGraph.to_csr: {"dtype": np.float64, "copy": False},
    csgraph.maximum_bipartite_matching: {"perm_type": "row"},
    csgraph.min_weight_full_bipartite_matching: {"maximize": False},
    optimize.linear_sum_assignment: {"maximize": False, "cost_limit": None},
    optimize.linear_sum_assignment_batch: {
        "maximize": False, "cost_limit": None, "sizes": None, "threads": None,
    },
    distributed.maximum_matching: {**CALL, "comm": None, "backend": "cpu"},
    distributed.assign: {
        **CALL, "comm": None, "maximize": False, "cardinality": "full", "cost_limit": None,
        "algorithm": "auto", "backend": "cpu",
    },
    distributed.verify: {"comm": None, "optimal": True, "sizes": None},
    general.maximum_matching: {
        **RUN, **CALL, "triangle": "both", "algorithm": "auto", "initial": None,
    },
    general.maximum_weight_matching: {
        **RUN, **CALL, "weight": "weight", "cardinality": "any", "maximize": True,
        "triangle": "both", "algorithm": "auto",
    },
    general.edge_cover: {"weight": "weight", "triangle": "both"},
    general.t_join: {"weight": "weight", "triangle": "both"},
    linalg.btf: RUN,
    linalg.cudss: {**RUN, "options": None},
    linalg.dmperm: RUN,
    linalg.maximum_product_matching: {**RUN, "scaling": True},
    linalg.maxtrans: RUN,
    linalg.mc64: {**RUN, "job": 5},
    linalg.solve_btf: RUN,
    linalg.splu: {
        **RUN, "permc_spec": None, "diag_pivot_thresh": None, "relax": None, "panel_size": None,
        "options": None,
    },
    linalg.sprank: RUN,
    linalg.strongcomp: {"q": None, "backend": "auto"},
    io.read: READ,
    io.read_costs: READ,
    io.suitesparse: {"max_bytes": 2**32},
    plot.spy: {"order": None, "axes": None},
}  # fmt: skip


@pytest.mark.parametrize("function", DEFAULTS, ids=lambda function: function.__qualname__)
def test_defaults(function):
    parameters = inspect.signature(function).parameters.values()
    given = {p.name: p.default for p in parameters if p.default is not p.empty}
    assert given == DEFAULTS[function]
    assert all(type(value) is type(DEFAULTS[function][name]) for name, value in given.items())
