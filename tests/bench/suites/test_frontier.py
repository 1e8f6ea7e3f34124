"""The suite that compares two trees."""

from __future__ import annotations

import pytest

from bench import harness
from bench.__main__ import main
from bench.suites import frontier


def test_two_files_side_by_side():
    def data(seconds):
        return {
            "graphs": {
                "a-s0": {
                    "group": "a",
                    "results": {
                        "hungarian-tree": {"seconds": [seconds]},
                        "auction": {"failed": "no room"},
                    },
                }
            }
        }

    lines = frontier.beside(data(0.004), data(0.005)).splitlines()
    assert lines[2:] == ["| a | hungarian-tree | 4 | 5 | 1.250 |"]
    assert frontier.beside(data(1.0), {"graphs": {}}) == ""


def test_all_searches_take_the_problems_that_are_for_searches():
    integers = frontier.instances(quick=False, data=None)[0]
    assert [code for code in frontier.CODES if integers.takes(code)] == [
        "hungarian-tree",
        frontier.PAPER,
        "hungarian-classical",
    ]


@pytest.mark.long
def test_the_quick_suite_measures_reports_and_compares(tmp_path, capsys):
    out = tmp_path / "frontier.json"
    arguments = ["frontier", "--out", out, "--cache", tmp_path / "costs", "--quick"]
    assert main([*map(str, arguments), "--device", "cpu", "--repeats", "2"]) == 0
    assert len(harness.read(out)["graphs"]) == 2
    assert main(["report", str(out)]) == 0
    assert "hungarian-classical ms" in capsys.readouterr().out
    frontier.main([str(out), str(out)])
    assert "| 1.000 |" in capsys.readouterr().out
