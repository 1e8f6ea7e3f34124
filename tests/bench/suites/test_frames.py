"""The suite of frames behind gates: what it draws, that all agree, and that all of it works."""

from __future__ import annotations

import numpy as np
import pytest

from bench.__main__ import main
from bench.harness import Limits
from bench.suites import frames


def drawn(kind, shape=(12, 20), share=0.2, dtype="float64", count=6):
    return frames.Drawn(frames.Frames(kind, shape, share, dtype, count), np.array([1]), "cpu")


@pytest.mark.parametrize("kind", [*frames.KINDS, "ragged"])
@pytest.mark.parametrize("dtype", frames.DTYPES)
def test_all_agree(kind, dtype):
    problem = drawn(kind, dtype=dtype)
    assert {frame.dtype for frame in problem.frames} == {np.dtype(dtype)}
    instance = frames.Frames(kind, (12, 20), 0.2, dtype, 6)
    for solver in frames.contenders("cpu", 2):
        if instance.takes(solver.name):
            assert solver.measure(problem, Limits(repeats=1))["size"] > 0


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_a_gate_leaves_its_share_of_the_pairs(share):
    problem = drawn("uniform", (40, 50), share)
    within = np.mean([frame <= problem.limit for frame in problem.frames])
    assert abs(within - share) < 0.01


def test_boxes_that_do_not_meet_cost_one():
    costs = drawn("boxes", (50, 80), 0.1).frames
    assert 0.8 < np.mean([frame == 1 for frame in costs]) < 1
    assert all(((frame >= 0) & (frame <= 1)).all() for frame in costs)


def test_pairs_that_save_less_are_told():
    problem = drawn("uniform")
    problem.known = 1e6
    with pytest.raises(ValueError, match="pairs save"):
        frames.contenders("cpu", 1)[0].measure(problem, Limits(repeats=1))


def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = str(tmp_path / "out.json")
    arguments = ["frames", "--out", out, "--cache", str(tmp_path), "--quick"]
    assert main([*arguments, "--repeats", "1"]) == 0
    assert main(["report", out]) == 0
    printed = capsys.readouterr().out
    assert "One by one" in printed
    assert "At once" in printed
    assert "ragged-4x6" in printed
