"""The suite of batches: what it measures, and that all of it works."""

from __future__ import annotations

import numpy as np
import pytest

from bench.__main__ import main
from bench.suites import batches


@pytest.mark.parametrize("kind", batches.KINDS)
def test_a_batch_has_its_shape_and_is_drawn_again(kind):
    batch = batches.Batch(kind, (2, 5, 7))
    costs = batch.draw(np, 3)
    assert (costs.shape, costs.dtype) == ((2, 5, 7), np.float32)
    assert (costs == batch.draw(np, 3)).all()
    assert costs.min() >= 0


def test_costs_of_images_have_a_matrix_each():
    costs = batches.Batch("detr", (4, 30, 0)).draw(np, 3)
    assert len(costs) == 4
    assert all(part.shape[0] == 30 and 1 <= part.shape[1] <= 100 for part in costs)
    assert all(np.isfinite(part).all() for part in costs)


def test_totals_are_summed_in_double_precision():
    """A float32 would lose the small costs beside a large one."""
    problem = batches.Drawn(batches.Batch("uniform", (1, 4, 4)), np.array([1]), "cpu")
    costs = np.ones((5000, 1), np.float32)
    costs[0] = 2**24
    problem.costs = [costs]
    assert problem.total(np.zeros((1, 5000), int)) == (2**24 + 4999, 5000)


def test_a_wrong_total_is_a_failure():
    problem = batches.Drawn(batches.Batch("uniform", (2, 4, 4)), np.array([1]), "cpu")
    batches.Solver("one", batches.ours).measure(problem, batches.Limits(repeats=1))
    worst = batches.Solver("other", lambda _: lambda: np.tile(np.arange(4), (2, 1)))
    with pytest.raises(ValueError, match="the total is"):
        worst.measure(problem, batches.Limits(repeats=1))


def test_rows_without_a_column_are_a_failure():
    problem = batches.Drawn(batches.Batch("uniform", (2, 4, 4)), np.array([1]), "cpu")
    lacking = batches.Solver("one", lambda _: lambda: np.full((2, 4), -1))
    with pytest.raises(ValueError, match="0 rows have a column; 8 can"):
        lacking.measure(problem, batches.Limits(repeats=1))


def test_the_quick_suite_measures_and_reports(tmp_path, capsys):
    out = str(tmp_path / "out.json")
    arguments = ["batches", "--out", out, "--cache", str(tmp_path), "--quick", "--device", "cpu"]
    assert main([*arguments, "--repeats", "1"]) == 0
    assert main(["report", out]) == 0
    printed = capsys.readouterr().out
    assert "detr-3x30x0" in printed
    assert "scipy takes" in printed
    assert "**" not in printed


def test_the_figure_has_a_line_for_each_kind_that_was_measured():
    def graph(kind, shape, ours, theirs):
        results = {batches.OURS: {"seconds": [ours]}, batches.TORCH: {"seconds": [theirs]}}
        return {"group": batches.Batch(kind, shape).name, "results": results}

    graphs = [graph(kind, shape, 1e-3, 2e-3) for kind in ("uniform", "points2")
              for shape in batches.SHAPES[:3]]  # fmt: skip
    figure = batches.figures({"graphs": dict(enumerate(graphs))})["shapes"]
    times, ratios = figure.axes
    assert [line.get_label() for line in times.lines] == ["uniform", "points2"]
    assert times.lines[0].get_ydata().tolist() == [1.0] * 3
    assert ratios.lines[0].get_ydata().tolist() == [2.0] * 3
    assert batches.figures({"graphs": {}}) == {"shapes": None}
