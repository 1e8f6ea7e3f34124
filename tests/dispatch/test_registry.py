"""The table of algorithms: what it lists, and that its functions are there with its options."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

import gpumatch as gm
from gpumatch.dispatch import registry


def test_the_table_lists_every_algorithm_where_it_runs():
    table = {algorithm.name: algorithm for algorithm in gm.algorithms("matching")}
    deveci = {"apfb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs", "apsb-gpubfs-wr"}
    on_cpu = {"engine", "hk", "hkdw", "pfp", "p-hk", "p-pfp", "p-dbfs"}
    on_cuda = {"engine", *deveci}
    assert table.keys() == on_cpu | on_cuda
    assert {name for name, a in table.items() if "cpu" in a.backends} == on_cpu
    assert {name for name, a in table.items() if "cuda" in a.backends} == on_cuda
    assert {name for name, a in table.items() if {"cuda", "reference"} <= {*a.backends}} == deveci
    assert all(a.problem == "matching" and a.exact and a.reference for a in table.values())


def test_the_table_lists_what_solves_transport():
    (engine,) = gm.algorithms("transport")
    assert (engine.name, engine.problem) == ("engine", "transport")
    assert engine.backends == ("cpu", "cuda")
    assert engine.exact


def test_the_table_says_what_algorithms_for_assignment_do():
    table = {algorithm.name: algorithm for algorithm in gm.algorithms("assignment")}
    assert {name for name, a in table.items() if not a.exact} == {"dgs"}
    homes = [(name, where, home) for name, a in table.items() for where, home in a.homes.items()]
    assert [(*at,) for *at, home in homes if home.detects_infeasible] == [("engine", "cpu")]
    assert {(*at,) for *at, home in homes if home.matrices == 2} == {
        ("auction", "cuda"),
        ("dgs", "cuda"),
    }
    assert {(*at,) for *at, home in homes if home.fallback} == {
        ("engine", "cuda"),
        ("auction", "cuda"),
    }


def test_the_type_of_starts_has_the_names_in_the_table():
    assert get_args(registry.StartName) == ("auto", *registry.STARTS)


def functions():
    """Every function that the table names."""
    for homes in (*(a.homes for a in gm.algorithms()), *registry.STARTS.values()):
        for home in homes.values():
            yield home.function
            if home.fallback is not None:
                yield home.fallback


@pytest.mark.parametrize("function", sorted(set(functions())))
def test_every_home_holds_a_function(function):
    if ".cuda." in function or "mixed" in function:
        pytest.importorskip("cupy")
    assert callable(registry.load(function))


@pytest.mark.parametrize("problem", ["match", "", "Matching", 3])
def test_algorithms_for_no_known_problem_are_refused(problem):
    with pytest.raises(ValueError, match=r"problem must be None or one of .*'matching'"):
        gm.algorithms(problem)


EVERY_HOME = [
    pytest.param(home, id=f"{algorithm.name}-{backend}")
    for algorithm in gm.algorithms()
    for backend, home in algorithm.homes.items()
]


@pytest.mark.parametrize("home", EVERY_HOME)
def test_a_home_s_function_takes_the_options_that_it_declares(home):
    """All of them by name, and no others that the table does not fix."""
    if ".cuda." in home.function or "mixed" in home.function:
        pytest.importorskip("cupy")
    parameters = inspect.signature(registry.load(home.function)).parameters
    taken = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert home.options.keys() | home.fixed.keys() <= taken
    for name, values in home.options.items():
        assert parameters[name].default in (parameters[name].empty, values[0])
    assert taken - home.options.keys() - home.fixed.keys() <= {"patience"}
    assert not home.only.keys() & taken


def test_public_options_are_those_of_all_homes_the_default_first():
    options = {a.name: a.options for a in gm.algorithms() if a.options}
    assert options["dgs"] == {
        "start": ("random", "greedy"),
        "evaluation": ("auto", "global", "shared", "block", "cpu"),
        "switching": ("auto", "sequential", "parallel"),
    }
    assert options["auction"] == {
        "scaling": ("epsilon", "none"),
        "finish": ("exact", "epsilon"),
        "convergence": ("counter", "reduction"),
        "host_loop": ("batch", "round"),
    }
    assert options["hungarian-tree"] == {"search": ("levels", "stack", "paper")}
    stepped = {"launch": ("ct", "mt"), "host_loop": ("batch", "level")}
    for name in ("apfb-gpubfs-wr", "apsb-gpubfs"):
        assert options[name] == {**stepped, "frontier": ("scan", "queue")}
