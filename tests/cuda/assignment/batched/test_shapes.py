"""How many threads and blocks a team has for the sides of its problem."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("cupy")

from gpumatch.cuda.assignment.batched import batch as device_batch


@pytest.mark.parametrize(
    ("sides", "most", "kernel", "blocks", "threads", "columns"),
    [
        ((1, 1), 8, "solve_alone", 1, 32, 1),
        ((32, 33), 8, "solve_alone", 1, 32, 2),
        ((64, 64), 8, "solve_alone", 1, 32, 2),
        ((64, 65), 8, "solve", 1, 96, 1),
        ((300, 300), 8, "solve", 1, 320, 1),
        ((512, 512), 8, "solve", 1, 512, 1),
        ((9, 513), 1, "solve", 1, 544, 1),
        ((9, 513), 2, "solve", 2, 288, 1),
        ((100, 1024), 8, "solve", 8, 128, 1),
        ((9, 1025), 1, "solve", 1, 544, 2),
        ((9, 1025), 4, "solve", 4, 288, 1),
        ((4096, 4096), 4, "solve", 4, 512, 2),
    ],
)
def test_teams_have_room(sides, most, kernel, blocks, threads, columns):
    made = device_batch.shape_for(*sides, most, has_room=False)
    assert made.kernel == f"{kernel}<{{Cost}}, {columns}>"
    assert (made.blocks, made.threads) == (blocks, threads)
    assert made.blocks * made.threads * columns >= max(sides)
    assert made.threads <= 1024
    assert made.blocks * made.threads <= 32 * device_batch.SOURCE.constant("kMostWarps")


@pytest.mark.parametrize(
    ("sides", "threads"),
    [
        ((100, 300), 512),
        ((128, 256), 512),
        ((129, 258), 1024),
        ((129, 257), 288),
        ((250, 512), 1024),
        ((300, 300), 320),
    ],
)
def test_where_there_is_room_teams_read_wide_rows_with_more_threads(sides, threads):
    made = device_batch.shape_for(*sides, 1, has_room=True)
    assert (made.kernel, made.blocks, made.threads) == ("solve<{Cost}, 1>", 1, threads)


def test_the_smallest_problems_and_large_ones_have_no_more_threads():
    for sides, most in (((9, 64), 1), ((9, 513), 2), ((100, 1024), 8)):
        assert device_batch.shape_for(*sides, most, True) == device_batch.shape_for(
            *sides, most, False
        )


@pytest.mark.parametrize(
    ("side", "blocks", "threads"),
    [(256, 1, 256), (257, 4, 256), (512, 4, 256), (513, 8, 128), (1000, 8, 128), (2048, 8, 256)],
)
def test_a_single_problem_has_a_cluster_sooner(side, blocks, threads):
    made = device_batch.shape_for(side, side, 8, True, is_alone=True)
    assert (made.blocks, made.threads) == (blocks, threads)
    assert device_batch.shape_for(side, side, 8, True).blocks == (8 if side > 512 else 1)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_single_problem_has_no_more_blocks_than_the_device_has(most):
    assert device_batch.shape_for(400, 400, most, True, is_alone=True).blocks == most


def test_there_is_room_for_two_teams_on_each_multiprocessor(monkeypatch):
    one = SimpleNamespace(id=0, attributes={"MultiProcessorCount": 132})
    cuda = SimpleNamespace(Device=lambda *_: one)
    monkeypatch.setattr(device_batch, "cp", SimpleNamespace(cuda=cuda))
    device_batch._multiprocessors.cache_clear()
    assert device_batch.has_room(264)
    assert not device_batch.has_room(265)
    device_batch._multiprocessors.cache_clear()
