"""Each mark of the searches has one definition, and marks of one array differ."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gpumatch.cpu import assignment
from gpumatch.cpu.searches import state

SEARCHES = Path(state.__file__).parent
ROOMS = [SEARCHES, *(Path(assignment.__file__).parent / room for room in ("dense", "sparse"))]
FILES = [file for room in ROOMS for file in sorted(room.glob("*.py")) if file.stem != "state"]
OF_ONE_ARRAY = [
    [
        *("NEXT", "KEPT", "HEAD", "TAIL", "LEAVER", "SCANS", "WAITING", "NEAR", "REACHED", "SINK"),
        *("LOOKED", "KNEW", "PUSHED"),
    ],
    ["FRONT", "LEAVE"],
    ["FOUND", "LEFT", "SPENT", "STUCK", "CLASH", "DONE", "LOW"],
    ["UNMATCHED", "LOCKED"],
]


def assigned(file):
    """The names that a file's statements assign, outside functions and classes."""
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def test_no_other_file_defines_a_mark():
    marks = set(state.__all__)
    assert [file for file in FILES if marks & set(assigned(file))] == []


@pytest.mark.parametrize("names", OF_ONE_ARRAY, ids=lambda names: names[0])
def test_marks_of_one_array_differ(names):
    values = [getattr(state, name) for name in names]
    assert len(set(values)) == len(names)
    assert set(names) <= set(state.__all__)


def test_spots_has_a_place_for_each_mark():
    assert sorted(getattr(state, name) for name in OF_ONE_ARRAY[0]) == list(range(state.SPOTS))
