"""Contenders on cost matrices: what counts, what is kept, what is found wrong; other programs."""

from __future__ import annotations

import sys
import textwrap

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from bench import harness, solvers
from bench.costs import CostInstance, Matrices, geom, moving, uniform
from bench.harness import Limits, Overrun, Store, attempt
from bench.instances import Folder
from bench.solvers import PEERS, Assign, Raft, SolverPeer, Sums
from graphs import costs
from graphs.moving_points import distances, moving_points

EXACT = Assign("sap", "shortest-augmenting-path", "cpu", is_verified=True)
HEURISTIC = Assign("dgs", "dgs", "cpu", is_exact=False)


@pytest.fixture
def problem(tmp_path):
    """Makes the problem of an instance, as a suite would."""

    def problem(instance):
        return Matrices(instance, Folder(tmp_path, processes=1).load(instance), "cpu")

    return problem


def optimum(matrix, maximize=False):
    rows, cols = linear_sum_assignment(matrix, maximize)
    return matrix[rows, cols].sum()


# -- problems --------------------------------------------------------------------------------------


def test_costs_are_the_families(problem):
    (matrix,) = problem(uniform(9, 10.0, seed=4)).on("cpu")
    assert matrix.dtype == np.int32
    assert (matrix == costs.uniform_integer(9, factor=10.0, seed=4)).all()
    gains = problem(geom(9, seed=4))
    assert gains.maximize
    assert (gains.on("cpu")[0] == costs.geom(9, seed=4)).all()
    assert gains.facts == {
        "family": "geom",
        "group": "geom-9",
        "seed": 4,
        "rows": 9,
        "entries": 81,
        "dtype": "float64",
    }


def test_a_stack_has_a_matrix_for_each_pair_of_frames(problem):
    stack = problem(moving(7, 3)).on("cpu")
    assert len(stack) == 3
    first, second = moving_points(7, 2, 0.8, seed=2)
    assert (stack[2] == distances(first, second)).all()


@pytest.mark.parametrize("processes", [1, 2])
def test_problems_that_differ_by_their_seed_are_made_apart(tmp_path, processes):
    folder = Folder(tmp_path, processes)
    wanted = [uniform(5, 1.0, seed) for seed in (0, 1, 2)]
    folder.prepare(wanted)
    for instance in wanted:
        made = np.load(folder.load(instance))
        assert (made == costs.uniform_integer(5, factor=1.0, seed=instance.seed)).all()


def test_an_instance_names_who_takes_it():
    few = CostInstance("a", "b", ("geom", 4), only=("CU-*", "raft"))
    assert [few.takes(name) for name in ("CU-TREE", "raft", "scipy")] == [True, True, False]
    assert geom(4).takes("anything")


# -- samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("instance", [uniform(12, 1.0), geom(12)], ids=lambda one: one.family)
def test_an_exact_algorithm_s_result(problem, instance):
    given = problem(instance)
    result = EXACT.measure(given, Limits(repeats=2, budget=600.0, cap=600.0))  # compiling counts
    assert result["size"] == 12
    assert result["objective"] == pytest.approx(optimum(given.on("cpu")[0], instance.maximize))
    assert type(result["objective"]) is (float if instance.maximize else int)
    assert len(result["seconds"]) == 2
    assert result["parts"]["search"] <= max(result["seconds"])
    assert len(result["found"]) == len(result["updates"])
    assert result["certificate"] > 0


def test_a_heuristic_reaches_something_and_claims_no_optimum(problem):
    given = problem(geom(12))
    result = HEURISTIC.measure(given, Limits(repeats=1, cap=600.0))  # compiling counts
    assert "objective" not in result
    assert 0 < result["reached"] <= optimum(given.on("cpu")[0], True) * (1 + 1e-9)


def test_an_auction_that_leaves_its_gap_says_how_wide_it_is(problem):
    given = problem(moving(20, 3, "closed"))
    options = {"scaling": "none", "finish": "epsilon"}
    left = Assign("left", "auction", "cpu", options=options, is_exact=False)
    result = left.measure(given, Limits(repeats=3, budget=600.0, cap=600.0))
    total = sum(map(optimum, given.on("cpu")))
    assert "objective" not in result
    assert 0 <= result["reached"] - total <= result["gap"] * (1 + 1e-9)
    assert result["rounds"] >= 3


