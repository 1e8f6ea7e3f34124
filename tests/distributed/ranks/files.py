"""Blocks that a function or a file gives, and the command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
from pathlib import Path

import numpy as np
from scipy.io import mmwrite
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array

import gpumatch
from gpumatch import cli, distributed
from graphs import costs as families
from tests.distributed.ranks.checks import share


def blocks(comm):
    """Blocks by a function and from a file, and of several dtypes."""
    whole = families.make("uniform_integer", 12, 15, seed=2)
    best = whole[linear_sum_assignment(whole)].sum()

    yield "a function"
    asked = []

    def rows(begin, end):
        asked.append((begin, end))
        return whole[begin:end]

    a = distributed.assign((rows, whole.shape), comm=comm)
    assert a.objective == best
    assert asked == [(a.rows.start, a.rows.stop)]
    assert distributed.verify((rows, whole.shape), a, comm=comm).objective == best
    m = distributed.maximum_matching((lambda b, e: csr_array(whole[b:e]), whole.shape), comm=comm)
    assert m.size == 12

    yield "a file"
    path = os.environ["GPUMATCH_TEST_FILE"]
    if comm.rank == 0:
        np.save(path, whole)
    comm.Barrier()
    assert distributed.assign(path, comm=comm).objective == best
    assert distributed.maximum_matching(path, comm=comm).size == 12

    yield "a Matrix Market file"
    path = str(Path(path).with_suffix(".mtx"))
    if comm.rank == 0:
        mmwrite(path, coo_array(whole + 1))
    comm.Barrier()
    a = distributed.assign(path, comm=comm)
    assert a.objective == best + 12
    assert distributed.verify(path, a, comm=comm).edges == whole.size
    assert distributed.maximum_matching(path, comm=comm).size == 12

    yield "dtypes that differ"
    block = share(whole, comm).astype((np.int16, np.float32, np.int64)[comm.rank % 3])
    a = distributed.assign(block, comm=comm)
    assert a.objective == best
    kinds = comm.allgather((type(a.objective), a.row_dual.dtype.str, a.col_dual.dtype.str))
    assert len(set(kinds)) == 1
    assert distributed.verify(block, a, comm=comm).objective == best

    yield "integers on one rank that 32 bits do not hold, more rows than columns"
    tall = np.ascontiguousarray(whole.T)
    tall[-1] += 2**40
    a = distributed.assign(share(tall, comm), comm=comm)
    assert a.objective == tall[linear_sum_assignment(tall)].sum()

    yield "integers on one rank, halves on the others"
    block = share(whole, comm)
    block = block if comm.rank == 0 else block + 0.5
    mixed = np.concatenate(comm.allgather(block))
    a = distributed.assign(block, comm=comm)
    assert a.objective == mixed[linear_sum_assignment(mixed)].sum()
    assert distributed.verify(block, a, comm=comm).objective == a.objective


def commands(comm):
    """The command line, of which rank 0 alone speaks."""
    folder = Path(os.environ["GPUMATCH_TEST_FILE"]).parent
    costs = families.make("uniform_integer", 9, 12, seed=6)
    npy, mtx, csv, out = (str(folder / name) for name in ("c.npy", "c.mtx", "c.csv", "out.npz"))
    if comm.rank == 0:
        np.save(npy, costs)
        mmwrite(mtx, coo_array(costs + 1))
        np.savetxt(csv, costs, "%d", delimiter=",")
    comm.Barrier()
    best = gpumatch.assign(costs).objective

    def run(*arguments):
        said, warned = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(warned):
            code = cli.main([*arguments, "--distributed"])
        assert len(set(comm.allgather(code))) == 1
        assert comm.rank == 0 or not said.getvalue() + warned.getvalue()
        return code, *(comm.bcast(text.getvalue(), root=0) for text in (said, warned))

    for source, objective in ((npy, best), (mtx, best + 9), (csv, best)):
        yield f"assign {source[-3:]}"
        code, said, _ = run("assign", source, "--json", "--output", out)
        report = json.loads(said)
        assert (code, report["objective"], report["certificate"]["bound"]) == (0, *[objective] * 2)
        assert report["backend"] == f"cpu, {comm.size} ranks"
        assert "read" in report["seconds"]
        assert (report["rows"], report["columns"], report["entries"]) == (9, 12, 108)
        with np.load(out) as written:
            rows = np.arange(9)
            assert costs[rows, written["row_to_col"]].sum() == best
            assert written["col_dual"].size == 12
        comm.Barrier()
    yield "assign, maximum"
    code, said, _ = run("assign", mtx, "--cardinality", "maximum", "--json")
    assert (code, json.loads(said)["objective"]) == (0, best + 9)
    yield "match"
    code, said, _ = run("match", "datasets/karate.mtx.gz")
    assert code == 0
    assert "27 edges, maximum" in said
    assert "a cover of 27 vertices, checked on 156 edges" in said
    code, said, _ = run("match", mtx, "--json")
    assert (code, "read" in json.loads(said)["seconds"]) == (0, True)
    yield "a progress bar"
    for command, problem in (("match", mtx), ("assign", mtx)):
        code, _, warned = run(command, problem, "--progress")
        assert (code, "matched" in warned) == (0, True)
    yield "a pickle"
    if comm.rank == 0:
        with open(npy, "wb") as file:
            pickle.dump([[1, 2]], file)
    comm.Barrier()
    code, _, warned = run("assign", npy)
    assert (code, "allow_pickle" in warned) == (2, True)
    if comm.rank == 0:
        np.save(npy, costs)
    comm.Barrier()
    yield "no time"
    assert run("assign", npy, "--time-limit", "0")[0] == 3
    yield "refused"
    for arguments, error in (
        (["assign", npy, "--seed", "3"], "--seed is not for --distributed"),
        (["match", mtx, "--launch", "mt"], "--launch is not for --distributed"),
        (["match", mtx, "--algorithm", "pfp"], "no algorithm 'pfp' for matchings"),
        (["assign", npy, "--objective", "bottleneck"], "--objective is not for --distributed"),
        (["match", "-"], "standard input is not for --distributed"),
        (["match", mtx, "--backend", "reference"], "backend must be one of ('cpu', 'cuda')"),
        (["assign", npy, "--backend", "reference"], "backend must be one of ('cpu', 'cuda')"),
        (["match", str(folder / "none.mtx")], "none.mtx: No such file"),
    ):
        code, _, warned = run(*arguments)
        assert code == 2
        assert error in warned
        assert warned.count("gpumatch: error") == 1


GROUPS = blocks, commands
