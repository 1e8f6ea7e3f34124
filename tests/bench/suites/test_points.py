"""The suite of clouds of points: what it compares, its true gaps, and a run of all of it."""

from __future__ import annotations

import numpy as np
import pytest

from bench import harness
from bench.__main__ import main
from bench.suites import points
from graphs.clouds import KINDS, clouds


def test_codes_get_what_they_can_solve():
    small, large = points.of_size(1000), points.of_size(100_000)
    cells = small[-1]
    assert cells.limit == points.GATE
    assert [name for name in points.EVERY if cells.takes(name)] == [
        points.OURS, points.ON_CPU, points.MATRIX, points.SCIPY,
    ]  # fmt: skip
    assert not any(case.takes(name) for case in large for name in points.FITS)
    assert all(case.takes(points.OURS) for case in [*small, *large])


def test_a_gap_is_that_of_what_the_transport_costs():
    graph = {"results": {points.OURS: {"objective": 2.0}, points.LAZY: {"reached": 2.5}}}
    assert points.true_gap(graph, points.LAZY) == "25.00%"
    assert points.true_gap(graph, points.FLASH) == ""
    assert points.certificate(graph) == ""


def test_the_library_and_scipy_agree(tmp_path):
    for case in points.of_size(30):
        file = tmp_path / f"{case.name}.npy"
        case.save(case.original(), file)
        given = points.problem(case, file, "cpu")
        limits = harness.Limits(repeats=0)
        ours = [one.measure(given, limits) for one in points.contenders("cpu", 1)[:2]]
        theirs = points.scipy(*np.load(file), case.metric, case.limit)
        for result in ours:
            assert result["objective"] == pytest.approx(theirs.more["objective"])
            assert result["size"] == theirs.size
            assert result["certificate"] >= 0


def test_a_peer_that_does_not_start_is_called_once(monkeypatch):
    caps = []

    def hang(call, given, limits, sample):
        caps.append(limits.cap)
        raise harness.Overrun

    monkeypatch.setattr(points, "in_process", hang)
    monkeypatch.setattr(points, "_has_started", {points.POT: True})
    problem = points.Clouds.__new__(points.Clouds)
    problem.file, problem.metric, problem.limit = None, "sqeuclidean", None
    limits = harness.Limits(cap=600.0)
    for _ in range(3):
        result = harness.attempt(points.CloudPeer(points.FLASH), problem, limits)
        assert "did not start" in result["failed"]
    over = harness.attempt(points.CloudPeer(points.POT), problem, limits)
    assert "did not start" not in over["failed"]
    assert caps == [points.STARTING, 600.0]


@pytest.mark.parametrize("kind", KINDS)
def test_clouds_follow_from_their_seed(kind):
    drawn = clouds(kind, 50, 2, seed=2)
    assert drawn.shape == (2, 50, 2)
    assert (drawn == clouds(kind, 50, 2, seed=2)).all()
    assert (drawn != clouds(kind, 50, 2, seed=3)).any()


def test_moons_lie_in_the_plane():
    with pytest.raises(ValueError, match="dim must be 2"):
        clouds("moons", 50, 3)
    moons, letter = clouds("moons", 400, 2)
    first, second = moons, moons - [1, 0.5]
    off = [abs(np.linalg.norm(side, axis=1) - 1) for side in (first, second)]
    assert np.minimum(*off).max() < 0.3
    halves = [letter - np.array(middle) for middle in ((0, 1), (0, -1))]
    off = [abs(np.linalg.norm(side, axis=1) - 1) for side in halves]
    assert np.minimum(*off).max() < 0.3


def test_cells_move_by_less_than_they_are_apart():
    first, second = clouds("cells", 400, 3)
    steps = np.linalg.norm(first[:, None] - second, axis=2).min(axis=0)
    assert np.median(steps) < points.GATE


@pytest.mark.long
def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = tmp_path / "results.json"
    arguments = ["points", "--out", out, "--cache", tmp_path / "clouds", "--quick"]
    assert main([*map(str, arguments), "--repeats", "1"]) == 0
    stored = harness.read(out)["graphs"]
    assert len(stored) == len(points.of_size(40))
    for one in stored.values():
        assert {points.OURS, points.MATRIX, points.SCIPY} <= one["results"].keys()
        assert not any("failed" in found for found in one["results"].values())
    capsys.readouterr()
    assert main(["report", str(out)]) == 0
    assert "From coordinates to the optimum" in capsys.readouterr().out