@pytest.mark.parametrize("repeats", [3, 9])
def test_each_matrix_of_a_stack_is_solved_and_counts_once(problem, repeats):
    given = problem(moving(8, 3))
    total = sum(map(optimum, given.on("cpu")))
    result = EXACT.measure(given, Limits(repeats=repeats))
    assert len(result["seconds"]) == 3
    alone = EXACT.measure(problem(moving(9, 1)), Limits(repeats=repeats))
    assert len(alone["seconds"]) == repeats
    assert result["objective"] == pytest.approx(total)
    assert "objective" not in EXACT.measure(given, Limits(repeats=1))
    assert SolverPeer("scipy").measure(given, Limits(repeats=3))["objective"] == pytest.approx(
        total
    )


def test_integers_add_up_exactly():
    sums = Sums(2)
    assert sums.add(0, 2**60) == {}
    assert sums.add(0, 2**60 + 1) == {}
    assert sums.add(1, 2) == {"objective": 2**60 + 3}
    assert Sums(1, "gap").add(0, 0.5) == {"gap": 0.5}


def test_a_call_past_its_cap_overruns(problem):
    with pytest.raises(Overrun):
        EXACT.measure(problem(geom(12)), Limits(cap=0.0))


# -- agreement -------------------------------------------------------------------------------------


def test_an_objective_unlike_the_others_is_a_failure(tmp_path):
    store = Store(tmp_path / "out.json", "test", {}, {})
    store.describe("g", {})
    store.add("g", "first", {"seconds": [1.0], "size": 3, "objective": 70})
    store.add("g", "rounded", {"seconds": [1.0], "size": 3, "objective": 70.0 * (1 + 1e-12)})
    store.add("g", "heuristic", {"seconds": [1.0], "size": 3, "reached": 75})
    store.add("g", "wrong", {"seconds": [1.0], "size": 3, "objective": 71})
    results = harness.read(tmp_path / "out.json")["graphs"]["g"]["results"]
    assert [name for name, result in results.items() if "failed" in result] == ["wrong"]
    assert results["wrong"]["failed"].startswith("objective 71, others [70")


# -- other people's --------------------------------------------------------------------------------


@pytest.mark.parametrize("instance", [uniform(15, 10.0), geom(15)], ids=lambda one: one.family)
@pytest.mark.parametrize("name", PEERS)
def test_peers_find_the_optimum(problem, name, instance):
    if not SolverPeer(name).installed:
        pytest.skip(f"{name} is not installed")
    given = problem(instance)
    result = SolverPeer(name).measure(given, Limits(repeats=1))
    assert result["objective"] == pytest.approx(optimum(given.on("cpu")[0], instance.maximize))
    assert result["size"] == 15


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a program of these lines in RAFT's place; `arguments` are what it was called with."""

    def program(lines):
        file = tmp_path / "raft"
        head = "import sys\nfile, repeats, seconds, epsilon, sign = sys.argv[1:]\n"
        file.write_text(f"#!{sys.executable}\n{head}{textwrap.dedent(lines)}")
        file.chmod(0o755)
        monkeypatch.setenv("RAFT_LAP", str(file))

    return program


def test_raft_is_called_and_read(program, problem):
    program(
        """
        assert file.endswith("uniform-6-x1-s0.npy") and float(seconds) == 2.0
        assert float(epsilon) == 1e-6 and int(sign) == 1
        print("ready")
        for k in range(int(repeats) + 1):
            print(f"seconds {0.5 + k} objective 7")
        """
    )
    result = Raft().measure(problem(uniform(6, 1.0)), Limits(repeats=2))
    assert result == {"seconds": [1.5, 2.5], "size": 6, "levels": [], "objective": 7}


def test_gains_are_turned_round_for_raft(program, problem):
    program('print(f"seconds 1 objective {sign}.5")')
    assert Raft().measure(problem(geom(6)), Limits())["objective"] == -1.5


def test_a_program_that_does_not_end_is_ended(program, problem, monkeypatch):
    monkeypatch.setattr(solvers, "_LOADING", 0.1)
    program("while True: pass")
    with pytest.raises(Overrun):
        Raft().measure(problem(uniform(6, 1.0)), Limits(budget=0.1, cap=0.1))


def test_a_program_that_fails_is_told(program, problem):
    program('sys.exit("no device")')
    assert "no device" in attempt(Raft(), problem(uniform(6, 1.0)), Limits())["failed"]


def test_without_its_program_raft_is_not_there(monkeypatch):
    monkeypatch.delenv("RAFT_LAP", raising=False)
    assert "raft" not in {peer.name for peer in solvers.peers(on_device=True)}
