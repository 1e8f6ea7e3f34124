"""The suite of transport problems: what it draws, what it compares, and a run of all of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import issparse

import gpumatch as gm
from bench import harness
from bench.__main__ import main
from bench.suites import transport
from graphs.masses import KINDS, masses

SIZES = {"few": (20, 3), "network": (20, 4, 30)}


def of_kind(kind, seed=0):
    return masses(kind, *SIZES.get(kind, (6,)), seed=seed)


@pytest.mark.parametrize("kind", KINDS)
def test_masses_follow_from_their_seed_and_can_be_shipped(kind):
    drawn, again, other = of_kind(kind), of_kind(kind), of_kind(kind, seed=1)
    assert drawn.supply.sum() == drawn.demand.sum() > 0
    assert min(drawn.supply.min(), drawn.demand.min()) >= 0
    matrix, same = (
        one.costs.toarray() if issparse(one.costs) else one.costs for one in (drawn, again)
    )
    assert np.array_equal(matrix, same)
    assert not (
        np.array_equal(drawn.supply, other.supply)
        and np.array_equal(drawn.demand, other.demand)
        and np.array_equal(matrix, other.costs)
    )
    t = gm.transport(*drawn)
    assert t.proven
    assert np.array_equal(t.to_matrix().sum(axis=1), drawn.supply)


@pytest.mark.parametrize("kind", ["few", "network"])
def test_a_problem_is_read_as_it_was_saved(kind, tmp_path):
    case = transport.TransportInstance(kind, (kind, *SIZES[kind]))
    case.save(case.original(), tmp_path / case.name)
    given = transport.problem(case, tmp_path / case.name, "cpu")
    costs, supply, demand = transport.read(given.file)
    assert given.facts["mass"] == supply.sum() == demand.sum()
    assert given.facts["entries"] == (costs.nnz if issparse(costs) else costs.size)
    assert case.takes(transport.POT) == (kind == "few")
    result = transport.Ours(transport.OURS, 1).measure(given, harness.Limits(repeats=0))
    assert result["size"] == supply.sum()
    assert result["certificate"] >= 0


@pytest.mark.parametrize("code", transport.CODES)
def test_peers_find_what_the_library_finds(code):
    pytest.importorskip(transport._MODULES[code])
    for kind in ("plane", "few", "noise"):
        given = of_kind(kind)
        found = transport.CODES[code](given)()
        reached = found.more.get("objective", found.more.get("reached"))
        assert reached == pytest.approx(float(gm.transport(*given).objective), rel=1e-6)


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["transport", "--out", out, "--cache", tmp_path / "masses", "--quick"]
    assert main([*map(str, arguments), "--repeats", "1"]) == 0
    stored = harness.read(out)["graphs"]
    assert len(stored) == len(transport.instances(True, None))
    for one in stored.values():
        assert not any("failed" in found for found in one["results"].values())
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "Transport on the CPU" in capsys.readouterr().out
