"""The command line writes what the library makes."""

from __future__ import annotations

from pathlib import Path

import pytest
import scipy.io
import scipy.sparse

import graphs
from graphs.__main__ import main


def read(path: Path) -> scipy.sparse.csr_array:
    if path.suffix == ".npz":
        return scipy.sparse.load_npz(path)
    return scipy.io.mmread(path, spmatrix=False).tocsr()


@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz", "g.npz"])
@pytest.mark.parametrize(
    ("words", "graph"),
    [
        (["grid", "12", "0.5"], graphs.grid(12, 0.5)),
        (["grid", "12", "--seed", "4", "p=0.5"], graphs.grid(12, 0.5, seed=4)),
        (["uniform", "30", "2", "7", "--seed", "4", "--rcp"],
         graphs.rcp(graphs.uniform(30, 2, 7, seed=4), 4)),
        (["ladder", "9", "--rcp"], graphs.rcp(graphs.ladder(9))),
        (["empty", "4", "0"], graphs.empty(4, 0)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_round_trip(tmp_path: Path, name: str, words: list[str], graph) -> None:
    assert main([*words, "-o", str(tmp_path / name)]) == 0
    written = read(tmp_path / name)
    assert written.shape == graph.shape
    assert (written.astype(bool) != graph).nnz == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["grid", "3", "-o", "{}/g.txt"], "must end in .mtx, .mtx.gz or .npz"),
        (["grid", "three", "-o", "{}/g.npz"], "three"),
        (["grid", "-o", "{}/g.npz"], "missing 1 required positional argument: 'k'"),
        (["grid", "3", "q=1", "-o", "{}/g.npz"], "unexpected keyword argument 'q'"),
        (["fewg", "100", "-o", "{}/g.npz"], "multiple of groups"),
        (["grid", "3", "-o", "{}/missing/g.npz"], "missing"),
    ],
)
def test_errors(tmp_path: Path, capsys, words: list[str], message: str) -> None:
    assert main([word.format(tmp_path) for word in words]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [[], ["grid", "3"], ["mesh", "3", "-o", "g.npz"]])
def test_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2


def test_list_names_every_family(capsys) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out
    for name, family in graphs.FAMILIES.items():
        assert family.summary in listed
        assert f"\n{name}" in f"\n{listed}"
    assert "grid k [p=1.0]" in listed


def test_list_tells_about_one_family(capsys) -> None:
    assert main(["hexa", "--list"]) == 0
    told = capsys.readouterr().out
    assert "union of random hexagons" in told
    assert "degree : float" in told
