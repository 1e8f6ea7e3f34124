"""The command line: ``match``, ``assign``, ``transport``, ``check``, ``dmperm`` and others.

Exit codes: 0 the result is proven maximum or optimal, or ``check`` has accepted its proof; 1
``check`` has refused it; 2 bad input or usage, and costs that allow no full assignment; 3 not
proven, because the time was up or the algorithm is a heuristic; 130 on Ctrl-C (after writing the
best so far if ``--output`` asks for it); 141 if the reader of the output has closed it.

``--quiet`` prints no report, and the pairs of ``--pairs`` as CSV. ``--json`` prints one object. Of
``match``:

    source, rows, columns, entries   the graph
    size                             matched edges
    structural_rank                  the same once proven, else null
    rows_left, columns_left          unmatched
    proven                           whether the matching is maximum
    certificate                      {size, bound, edges} as checked, or null
    algorithm, backend, init         what ran
    phases, levels, start_size       as in `Matching.stats`
    seconds                          by part: read, graph, transfer, compilation, start, search,
                                     certificate
    output                           the file written, or null
    pairs                            with ``--pairs``, [row, column] of each matched edge, else null

Of ``match --general``, if they differ from those of ``match``:

    vertices, entries                the graph
    vertices_left                    unmatched
    certificate                      also of a result that is near the best, with its bound
    seconds                          by part: read, graph, transfer, compilation and its own,
                                     certificate
    pairs                            with ``--pairs``, [vertex, vertex] of each edge, else null
    maximize, cardinality            with ``--weights``: what was asked for
    objective, gap                   with ``--weights``: the total weight, and how far that may be
                                     from the optimum; null if nothing is known

Of ``assign``, if they differ from those of ``match``:

    entries                          the costs that are given, infinite ones too
    maximize, cardinality, cost_limit  what was asked for
    size                             assigned pairs
    objective                        their total cost; an integer if the costs are
    gap                              how far that may be from the optimum; null if nothing is known
    seconds                          by part: read, costs, compilation, search and its own,
                                     certificate
    pairs                            with ``--pairs``, [row, column, cost] of each pair, else null

Of ``transport``, if they differ from those of ``assign``:

    size                             pairs with flow
    total                            what they carry
    pairs                            with ``--pairs``, [row, column, flow, cost] of each, else null

Of ``dmperm``, if they differ from those of ``match``:

    parts                            underdetermined, well_determined, overdetermined: each with the
                                     numbers of its rows and of its columns
    blocks, largest_block            of the well-determined part: how many, and rows of the largest
    seconds                          by part: read, compilation, search, certificate, plot
    plot                             the picture written, or null

Of ``scale``, if they differ from those of ``match``:

    log_product                      sum of the logarithms of the matched entries' magnitudes
    row_log_scale, col_log_scale     [least, greatest] logarithm of the factors
    row_log_scales, col_log_scales   the logarithms of all factors
    row_perm, col_perm               the permutations that bring the matched entries to the diagonal
    job                              of MC64's
    least, sum                       of jobs 1 to 4, in place of product and factors: of the
                                     magnitudes on the diagonal
    certificate                      null for jobs 1 to 4
    seconds                          by part: read, compilation, search

Of ``algorithms``: a list of {name, problem, backends, exact, reference, options}. Of ``info``:
{versions, python, platform, threads, devices: [{name, memory_bytes, free_bytes}], cuda_off}, where
``cuda_off`` says why no GPU can be used, or is null. Of ``warmup``: {seconds: {step: seconds}}.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gpumatch.cli import assign, check, distributed, linalg, listings, match, transport
from gpumatch.cli.running import BAD_INPUT, INTERRUPTED, UNREAD
from gpumatch.dispatch.registry import did_you_mean

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as exc:  # argparse has said why
        return int(exc.code or 0)
    try:
        code = options.command(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes again at its end
        return UNREAD
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except (ValueError, TypeError, RuntimeError, MemoryError, ImportError, OSError) as exc:
        _say(f"error: {_one_line(exc)}")
        return BAD_INPUT


def _say(text: str) -> None:
    """Print a message on stderr, of several ranks once."""
    if not distributed.is_silent():
        print(f"gpumatch: {text}", file=sys.stderr)


def _one_line(exc: Exception) -> str:
    if isinstance(exc, OSError) and exc.strerror and exc.filename:
        return f"{exc.filename}: {exc.strerror}"
    return " ".join(str(exc).split()) or type(exc).__name__


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gpumatch",
        description="Matching and assignment of the rows and columns of a matrix, with a proof.",
        epilog="Exit codes: 0 proven, 2 bad input or infeasible, 3 not proven, 130 interrupted.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for module in (match, assign, transport, linalg, check, listings):
        module.add_to(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """Asks what command or option was meant if it knows none of that name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """All of them, or else an error of this command: the main one knows none of its options."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = re.findall(r"--[\w-]+", self.format_usage())
            hint = did_you_mean(unknown[0].partition("=")[0], known)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        unknown = re.match(
            r"argument COMMAND: invalid choice: '(.*?)' \(choose from (.*)\)", message
        )
        if unknown:
            message += did_you_mean(unknown[1], re.findall(r"[\w-]+", unknown[2]))
        super().error(message)


class _Version(argparse.Action):
    """Prints the version; reads it only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from gpumatch import __version__

        print(f"gpumatch {__version__}")
        parser.exit()
