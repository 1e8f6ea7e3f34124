"""``gpumatch dmperm`` and ``gpumatch scale``: what solvers of sparse linear systems ask for."""

from __future__ import annotations

import argparse
import itertools
import math
import os
from typing import TYPE_CHECKING, Any

from gpumatch.cli import running

if TYPE_CHECKING:
    from gpumatch.linalg import DulmageMendelsohn, ProductMatching
    from gpumatch.running.control import Control

PARTS = ("underdetermined", "well_determined", "overdetermined")


def add_to(commands: Any) -> None:
    text = "permute a sparse matrix to block triangular form (Dulmage-Mendelsohn)"
    dmperm = _command(commands, "dmperm", text, "p, q, r, s, cc, rr")
    dmperm.add_argument(
        "--plot", metavar="FILE", type=_file, help="draw the permuted matrix (.png)"
    )
    dmperm.set_defaults(command=_dmperm)
    text = "permute and scale a sparse matrix so that its diagonal is large"
    scale = _command(commands, "scale", text, "row_perm, col_perm and the factors")
    text = (
        "what is greatest on the diagonal, by MC64's jobs: 1 the number of entries, 2 or 3 the "
        "least magnitude, 4 their sum, 5 their product (default: 5)"
    )
    scale.add_argument("--job", type=int, default=5, help=text)
    scale.set_defaults(command=_scale)


def _command(commands: Any, name: str, text: str, arrays: str) -> argparse.ArgumentParser:
    description = text[0].upper() + text[1:] + "."
    command = commands.add_parser(name, help=text, description=description, allow_abbrev=False)
    running.add_matrix(command)
    add = command.add_argument
    add("--backend", default="auto", help="auto, cpu or cuda")
    add("--threads", type=int, help="CPU threads (default: all)")
    add("--seed", type=int, default=0, help="fixes free choices (default: 0)")
    add("--output", metavar="FILE", type=_npz, help=f"write {arrays} (.npz)")
    running.add_forms(command)
    return command


def _file(path: str) -> str:
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"there is no folder {folder}")
    return path


def _npz(path: str) -> str:
    if not path.lower().endswith(".npz"):
        raise argparse.ArgumentTypeError(f"{path} must end in .npz")
    return _file(path)


# -- the commands ----------------------------------------------------------------------------------


def _dmperm(options: argparse.Namespace) -> int:
    import gpumatch
    from gpumatch.running.control import Control

    for written in (options.output, options.plot):
        running.refuse_to_overwrite(running.file_of(options.source), written)
    clock = Control()
    with clock.part("read"):
        matrix = running.read_matrix(options)
    with clock.part("search"):
        d = gpumatch.linalg.dmperm(matrix, **_run_options(options))
    with clock.part("certificate"):
        proof = gpumatch.verify(matrix, d)
    if options.output:
        _write(options.output, d._asdict())
    if options.plot:
        with clock.part("plot"):
            gpumatch.plot.spy(matrix, d).figure.savefig(options.plot)
    report = {
        **_of_matrix(options, matrix),
        "structural_rank": proof.size,
        **_parts_and_blocks(d),
        "certificate": {"size": proof.size, "bound": proof.bound, "edges": proof.edges},
        "seconds": clock.seconds,
        "output": options.output,
        "plot": options.plot,
    }
    running.tell(report, _lines_of_dmperm(report), options)
    return running.PROVEN


def _parts_and_blocks(d: DulmageMendelsohn) -> dict[str, Any]:
    rr, cc, r = (part.tolist() for part in (d.rr, d.cc, d.r))
    rows = rr[1], rr[2] - rr[1], rr[4] - rr[2]
    cols = cc[2], cc[3] - cc[2], cc[4] - cc[3]
    heights = [end - begin for begin, end in itertools.pairwise(r)]
    square = heights[1 if cc[2] > 0 else 0 : len(heights) - (1 if rr[2] < rr[4] else 0)]
    return {
        "parts": {
            name: {"rows": height, "columns": width}
            for name, height, width in zip(PARTS, rows, cols)
        },
        "blocks": len(square),
        "largest_block": max(square, default=0),
    }


