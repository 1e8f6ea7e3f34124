"""What the device tells the host of its pairs, against the host's own matrix."""

from __future__ import annotations

import numpy as np
import pytest

cp = pytest.importorskip("cupy")

from gpumatch.contracts import Points  # noqa: E402
from gpumatch.cpu.assignment.points.distances import fill_distances  # noqa: E402
from gpumatch.cpu.transport import sources  # noqa: E402
from gpumatch.cuda.transport import all_pairs  # noqa: E402
from gpumatch.cuda.transport.dense import Matrix  # noqa: E402
from gpumatch.cuda.transport.points import Cloud  # noqa: E402
from tests.cpu.transport.problems import answers  # noqa: E402

pytestmark = pytest.mark.gpu


def pairs_of(kind, rng, nrows, ncols):
    """The pairs on the device, and their costs."""
    if kind == "points":
        ends = rng.random((nrows, 2)), rng.random((ncols, 2))
        costs = fill_distances(Points(*ends, "euclidean", False, 1.0), 0, nrows)
        return Cloud(Points(*map(cp.asarray, ends), "euclidean", False, 1.0)), costs
    costs = rng.random((nrows, ncols)) - 0.3
    costs = np.rint(1e6 * costs).astype(np.int64) if kind == "int" else costs
    return Matrix(cp.asarray(costs)), costs


@pytest.mark.emulated
@pytest.mark.parametrize("kind", ["int", "float", "points"])
@pytest.mark.parametrize("on_host", [0, 2**20])
def test_it_tells_what_a_matrix_tells(monkeypatch, kind, on_host):
    monkeypatch.setattr(all_pairs, "ON_HOST", on_host)
    rng = np.random.default_rng(3)
    pairs, costs = pairs_of(kind, rng, 30, 40)
    source, host = all_pairs.DevicePairs(pairs), sources.Matrix(costs)
    rows, cols = (np.sort(rng.permutation(size)[:few]) for size, few in zip(costs.shape, (12, 5)))
    own, dual = costs[:12, 0].copy(), costs[0] / 2
    dual = dual.astype(costs.dtype)
    for one, other in zip(*(answers(s, rows, cols, own, dual) for s in (source, host))):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert source.extremes[0] <= costs.min() <= costs.max() <= source.extremes[1]
    bound = host.row_minima(dual) + ((costs.max() - costs.min()) / 4).astype(costs.dtype)
    found = [
        set(zip(*map(list, s.undercuts(bound, dual, 0, 2, lambda: None)))) for s in (source, host)
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 30
    if kind == "points":
        assert source.matrix() is None
    else:
        assert (source.matrix() == costs).all()
