"""``gpumatch match``: a maximum matching of a sparse matrix, with its certificate."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from gpumatch.cli import distributed, general, running
from gpumatch.dispatch.registry import option_names

if TYPE_CHECKING:
    from gpumatch.running.control import Control


def add_to(commands: Any) -> None:
    text = "match the rows of a sparse matrix to its columns, or the vertices of a graph"
    description = text.capitalize() + "."
    match = commands.add_parser("match", help=text, description=description, allow_abbrev=False)
    add = match.add_argument
    running.add_matrix(match)
    add("--init", default="auto", help="auto, cheap, karp-sipser, min-degree or none: the start")
    running.add_own_options(match, "matching")
    running.add_run_options(match, "a matching")
    running.add_proof(match)
    general.add_to(match)
    distributed.add_to(match)
    match.set_defaults(command=_match)


def _match(options: argparse.Namespace) -> int:
    import gpumatch
    from gpumatch.interop.sparse import labels_of
    from gpumatch.running.control import Control

    for written in (options.output, options.proof):
        running.refuse_to_overwrite(running.file_of(options.source), written)
    clock = Control()
    if options.general:
        return general.match(options, clock)
    general.refuse(options)
    if options.distributed:
        return _match_on_ranks(options, clock)
    with clock.part("read"):
        matrix = running.read_matrix(options)
    solve = functools.partial(gpumatch.maximum_matching, matrix)
    wish = {"init": options.init}
    matching = running.run(
        *(solve, options, matrix.shape, wish, option_names("matching")), labels_of(matrix)
    )
    certificate = running.certificate(matrix, matching, clock)
    running.save_proof(matrix, matching, options)
    return _tell(options, (matrix.shape, matrix.nnz), matching, certificate, clock)


def _match_on_ranks(options: argparse.Namespace, clock: Control) -> int:
    from gpumatch.distributed import maximum_matching

    if options.algorithm not in ("auto", "engine"):
        raise ValueError(f"--distributed has no algorithm {options.algorithm!r} for matchings")
    if options.proof is not None:
        raise ValueError("--distributed writes no proof")
    with clock.part("read"):
        block, shape, entries = distributed.read(
            options, option_names("matching"), lambda: running.read_matrix(options)
        )
    solve = functools.partial(maximum_matching, block, **distributed.how(options))
    matching, certificate, proven = distributed.run(solve, block, options, clock)
    if matching is not None:
        return _tell(options, (shape, entries), matching, certificate, clock)
    return running.code_of(proven)


def _tell(
    options: argparse.Namespace,
    size: tuple[tuple[int, int], int],
    matching: Any,
    certificate: dict[str, float] | None,
    clock: Control,
) -> int:
    """Print the report; the exit code."""
    report = _report(options, *size, matching, certificate, clock)
    running.tell(report, _lines(report), options)
    return running.code_of(matching.proven)


def _report(
    options: argparse.Namespace,
    shape: tuple[int, int],
    entries: int,
    matching: Any,
    certificate: dict[str, float] | None,
    clock: Control,
) -> dict[str, Any]:
    """What ``--json`` prints."""
    rows, columns = shape
    stats = matching.stats
    return {
        "source": options.source,
        "rows": rows,
        "columns": columns,
        "entries": entries,
        "size": matching.size,
        "structural_rank": matching.size if matching.proven else None,
        "rows_left": rows - matching.size,
        "columns_left": columns - matching.size,
        "proven": matching.proven,
        "certificate": certificate,
        **{key: stats[key] for key in ("algorithm", "backend", "init")},
        **{key: stats[key] for key in ("phases", "levels", "start_size")},
        "seconds": running.seconds_of(stats, clock),
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
