"""``gpumatch match``: a maximum matching of a sparse matrix, with its certificate."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from gpumatch.cli import running
from gpumatch.registry import option_names

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from gpumatch.control import Control
    from gpumatch.matching import Matching


def add_to(commands: Any) -> None:
    text = "match the rows of a sparse matrix to its columns"
    description = text.capitalize() + "."
    match = commands.add_parser("match", help=text, description=description, allow_abbrev=False)
    add = match.add_argument
    running.add_matrix(match)
    add("--init", default="auto", help="auto, cheap, karp-sipser, min-degree or none: the start")
    running.add_own_options(match, "matching")
    running.add_run_options(match, "a matching")
    match.set_defaults(command=_match)


def _match(options: argparse.Namespace) -> int:
    import gpumatch
    from gpumatch.control import Control

    running.refuse_to_overwrite(running.file_of(options.source), options.output)
    clock = Control()
    with clock.part("read"):
        matrix = running.read_matrix(options.source)
    solve = functools.partial(gpumatch.maximum_matching, matrix)
    wish = {"init": options.init}
    matching = running.run(solve, options, matrix.shape, wish, option_names("matching"))
    report = _report(options, matrix, matching, clock)
    running.tell(report, _lines(report), as_json=options.json)
    return running.PROVEN if matching.proven else running.NOT_PROVEN


def _report(
    options: argparse.Namespace, matrix: csr_array, matching: Matching, clock: Control
) -> dict[str, Any]:
    """What ``--json`` prints."""
    certificate = running.certificate(matrix, matching, clock)
    rows, columns = matrix.shape
    stats = matching.stats
    return {
        "source": options.source,
        "rows": rows,
        "columns": columns,
        "entries": matrix.nnz,
        "size": matching.size,
        "structural_rank": matching.size if matching.proven else None,
        "rows_left": rows - matching.size,
        "columns_left": columns - matching.size,
        "proven": matching.proven,
        "certificate": certificate,
        **{key: stats[key] for key in ("algorithm", "backend", "init")},
        **{key: stats[key] for key in ("phases", "levels", "start_size")},
        "seconds": {"read": clock.seconds.pop("read"), **stats["seconds"], **clock.seconds},
        "output": options.output,
        "pairs": running.pairs(matching, options),
    }


def _lines(report: dict[str, Any]) -> dict[str, Any]:
    proven, size = report["proven"], report["size"]
    return {
        "source": report["source"],
        "graph": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
        "matching": f"{size} edges, {'maximum' if proven else 'not proven maximum'}",
        "structural rank": size if proven else f"at least {size}",
        "left": "{rows_left} rows, {columns_left} columns".format_map(report),
        "algorithm": "{algorithm} on {backend}, start {init}".format_map(report),
        "certificate": "a cover of {bound} vertices, checked on {edges} edges".format_map(
            report["certificate"]
        )
        if proven
        else "none",
    }
