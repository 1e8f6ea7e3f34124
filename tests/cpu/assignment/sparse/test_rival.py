"""Paths that take turns with an auction: when they are due, what they leave, and that they win."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

import gpumatch as gm
from bench.adversary import Problem
from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.cpu.assignment.sparse.paths import SparsePaths
from gpumatch.cpu.assignment.sparse.trial import Rival, Won
from gpumatch.cpu.searches.heap import FEW, OUTDATED
from gpumatch.cpu.searches.state import NEXT, PUSHED, REACHED, SCANS, SPENT, TAIL, WAITING
from graphs import adversarial
from tests.cpu.assignment.solved import Trace
from tests.cpu.assignment.tuned import tune

ALWAYS = {"promising": math.inf, "rival_reads": 0, "boldest": math.inf}


def drawn(seed, shape=(60, 70)):
    """Costs with a full assignment of the rows."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < 0.2, rng.integers(1, 10**9, shape), 0)
    dense[np.arange(shape[0]), rng.permutation(shape[1])[: shape[0]]] = rng.integers(1, 10**9)
    return csr_array(dense)


def steps_of(a):
    return [phase["step"] for phase in a.stats["trace"]]


@pytest.mark.parametrize("wish", [{}, {"cardinality": "any", "cost_limit": 3 * 10**8}])
@pytest.mark.parametrize("shape", [(60, 60), (60, 70)])
def test_a_rival_that_is_always_due_wins(wish, shape, monkeypatch):
    """With no trial and a turn after the first call of a kernel, its result is the result."""
    untried = sparse_tuning.SHORT._replace(bids=0, unmatched=-1)
    tune(monkeypatch, sparse_tuning, small=0, trial=untried, trial_with_spare=untried)
    tune(monkeypatch, sparse_tuning, few_paths=0, fewest=0, **ALWAYS)
    wins = 0
    for seed in range(8):
        C = drawn(seed, shape)
        a = gm.assign(C, algorithm="engine", backend="cpu", threads=1, **wish)
        gm.verify(C, a)
        if not wish:
            assert a.objective == C[min_weight_full_bipartite_matching(C)].sum()
        wins += steps_of(a)[-2:] == ["rival", "given up"]
    assert wins >= 6


def entered(C, **fields):
    """A rival of a leader that has read nothing, and the leader, which has the trial's start."""
    costs = as_costs(C)
    mates = np.full(C.shape[0], -1, np.int32), np.full(C.shape[1], -1, np.int32)
    leader = SparsePaths(costs.entries(), costs, *mates, np.zeros(C.shape[1]), None)
    leader.begin(Trace())
    trace = Trace()
    rival = Rival(leader, replace(sparse_tuning.DEFAULT, **fields), trace, lambda: None)
    rival.enter()
    return rival, leader, trace


def read(leader, readings):
    """Let the leader have read all entries so often."""
    leader.spot[SCANS] = readings * leader.costs.nnz


def test_it_waits_until_the_auction_has_read_much():
    rival, leader, trace = entered(costs_of_random_places(), **{**ALWAYS, "rival_reads": 5})
    read(leader, 4)
    rival.beat()
    assert trace.phases == []
    read(leader, 5)
    with pytest.raises(Won):
        rival.beat()
    assert trace.phases[0]["step"] == "rival"
    assert trace.phases[0]["matched"] == 2000


def test_the_pairs_of_the_leader_stay_until_they_are_handed_over():
    rival, leader, trace = entered(costs_of_random_places(), **ALWAYS)
    price, mates = leader.price.copy(), leader.row_to_col.copy()
    read(leader, 3)
    with pytest.raises(Won):
        rival.beat()
    assert (leader.price == price).all()
    assert (leader.row_to_col == mates).all()
    rival.hand_over()
    assert leader.matched == 2000
    assert trace.phases[-1]["scans"] == 3 * leader.costs.nnz
    tight = as_costs(costs_of_random_places()).at(np.arange(2000), leader.row_to_col)
    duals = np.empty(2000)
    leader.write_row_duals(duals)
    assert tight - leader.price[leader.row_to_col] == pytest.approx(duals)


