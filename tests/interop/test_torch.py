"""Batches of torch: tensors in and out, inside a training loop, without waiting for the device."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment as one_by_one

torch = pytest.importorskip("torch", reason="torch is not installed")

import gpumatch as gm  # noqa: E402
from gpumatch.interop import torch as module  # noqa: E402
from gpumatch.interop.torch import (  # noqa: E402
    CaptureError,
    batch_linear_assignment,
    linear_sum_assignment,
)

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
devices = pytest.mark.parametrize("device", DEVICES)


def totals(costs, columns):
    """What each problem's rows pay."""
    paid = torch.gather(costs, 2, columns.clamp(min=0)[:, :, None])[:, :, 0]
    return torch.where(columns >= 0, paid, 0).sum(dim=1).cpu().numpy()


@devices
@pytest.mark.parametrize("shape", [(5, 12, 12), (4, 6, 30), (4, 30, 6), (0, 3, 4), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64"])
def test_the_columns_are_optimal(device, shape, dtype):
    costs = (torch.rand(shape, generator=torch.manual_seed(1)) * 50).to(getattr(torch, dtype))
    found = batch_linear_assignment(costs.to(device))
    assert (found.shape, found.dtype) == (shape[:2], torch.int64)
    assert found.device.type == device
    wide = costs.double()
    assert ((found >= 0).sum(dim=1) == min(shape[1:])).all()
    best = [c[one_by_one(c)].sum() for c in wide.numpy()]
    assert np.allclose(totals(wide, found.cpu()), best)


WITHOUT_AN_ANSWER = {  # costs of one row, and the error
    "infeasible": (math.inf, "infeasible"),
    "nan": (math.nan, "NaN"),
    "negative": (-math.inf, "-inf"),
}


def spoiled(reason):
    """Three problems side by side, and the same as a batch; the second has no answer."""
    costs = torch.rand((3, 4, 5), generator=torch.manual_seed(2))
    costs[1, 2] = WITHOUT_AN_ANSWER[reason][0]
    return costs, torch.cat([costs] * 3, dim=2)


ways = pytest.mark.parametrize(
    ("device", "ties"),
    [("cpu", "any"), ("cpu", "scipy"), pytest.param("cuda", "any", marks=pytest.mark.gpu)],
)


@ways
@pytest.mark.parametrize("reason", WITHOUT_AN_ANSWER)
@pytest.mark.parametrize("on_error", [None, "raise"])
def test_a_problem_without_an_answer_is_an_error(device, ties, reason, on_error):
    if device == "cuda" and on_error is None:
        on_error = "raise"
    costs, side = (part.to(device) for part in spoiled(reason))
    message = WITHOUT_AN_ANSWER[reason][1]
    for solve in (
        lambda: batch_linear_assignment(costs, ties, on_error),
        lambda: linear_sum_assignment(side, [5, 5, 5], ties, on_error),
    ):
        with pytest.raises(ValueError, match=f"problem 1: .*{message}") as info:
            solve()
        assert isinstance(info.value, gm.InfeasibleError) == (reason == "infeasible")


@ways
@pytest.mark.parametrize("reason", WITHOUT_AN_ANSWER)
@pytest.mark.parametrize("on_error", [None, "mark"])
def test_a_problem_without_an_answer_is_marked(device, ties, reason, on_error):
    if device == "cpu":
        on_error = "mark"
    costs, side = (part.to(device) for part in spoiled(reason))
    found = batch_linear_assignment(costs, ties, on_error).cpu()
    assert (found[1] == -1).all()
    assert (found[[0, 2]] >= 0).all()
    pairs = linear_sum_assignment(side, [5, 5, 5], ties, on_error)
    for k, both in enumerate(pairs):
        for part in both:
            assert len(part) == 4
            assert ((part == -1) if k == 1 else (part >= 0)).all()


@devices
@pytest.mark.parametrize("on_error", [None, "raise", "mark"])
@pytest.mark.parametrize("ties", ["any", "scipy"])
def test_costs_that_are_no_real_numbers_are_refused(device, on_error, ties):
    if device == "cuda" and ties == "scipy":
        ties = "any"
    for dtype in (torch.complex64, torch.complex128):
        costs = torch.ones((2, 2, 2), dtype=dtype, device=device)
        with pytest.raises(TypeError, match=r"must be real numbers; got dtype .*complex"):
            batch_linear_assignment(costs, ties, on_error)
        with pytest.raises(TypeError, match=r"must be real numbers; got dtype .*complex"):
            linear_sum_assignment(costs, [1, 1], ties, on_error)
    with pytest.raises(TypeError, match="dense tensor"):
        batch_linear_assignment(torch.ones((2, 2, 2)).to_sparse().to(device), ties, on_error)
    with pytest.raises(TypeError, match="torch tensor; got ndarray"):
        batch_linear_assignment(np.ones((2, 2, 2)), ties, on_error)


def test_wrong_sizes_are_refused():
    costs = torch.rand(2, 3, 4)
    with pytest.raises(ValueError, match="sizes must not be negative; got -1"):
        linear_sum_assignment(costs, [5, -1])
    with pytest.raises(TypeError, match=r"sizes must be integers; got 1\.5"):
        linear_sum_assignment(costs, [1.5, 2.5])
    assert len(linear_sum_assignment(costs, torch.tensor([1, 3]))) == 2


@devices
def test_targets_side_by_side_as_in_detr(device):
    sizes = [3, 20, 1, 0, 7]
    costs = torch.rand((5, 12, sum(sizes)), generator=torch.manual_seed(3))
    found = linear_sum_assignment(costs.to(device), sizes)
    parts = [c[k] for k, c in enumerate(costs.split(sizes, -1))]
    for (rows, cols), part in zip(found, parts, strict=True):
        assert rows.device.type == device
        expected = one_by_one(part.numpy())
        assert (rows.tolist(), cols.tolist()) == tuple(side.tolist() for side in expected)


def test_scipys_own_assignments_where_several_are_optimal():
    costs = torch.randint(0, 3, (30, 9, 14), generator=torch.manual_seed(6)).float()
    costs[7, 2] = math.inf
    for part in (costs, costs.mT):
        found = batch_linear_assignment(part, ties="scipy", on_error="mark")
        for k, own in enumerate(part.numpy()):
            if k == 7:
                assert (found[k] == -1).all()
                continue
            rows, cols = one_by_one(own)
            assert found[k, rows].tolist() == cols.tolist()
    sizes = [3, 0, 20, 9]
    side = torch.randint(0, 3, (4, 9, 32), generator=torch.manual_seed(7))
    found = linear_sum_assignment(side, sizes, ties="scipy")
    for k, own in enumerate(side.split(sizes, -1)):
        expected = one_by_one(own[k].numpy())
        assert [one.tolist() for one in found[k]] == [one.tolist() for one in expected]


@pytest.mark.parametrize("shape", [(9, 9), (7, 12), (12, 7)], ids=str)
@pytest.mark.parametrize("base", [2**55, -(2**55), 2**57])
def test_scipys_order_does_not_round_integers(base, shape):
    rng = np.random.default_rng(4)
    costs = base + rng.integers(0, 9, (6, *shape))
    exact = gm.assign(costs).objective.tolist()
    total = [sum(own[one_by_one(own)].tolist()) for own in costs]
    assert total != exact
    found = batch_linear_assignment(torch.tensor(costs), ties="scipy").numpy()
    side = torch.tensor(np.concatenate([*costs], axis=1))[None].repeat(6, 1, 1)
    pairs = linear_sum_assignment(side, [shape[1]] * 6, ties="scipy")
    for k, own in enumerate(costs):
        rows = (found[k] >= 0).nonzero()[0]
        assert rows.size == min(shape) == len(pairs[k][0])
        assert sum(own[rows, found[k, rows]].tolist()) == exact[k]
        assert sum(own[tuple(side.numpy() for side in pairs[k])].tolist()) == exact[k]


def test_scipys_own_assignments_of_large_integers_where_it_finds_the_optimum():
    costs = 2**54 * np.random.default_rng(5).integers(0, 3, (8, 9, 9))
    found = batch_linear_assignment(torch.tensor(costs), ties="scipy").numpy()
    assert found.tolist() == [one_by_one(own)[1].tolist() for own in costs]


def test_integers_whose_sums_do_not_fit_are_an_error_in_scipys_order():
    costs = torch.tensor([[[1, 2], [3, 4]], [[2**61, 0], [0, 2**61]]])
    with pytest.raises(ValueError, match="problem 1: "):
        batch_linear_assignment(costs, ties="scipy")
    found = batch_linear_assignment(costs, ties="scipy", on_error="mark")
    assert (found < 0).tolist() == [[False, False], [True, True]]


def test_ties_are_any_or_scipys():
    with pytest.raises(ValueError, match="ties must be one of"):
        batch_linear_assignment(torch.rand(1, 2, 2), ties="first")


@pytest.mark.gpu
def test_scipys_order_is_for_the_cpu():
    with pytest.raises(ValueError, match="not for a GPU"):
        batch_linear_assignment(torch.rand(1, 2, 2, device="cuda"), ties="scipy")


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="3 dimensions"):
        batch_linear_assignment(torch.rand(3, 4))
    with pytest.raises(ValueError, match="for these sizes"):
        linear_sum_assignment(torch.rand(2, 3, 4), [1, 2])


@devices
def test_compile_keeps_the_graph(device):
    def loss(x, y):
        costs = torch.cdist(x, y)
        columns = batch_linear_assignment(costs)
        return torch.gather(costs, 2, columns[:, :, None]).mean()

    x, y = torch.rand((2, 3, 8, 2), generator=torch.manual_seed(4)).to(device)
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x, y), loss(x, y))
    torch.library.opcheck(
        torch.ops.gpumatch.batch_linear_assignment.default, (torch.cdist(x, y), "any", "raise")
    )


