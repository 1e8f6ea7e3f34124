"""What runs do is as committed: the work they count, the sizes and totals they find.

Certificates guard what is found. These tests guard how: a search that takes more rounds, a budget
that is missed, a generator that gives another graph.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.recorded import record, runs

CASES = [(name, group) for name, groups in runs.RECORDS.items() for group in groups]


@pytest.mark.parametrize(("name", "group"), CASES, ids=[f"{n}: {g}" for n, g in CASES])
def test_it_is_as_recorded(name, group):
    found = runs.RECORDS[name][group]()
    differences = record.differences(record.read(name)[group], found)
    assert not differences, "\n".join(
        [
            f"{len(differences)} things differ from {name}.json. If they are meant to, run",
            f"`{record.RENEW} {name}` and look at the diff:",
            *differences[:20],
        ]
    )


@pytest.mark.parametrize("name", runs.RECORDS)
def test_the_record_has_no_other_groups(name):
    assert record.read(name).keys() == runs.RECORDS[name].keys()


def test_a_hash_sees_values_and_shapes_but_no_types():
    one = np.array([1, 2, 3], np.int32)
    assert record.hash_of(one) == record.hash_of(one.astype(np.int64)) == record.hash_of([1, 2, 3])
    others = [[1, 2, 4], [3, 2, 1], [[1, 2, 3]], [1, 23], [0.1, 2, 3]]
    assert len({record.hash_of(other) for other in [one, *others]}) == 6
    assert record.hash_of([-0.0, 0.1 + 0.2]) == record.hash_of([0.0, 0.3])
    assert record.hash_of([1, 2], [3]) != record.hash_of([1], [2, 3])


def test_what_phases_have_read_is_summed():
    phases = [{"found": 2, "scans": 5, "step": "a"}, {"found": 1}, {"scans": np.int64(2)}]
    assert record.work_of({"trace": phases}) == {"phases": 3, "scans": 7}
    assert record.work_of({"trace": []}) == {"phases": 0}


def test_fields_of_a_crowd_are_added():
    members = [{"size": 1, "objective": 0.5}, {"infeasible": 1}, {"size": 2, "objective": 2}]
    assert record.added(members) == {"size": 3, "objective": 2.5, "infeasible": 1}


def test_differences_name_problem_and_field():
    before = {"a": {"size": 1, "mates": "x"}, "gone": {"size": 2}}
    now = {"a": {"size": 1, "mates": "y"}, "new": {"size": 3}}
    assert record.differences(before, now) == [
        "a: mates was x, is y",
        "gone: size was 2, is nothing",
        "new: size was nothing, is 3",
    ]


def test_a_written_record_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    runs_of_two = {"b": {"p": {"size": 1}}, "a": {"q": {"size": 2, "mates": "x"}, "p": {}}}
    record.write("some", runs_of_two)
    assert record.read("some") == runs_of_two
    lines = (tmp_path / "some.json").read_text().splitlines()
    assert lines[1:4] == [' "a": {', '  "p": {},', '  "q": {"mates": "x", "size": 2}']
