"""The rows that a rank takes from what it is given, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
from scipy.sparse import csr_array

from gpumatch.distributed.blocks import MAX_VERTICES, Split, agree_on_columns, split_of, taken

WHOLE = np.arange(20).reshape(5, 4)
RANKS = [SimpleNamespace(size=3, rank=rank) for rank in range(3)]


def rows_as(kind):
    def rows(begin, end):
        part = WHOLE[begin:end]
        if kind == "list":
            return part.tolist()
        if kind == "tuple":
            matrix = csr_array(part + 1)
            return matrix.indptr, matrix.indices, matrix.data, matrix.shape
        return csr_array(part) if kind == "sparse" else part

    return rows


def dense(rows):
    if isinstance(rows, tuple):
        indptr, indices, data, shape = rows
        return csr_array((data - 1, indices, indptr), shape=shape).toarray()
    return rows.toarray() if hasattr(rows, "toarray") else rows


@pytest.mark.parametrize("kind", ["array", "list", "tuple", "sparse"])
def test_functions_give_all_rows_once(kind):
    parts = [dense(taken((rows_as(kind), WHOLE.shape), world)) for world in RANKS]
    assert np.array_equal(np.concatenate(parts), WHOLE)
    assert [len(part) for part in parts] == [1, 2, 2]


@pytest.mark.parametrize("name", ["a.npy", "a.mtx"])
def test_files_give_all_rows_once(tmp_path, name):
    path = tmp_path / name
    if name.endswith("npy"):
        np.save(path, WHOLE)
    else:
        scipy.io.mmwrite(path, csr_array(WHOLE))
    parts = [dense(taken(path, world)) for world in RANKS]
    assert np.array_equal(np.concatenate(parts), WHOLE)
    assert taken(str(path), RANKS[1]).shape == (2, 4)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ((rows_as("array"), (5, 3)), r"rows 1 to 3 the function must give shape \(2, 3\); got \(2"),
        ((lambda *_: WHOLE, (5, 4)), r"must give shape \(2, 4\); got \(5, 4\)"),
        ((lambda *_: [1, 2], (5, 4)), r"must give shape \(2, 4\); got \(2,\)"),
        ((rows_as("array"), (5, -4)), r"a shape cannot be negative; got \(5, -4\)"),
        ((rows_as("array"), (-5, 4)), r"a shape cannot be negative; got \(-5, 4\)"),
        ((rows_as("array"), (5,)), r"must be a shape \(rows, columns\); got \(5,\)"),
        ((rows_as("array"), "five"), "must be a shape"),
        ((rows_as("array"), (MAX_VERTICES + 1, 4)), "rows or columns are more than"),
        ((rows_as("array"), (5, MAX_VERTICES + 1)), "rows or columns are more than"),
        ("a.csv", "a path must be that of a .npy or .mtx file; got 'a.csv'"),
    ],
)
def test_what_gives_no_such_rows(block, message):
    with pytest.raises(ValueError, match=message):
        taken(block, RANKS[1])


def test_an_array_of_three_dimensions_is_no_matrix(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match=r"a\.npy must have 2 dimensions; got 3"):
        taken(tmp_path / "a.npy", RANKS[0])


@pytest.mark.parametrize(
    "block",
    [WHOLE, csr_array(WHOLE), (1, 2), (1, 2, 3), [[1]]],
    ids=["array", "sparse", "pair", "triple", "list"],
)
def test_all_else_is_this_ranks_own(block):
    assert taken(block, RANKS[0]) is block


def test_numbers_are_sorted_out_by_their_owners():
    split = Split(np.array([0, 2, 2, 7]), 2)
    assert (split.total, split.first, split.own, split.slice) == (7, 2, 5, slice(2, 7))
    numbers, beside = np.array([6, 0, 3, 1, 2]), np.arange(5) * 10
    parts = split.sorted_out(numbers, beside)
    assert [part.tolist() for part in parts] == [
        [[0, 10], [1, 30]],
        [],
        [[6, 0], [3, 20], [2, 40]],
    ]
    assert {part.dtype for part in parts} == {np.dtype(np.int32)}


@pytest.mark.parametrize("shape", [(5, MAX_VERTICES), (MAX_VERTICES, 4)], ids=["columns", "rows"])
def test_the_most_vertices_are_held(shape):
    def rows(begin, end):
        return SimpleNamespace(shape=(end - begin, shape[1]))

    sizes = [taken((rows, shape), world).shape[0] for world in RANKS]
    assert sum(sizes) == shape[0]


@pytest.mark.parametrize("others", [MAX_VERTICES - 3, MAX_VERTICES - 2])
def test_rows_are_as_many_as_all_ranks_have(others):
    def all_gather(own):
        return [np.array([others], np.int64), own]

    world = SimpleNamespace(rank=1, allgather=all_gather, agreed=lambda error: error)
    if others + 3 > MAX_VERTICES:
        with pytest.raises(ValueError, match=f"{others + 3} rows or columns are more than"):
            split_of(3, world)
    else:
        assert split_of(3, world).slice == slice(others, MAX_VERTICES)


@pytest.mark.parametrize("counts", [[3, 4], [4, 3]])
def test_ranks_that_differ_in_their_columns_are_named(counts):
    def all_gather(own):
        return [np.array([count], np.int64) for count in counts]

    world = SimpleNamespace(allgather=all_gather, agreed=lambda error: error)
    says = f"rank 1 has {counts[1]} columns, but rank 0 has {counts[0]}"
    with pytest.raises(ValueError, match=says):
        agree_on_columns(counts[0], world)