@devices
def test_a_training_loop(device):
    """Points come near their targets; on a GPU, on a stream of its own, and nothing waits."""
    generator = torch.manual_seed(5)
    targets = torch.rand((4, 16, 2), generator=generator).to(device)
    points = torch.rand((4, 16, 2), generator=generator).to(device).requires_grad_()
    optimizer = torch.optim.SGD([points], lr=2.0)

    def step():
        costs = torch.cdist(points, targets) ** 2
        columns = batch_linear_assignment(costs)
        loss = torch.gather(costs, 2, columns[:, :, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if device == "cpu":
        losses = [step() for _ in range(30)]
    else:
        step()  # compiles
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            with torch.cuda.stream(stream):
                losses = [step() for _ in range(30)]
                pairs = linear_sum_assignment(torch.rand((4, 9, 20), device=device), [2, 3, 12, 3])
        finally:
            torch.cuda.set_sync_debug_mode("default")
        stream.synchronize()
        assert [len(rows) for rows, _ in pairs] == [2, 3, 9, 3]
    assert losses[-1] < losses[0] / 10


# -- CUDA graphs -----------------------------------------------------------------------------------


def captured(costs):
    """A graph of a call, and its result, which every replay writes anew."""
    batch_linear_assignment(costs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        columns = batch_linear_assignment(costs)
    return graph, columns


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bfloat16"])
@pytest.mark.parametrize(
    "shape", [(40, 7, 7), (64, 40, 100), (16, 100, 40), (8, 300, 300), (3, 1024, 1024)], ids=str
)
def test_a_graph_solves_other_costs_when_it_is_replayed(shape, dtype):
    def drawn(seed):
        generator = torch.Generator("cuda").manual_seed(seed)
        costs = torch.rand(shape, generator=generator, device="cuda") * 200
        return costs.to(getattr(torch, dtype))

    costs = drawn(0)
    graph, columns = captured(costs)
    for seed in (1, 2, 3):
        others = drawn(seed)
        costs.copy_(others)
        graph.replay()
        # Calls of other shapes, and arrays of CuPy's, must not get the graph's memory or launches.
        for count in (1, 5):
            batch_linear_assignment(torch.rand((count, 320, 320), device="cuda").to(costs.dtype))
        assert ((columns >= 0).sum(dim=1) == min(shape[1:])).all()
        alone = gm.assign(others.double().cpu().numpy())
        assert np.allclose(totals(others.double(), columns), alone.objective)
        graph.replay()
        again = columns.clone()
        graph.replay()
        assert np.allclose(totals(others.double(), again), totals(others.double(), columns))


@pytest.mark.gpu
def test_two_graphs_have_memory_of_their_own():
    first, second = (torch.rand((9, 60, 60), device="cuda") for _ in range(2))
    (one, of_first), (two, of_second) = captured(first), captured(second)
    one.replay()
    two.replay()
    one.replay()
    for costs, columns in ((first, of_first), (second, of_second)):
        best = gm.assign(costs.double().cpu().numpy()).objective
        assert np.allclose(totals(costs.double(), columns), best)


@pytest.mark.gpu
def test_a_marked_problem_of_a_graph_is_told_by_minus_one():
    costs = torch.rand((5, 6, 6), device="cuda")
    graph, columns = captured(costs)
    costs[2, 3] = math.inf
    costs[4, 0, 0] = math.nan
    graph.replay()
    assert (columns < 0).all(dim=1).tolist() == [False, False, True, False, True]
    assert not (columns < 0).any(dim=1)[[0, 1, 3]].any()


@pytest.mark.gpu
@pytest.mark.parametrize("why", ["size", "type", "errors", "side by side"])
def test_what_a_graph_cannot_hold_is_an_error_that_does_not_spoil_it(why):
    good = torch.rand((3, 8, 8), device="cuda")
    wide = torch.rand((1, 4, 1025), device="cuda")
    calls = {
        "size": lambda: batch_linear_assignment(wide),
        "type": lambda: batch_linear_assignment(good.long()),
        "errors": lambda: batch_linear_assignment(good, on_error="raise"),
        "side by side": lambda: linear_sum_assignment(good, [3, 3, 2]),
    }
    batch_linear_assignment(good)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(CaptureError):
            calls[why]()
        columns = batch_linear_assignment(good)
    graph.replay()
    assert np.allclose(totals(good, columns), gm.assign(good.cpu().numpy()).objective)


def test_calls_that_wait_are_refused_before_a_graph_is_spoiled(monkeypatch):
    monkeypatch.setattr(module, "_is_captured", lambda _: True)
    costs = torch.rand((2, 3, 3))
    with pytest.raises(CaptureError, match="a CUDA graph cannot"):
        batch_linear_assignment(costs, on_error="raise")
    with pytest.raises(CaptureError, match="a CUDA graph cannot"):
        linear_sum_assignment(costs, [1, 2])
