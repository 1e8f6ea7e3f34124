"""The examples of the docs run, and show what the guide says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from docs.examples import point_correspondence as example
from docs.examples import two_clouds
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
