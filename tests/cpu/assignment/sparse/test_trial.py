"""The trial on costs of few values: paths of groups that want fewer columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
from gpumatch.cpu.assignment.sparse.trial import Trial
from graphs import adversarial

LOSING = {
    "few paths": ("decades", {}, True),
    "slower and slower": ("far_clusters", {"k": 2, "seed": 1}, False),
}


def eight_values(matrix, *, negated=False):
    """Costs from 0 or 1 to 8."""
    most = matrix.data.max()
    matrix.data = np.ceil(8 * (most - matrix.data if negated else matrix.data) / most)
    return matrix


def readings(a, matrix):
    return sum(phase["scans"] for phase in a.stats["trace"]) / matrix.nnz


@pytest.mark.parametrize(
    ("share", "kind"), [(0.52, np.float64), (0.55, np.int64), (0.9, np.float64)]
)
def test_groups_of_rows_get_paths_instead_of_an_auction(share, kind):
    """An auction would read all entries 17 to 19 times, as measured for the shares 0.55 and 0.9."""
    matrix = eight_values(adversarial.make("far_clusters", 2000, share=share)).astype(kind)
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert [phase["step"] for phase in a.stats["trace"]] == ["trial"]
    assert readings(a, matrix) < 4
    assert a.objective == gm.assign(matrix, algorithm="shortest-augmenting-path").objective


@pytest.mark.usefixtures("no_rival")
@pytest.mark.parametrize("case", LOSING)
def test_paths_of_groups_that_match_rows_slowly_are_undone(monkeypatch, case):
    """The auction goes on as if they had not been."""
    family, parameters, negated = LOSING[case]
    matrix = eight_values(adversarial.make(family, 5000, **parameters), negated=negated)
    found = gm.assign(matrix, threads=1)
    monkeypatch.setattr(Trial, "_serve_groups", Trial._try_to_serve)
    without = gm.assign(matrix, threads=1)
    (trial, *rest), (before, *others) = found.stats["trace"], without.stats["trace"]
    assert (trial["matched"], rest) == (before["matched"], others)
    assert 0 < trial["scans"] <= 2.1 * matrix.nnz
    assert np.array_equal(found.row_to_col, without.row_to_col)


@pytest.mark.parametrize("family", ["wide_integers", "many values"])
def test_rows_without_ties_get_no_such_paths(monkeypatch, family):
    """Their first paths are short, and tell nothing of the last ones."""

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(Trial, "_serve_groups", fail)
    if family == "many values":
        matrix = eight_values(adversarial.make("far_clusters", 2000))
        matrix.data += np.random.default_rng(1).integers(0, 100, matrix.nnz)
    else:
        matrix = eight_values(adversarial.make(family, 2000).astype(np.float64))
    a = gm.assign(matrix, threads=1)
    gm.verify(matrix, a)
    assert len(a.stats["trace"]) > 1


def test_paths_of_groups_tell_that_costs_are_infeasible(monkeypatch):
    """No row of the first cluster has a far column, and the columns nearby are fewer."""
    matrix = eight_values(adversarial.make("far_clusters", 2000)).tocoo()
    rows, cols = matrix.coords
    kept = (matrix.data == 1) | (rows >= 1100)
    matrix = csr_array((matrix.data[kept], (rows[kept], cols[kept])), shape=matrix.shape)
    served, serve = [], Trial._serve_groups
    monkeypatch.setattr(
        Trial, "_serve_groups", lambda self, rows: served.append(serve(self, rows)) or served[-1]
    )
    with pytest.raises(ValueError, match="infeasible"):
        gm.assign(matrix, threads=1)
    assert served == [True]
