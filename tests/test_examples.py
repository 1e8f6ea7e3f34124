"""The examples of the docs run, and show what the guide says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from docs.examples import box_tracking, two_clouds
from docs.examples import point_correspondence as example
from graphs.moving_points import moving_points


@pytest.fixture(scope="module")
def frames():
    return moving_points(200, 8, persistence=0.9, step=0.03, seed=5)


def test_partners_are_no_further_than_the_limit(frames):
    tracking = example.track(frames, 0.05, goes_on=False)
    assert len(tracking.partners) == 7
    for frame, later, mates in zip(frames, frames[1:], tracking.partners):
        paired = np.flatnonzero(mates >= 0)
        way = later.points[mates[paired]] - frame.points[paired]
        assert np.linalg.norm(way, axis=1).max() <= 0.05
        assert np.unique(mates[paired]).size == paired.size


def test_a_limit_tells_who_has_left(frames):
    limited = example.track(frames, 0.06, goes_on=False)
    full = example.track(frames, None, goes_on=False)
    assert full.mistaken == 1
    assert limited.mistaken < 0.2
    assert limited.accuracy > full.accuracy


def test_knowing_the_direction_helps_where_it_persists(frames):
    was = example.track(frames, 0.06, goes_on=False)
    goes_on = example.track(frames, 0.06, goes_on=True)
    assert was.accuracy < goes_on.accuracy > 0.99


def test_perfect_tracking_where_points_hardly_move():
    tracking = example.track(moving_points(50, 5, step=1e-6, seed=1), 1e-3, goes_on=False)
    assert (tracking.accuracy, tracking.mistaken) == (1, 0)


def test_the_example_prints_its_table_and_draws_its_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "tracks.png"
    example.main(["--points", "40", "--frames", "3", "--seeds", "1", "--picture", str(path)])
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[0] == "persistence"
    assert [float(row.split()[0]) for row in rows] == list(example.PERSISTENCE)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("shown", "page"), [(example, "points.md"), (two_clouds, "million_points.md")]
)
def test_the_guide_shows_what_the_example_prints(shown, page, capsys):
    shown.main([])
    guide = Path(__file__).parents[1] / "docs" / "guide" / page
    assert f"```text\n{capsys.readouterr().out}```" in guide.read_text(encoding="utf-8")


def test_batches_are_coupled_one_by_one():
    coupling = two_clouds.couple(*two_clouds.two_clouds(90, seed=3), batch=30)
    assert np.array_equal(coupling.mates.reshape(3, 30) // 30, [[0] * 30, [1] * 30, [2] * 30])
    assert np.array_equal(np.sort(coupling.mates), np.arange(90))


def test_two_clouds_are_drawn(capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(two_clouds, "BATCHES", (20,))
    path = tmp_path / "clouds.png"
    two_clouds.main(["--points", "60", "--picture", str(path)])
    assert capsys.readouterr().out.splitlines()[1].startswith("batches of 20 ")
    assert path.read_bytes().startswith(b"\x89PNG")


# -- boxes -----------------------------------------------------------------------------------------


def lapxs_way(cost, extend_cost, cost_limit):
    """What lapx solves: half of the limit for each row and column that is left out."""
    rows, cols = cost.shape
    square = np.full((rows + cols, rows + cols), cost_limit / 2)
    square[rows:, cols:] = 0
    square[:rows, :cols] = cost
    found = scipy.optimize.linear_sum_assignment(square)[1][:rows]
    x, y = np.where(found < cols, found, -1), np.full(cols, -1)
    y[x[x >= 0]] = (x >= 0).nonzero()[0]
    return cost[x >= 0, x[x >= 0]].sum(), x, y


def test_tracks_are_the_same_as_with_lapx():
    """On 2,000 frames, of which each depends on the pairs of all before."""
    frames = list(box_tracking.scene(2000, 12, seed=4))
    found = box_tracking.follow(iter(frames))
    others = box_tracking.follow(iter(frames), lapxs_way)
    assert len(found) == len(others) > 12
    for one, other in zip(found, others):
        assert one.frames == other.frames
        assert one.objects == other.objects
        assert np.array_equal(one.box, other.box)
    assert box_tracking.purity(found) > 0.99
    assert max(len(track.frames) for track in found) > 300


def test_a_track_ends_after_some_frames_without_a_detection():
    box = np.array([[0.0, 0.0, 10.0, 10.0]])
    seen = box_tracking.Frame(box, np.array([0]))
    missed = box_tracking.Frame(np.empty((0, 4)), np.empty(0, int))
    for gap, count in ((box_tracking.PATIENCE, 1), (box_tracking.PATIENCE + 1, 2)):
        tracks = box_tracking.follow(iter([seen, *[missed] * gap, seen]))
        assert len(tracks) == count