def test_what_paths_expect_is_what_they_read():
    """Within a factor of two, once they have read all entries twice."""
    rival, _, _ = entered(costs_of_random_places(), **ALWAYS)
    paths, told = rival.paths, []
    assert rival._ahead(paths) == 0
    while paths.matched < 2000:
        paths.augment_some(rival.rows, paths.costs.nnz // 4)
        told.append((paths.readings, rival._ahead(paths)))
    total = paths.readings
    assert told[-1] == (total, 0)
    early = [(reads, ahead) for reads, ahead in told if 2 <= reads < total / 2]
    assert len(early) > 3
    for reads, ahead in early:
        assert total / 2 < reads + ahead < 2 * total


def test_what_the_auction_expects_holds_it_back():
    """Paths that need three quarters of it may read; those that need more may not."""
    rival, leader, _ = entered(costs_of_random_places())
    rival.paths.augment_some(rival.rows, rival.paths.costs.nnz)
    ahead = rival._ahead(rival.paths)
    reads = math.ceil(2 * ahead)
    read(leader, reads)
    leader.expected = reads + 1.3 * ahead
    assert not rival._may_read(rival.paths)
    leader.expected = reads + 1.4 * ahead
    assert rival._may_read(rival.paths)
    leader.expected = 0.0  # half as much again
    assert not rival._may_read(rival.paths)
    read(leader, 3 * ahead)
    assert rival._may_read(rival.paths)
    read(leader, math.ceil(1.2 * ahead))
    leader.expected = math.inf  # as much again, at most
    assert not rival._may_read(rival.paths)


def test_columns_that_are_put_into_the_heap_count():
    """In random costs paths may go on; if most entries moved columns in the heap, they may not."""
    rival, leader, _ = entered(costs_of_random_places())
    paths = rival.paths
    paths.augment_some(rival.rows, paths.costs.nnz)
    assert 0 < paths.spot[PUSHED] < 0.3 * paths.spot[SCANS]
    assert paths.readings <= rival._cost(paths) < 1.2 * paths.readings
    ahead = rival._ahead(paths)
    read(leader, math.ceil(2 * ahead))
    assert rival._may_read(paths)
    paths.spot[PUSHED] = paths.spot[SCANS]
    assert rival._cost(paths) > 2 * paths.readings
    assert rival._ahead(paths) > 2 * ahead
    assert not rival._may_read(paths)


def test_paths_of_squared_distances_on_a_line_are_dear():
    """Where rows are long, bids take a sixth of the time that such paths take for an entry."""
    costs = adversarial.make("nearest_matched", 600, k=40, dimension=1, seed=1).power(2)
    rival, _, _ = entered(csr_array(costs))
    rival.paths.augment_some(rival.rows, 3 * costs.nnz)
    assert rival._cost(rival.paths) > 1.4 * rival.paths.readings


def test_no_paths_read_more_than_four_times_as_much():
    rival, leader, _ = entered(costs_of_random_places(), promising=math.inf)
    paths = rival.paths
    read(leader, 4)
    paths.spot[SCANS], paths.spot[NEXT] = 16 * paths.costs.nnz, 300
    assert rival._may_read(paths)
    paths.spot[SCANS] += 1
    assert not rival._may_read(paths)


def test_paths_may_always_read_a_64th():
    rival, leader, _ = entered(costs_of_random_places(), promising=0, long_paths=0)
    paths = rival.paths
    paths.augment_some(rival.rows, paths.costs.nnz // 4)
    assert 0.25 <= paths.readings < 0.3
    read(leader, 63 * 0.25)
    assert not rival._may_read(paths)
    read(leader, 65 * 0.3)
    assert rival._may_read(paths)


def test_paths_begin_only_if_they_may_expect_four_readings():
    rival, leader, _ = entered(costs_of_random_places())
    read(leader, 6)
    leader.expected = 11.3
    assert not rival._may_read(rival.paths)
    leader.expected = 11.4
    assert rival._may_read(rival.paths)
    assert not rival.are_long


def test_long_paths_read_half_as_much_again():
    """Also when they are long no more."""
    rival, leader, _ = entered(costs_of_random_places(), promising=0)
    paths = rival.paths
    read(leader, 4)
    paths.spot[SCANS], paths.spot[NEXT] = 2 * paths.costs.nnz, 257
    assert not rival._may_read(paths)
    paths.spot[NEXT] = 256
    assert rival._may_read(paths)
    paths.spot[NEXT] = 300
    assert rival._may_read(paths)
    paths.spot[SCANS] = 6.1 * paths.costs.nnz
    assert not rival._may_read(paths)


def test_dear_paths_are_not_taken_for_long_ones():
    rival, leader, _ = entered(costs_of_random_places(), promising=0)
    paths = rival.paths
    read(leader, 4)
    paths.spot[SCANS], paths.spot[NEXT] = 2 * paths.costs.nnz, 256
    paths.spot[PUSHED] = paths.spot[SCANS] // 2
    assert 1.5 * 2 < rival._cost(paths) < 1.5 * 4
    assert not rival._may_read(paths)
    paths.spot[PUSHED] = 0
    assert rival._may_read(paths)


def test_paths_on_a_line_do_not_read_more_than_its_auction():
    """All paths are long there, and their readings take longer than those of bids."""
    C = Problem("nearest_matched", {"n": 2514, "k": 15, "dimension": 1}, "squared").costs()
    a = gm.assign(C, threads=1, backend="cpu")
    gm.verify(C, a)
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 120 * C.nnz


@pytest.mark.parametrize(("n", "k", "share"), [(2798, 5, 0.197112), (1943, 4, 0.309926)])
def test_far_clusters_of_many_values(n, k, share):
    """The first paths of each group are long; paths alone read these 7 and 9 times."""
    parameters = {"n": n, "k": k, "share": share, "distance": 270.0}
    C = Problem("far_clusters", parameters, "many values").costs()
    a = gm.assign(C, threads=1, backend="cpu")
    gm.verify(C, a)
    assert sum(phase["scans"] for phase in a.stats["trace"]) < 30 * C.nnz


def test_a_race_that_is_stopped_can_go_on(monkeypatch):
    """Whatever beat of the race ends it."""
    tune(monkeypatch, sparse_tuning, small=0, probe=0.01, rival_reads=1)
    C = adversarial.make("far_clusters", 400, seed=3)
    least = gm.assign(C, threads=1, backend="cpu").objective
    for last in range(1, 60, 5):
        ticks = itertools.count(1)
        a = gm.assign(
            C, threads=1, backend="cpu", callback=lambda _, t=ticks, last=last: next(t) >= last
        )
        gm.verify(C, a, optimal=False)
        b = gm.assign(C, threads=1, backend="cpu", initial=a)
        gm.verify(C, b)
        assert b.objective == pytest.approx(least, rel=1e-12)


def costs_of_random_places():
    return adversarial.make("few_dear", 2000, share=0.0, seed=4)


def test_the_heap_of_a_search_stays_small():
    """Nearly every way in squared distances on a line is a bit shorter than the last one."""
    costs = adversarial.make("nearest_matched", 600, k=40, dimension=1, seed=1).power(2)
    _, leader, _ = entered(csr_array(costs))
    rows, outcome, most = leader.start_with_unmatched_rows(), SPENT, 0
    while outcome == SPENT:
        outcome = leader.augment_some(rows, 500)
        live = leader.spot[REACHED] - leader.spot[TAIL]
        assert leader.spot[WAITING] <= OUTDATED * live + FEW + leader.longest
        most = max(most, int(leader.spot[WAITING]))
    assert most > FEW


def test_costs_with_hardly_any_values_belong_to_paths():
    """The auction reads these 72 to 86 times; paths alone read them 5 and 6 times."""
    for n, k, share, distance in ((3250, 2, 0.6836, 278.06), (831, 17, 0.159, 345.2)):
        parameters = {"n": n, "k": k, "share": share, "distance": distance}
        C = Problem("far_clusters", parameters, "many values").costs()
        assert np.unique(C.data).size <= sparse_tuning.DEFAULT.hardly_any
        a = gm.assign(C, backend="cpu", threads=1)
        gm.verify(C, a)
        assert steps_of(a)[-1] == "given up"
        assert sum(phase.get("scans", 0) for phase in a.stats["trace"]) < 40 * C.nnz


def test_paths_are_long_from_the_beginning_if_costs_have_hardly_any_values():
    C = drawn(1, (60, 60)).astype(np.float64)
    assert not entered(C)[0].are_long
    C.data = C.data % 4.0
    assert entered(C)[0].are_long
    assert not entered(C, hardly_any=3)[0].are_long
