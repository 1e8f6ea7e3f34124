"""What type checkers are told of options: the values of the registry, and all arguments."""

from __future__ import annotations

import inspect
from typing import Literal, get_args, get_overloads, get_type_hints

import pytest

import gpumatch as gm
from gpumatch import assignment, matching
from gpumatch.dispatch import named_arguments as named
from gpumatch.dispatch.registry import table

DOORS = {"assignment": (assignment, gm.assign), "matching": (matching, gm.maximum_matching)}


def overloads(problem):
    """The arguments that are named for each algorithm: its name -> a TypedDict."""
    module, door = DOORS[problem]
    found = {}
    for form in get_overloads(inspect.unwrap(door)):
        hints = get_type_hints(form, vars(module))
        arguments = hints.get("arguments")
        if hasattr(arguments, "__args__") and "algorithm" in hints:
            found |= dict.fromkeys(get_args(hints["algorithm"]), arguments.__args__[0])
    return found


@pytest.mark.parametrize("problem", DOORS)
def test_each_algorithm_has_its_own_options(problem):
    known, algorithms = overloads(problem), table(problem)
    assert {*known} == {"auto", *algorithms}
    own = {name for algorithm in algorithms.values() for name in algorithm.options}
    for name, algorithm in algorithms.items():
        given = {
            option: {*get_args(values)}
            for option, values in get_type_hints(known[name]).items()
            if option in own
        }
        assert given == {option: {*values} for option, values in algorithm.options.items()}
    assert own <= {*get_type_hints(known["auto"])}


@pytest.mark.parametrize("problem", DOORS)
def test_every_argument_of_a_door_is_named(problem):
    _, door = DOORS[problem]
    arguments = inspect.signature(door).parameters
    kinds = inspect.Parameter.KEYWORD_ONLY
    names = {name for name, each in arguments.items() if each.kind == kinds}
    separate = {"algorithm", "row_capacity", "col_capacity"}  # in the overloads themselves
    for algorithm, known in overloads(problem).items():
        assert names - separate <= {*get_type_hints(known)}, algorithm


def test_names_are_literals():
    hints = get_type_hints(named.AuctionArguments)
    assert hints["scaling"] == Literal["epsilon", "none"]