def _lines_of_dmperm(report: dict[str, Any]) -> dict[str, Any]:
    parts = {
        name.replace("_", "-"): "{rows} rows, {columns} columns".format_map(part)
        for name, part in report["parts"].items()
    }
    return {
        "source": report["source"],
        "matrix": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
        "structural rank": report["structural_rank"],
        **parts,
        "blocks": "{blocks}, the largest of {largest_block} rows".format_map(report),
        "certificate": f"finest, checked on {report['certificate']['edges']} entries",
    }


def _scale(options: argparse.Namespace) -> int:
    from gpumatch.running.control import Control

    running.refuse_to_overwrite(running.file_of(options.source), options.output)
    clock = Control()
    with clock.part("read"):
        matrix = running.read_matrix(options)
    found = _product if options.job == 5 else _permutations
    with running.naming_nan(options.source, matrix):
        arrays, facts = found(options, matrix, clock)
    if options.output:
        _write(options.output, arrays)
    report = {
        **_of_matrix(options, matrix),
        "job": options.job,
        **facts,
        **{name: arrays[name].tolist() for name in _PERMUTATIONS},
        "seconds": clock.seconds,
        "output": options.output,
    }
    running.tell(report, _lines_of_scale(report), options)
    return running.PROVEN


_PERMUTATIONS = ("row_perm", "col_perm")
_LOGARITHMS = ("row_log_scale", "col_log_scale")


def _product(
    options: argparse.Namespace, matrix: Any, clock: Control
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of job 5, and what there is to tell of them."""
    import gpumatch

    with clock.part("search"):
        s = gpumatch.linalg.maximum_product_matching(matrix, **_run_options(options))
    with clock.part("certificate"):
        proof = gpumatch.verify(matrix, s)
    names = (*_PERMUTATIONS, "row_scale", "col_scale", *_LOGARITHMS)
    facts = {
        "structural_rank": s.size,
        "log_product": s.log_product,
        **{name: _range(s, name) for name in _LOGARITHMS},
        **{f"{name}s": getattr(s, name).tolist() for name in _LOGARITHMS},
        "certificate": {"size": proof.size, "bound": proof.bound, "edges": proof.edges},
    }
    return {name: getattr(s, name) for name in names}, facts


def _permutations(
    options: argparse.Namespace, matrix: Any, clock: Control
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of the other jobs, which have no scales, and no certificate of their own."""
    import gpumatch

    with clock.part("search"):
        found = gpumatch.linalg.mc64(matrix, options.job, **_run_options(options))
    diagonal = abs(matrix.tocsr()[found.row_perm][:, found.col_perm].diagonal()[: found.rank])
    facts = {
        "structural_rank": found.rank,
        "least": float(diagonal.min(initial=math.inf)) if found.rank else None,
        "sum": float(diagonal.sum()),
        "certificate": None,
    }
    return {name: getattr(found, name) for name in _PERMUTATIONS}, facts


def _range(s: ProductMatching, name: str) -> list[float]:
    values = getattr(s, name)
    return [float(values.min()), float(values.max())] if values.size else [0.0, 0.0]


def _lines_of_scale(report: dict[str, Any]) -> dict[str, Any]:
    if report["job"] != 5:
        return {
            "source": report["source"],
            "matrix": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
            "structural rank": report["structural_rank"],
            "diagonal": "least magnitude {least}, sum {sum:.6g}".format_map(report),
            "certificate": "none: only job 5 has one",
        }
    factors = {
        name: "exp({:.4g}) to exp({:.4g})".format(*report[key])
        for name, key in zip(("row factors", "column factors"), _LOGARITHMS)
    }
    return {
        "source": report["source"],
        "matrix": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
        "structural rank": report["structural_rank"],
        "product": "exp({log_product:.6g})".format_map(report),
        **factors,
        "certificate": f"no entry above 1, checked on {report['certificate']['edges']} entries",
    }


# -- what both do ----------------------------------------------------------------------------------


def _run_options(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("backend", "threads", "seed")}


def _of_matrix(options: argparse.Namespace, matrix: Any) -> dict[str, Any]:
    rows, columns = matrix.shape
    return {"source": options.source, "rows": rows, "columns": columns, "entries": matrix.nnz}


def _write(path: str, arrays: dict[str, Any]) -> None:
    import numpy as np

    np.savez(path, **arrays)
