"""``gpumatch check``: a proof in a file, checked against its problem."""

from __future__ import annotations

import argparse
from typing import Any

from gpumatch.cli import assign, general, running, transport

PROVEN, REFUSED = 0, 1


def add_to(commands: Any) -> None:
    text = "check that a file of `--proof` proves its result"
    description = (
        f"{text[0].upper()}{text[1:]}. Exit codes: 0 it does, 1 it does not, 2 bad input or usage."
    )
    check = commands.add_parser("check", help=text, description=description, allow_abbrev=False)
    add = check.add_argument
    add("proof", metavar="FILE", help="the proof (.txt or .npz)")
    text = "the matrix that was matched, or the costs that were assigned"
    running.add_source(check, text, is_needed=False)
    assign.add_points(check)
    for option, text in (
        ("--supply", "of a flow: the masses of the rows, as for `transport`"),
        ("--demand", "of a flow: the masses of the columns"),
        ("--pair-capacity", "of a flow: the most that a pair carries"),
    ):
        add(option, metavar="MASS", help=text)
    add("--quiet", action="store_true", help="print nothing: the exit code says it")
    text = "of a graph: both (default), upper or lower: the entries that are edges"
    add("--triangle", default="both", help=text)
    check.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from gpumatch import certificates

    assign.check_points(options)
    proof = certificates.load(options.proof)
    problem = _problem_of(proof.problem, options)
    try:
        proof.check_problem(problem, triangle=options.triangle)
        certificate = certificates.verify(
            problem, proof, triangle=options.triangle, **_masses(options, problem)
        )
    except certificates.CertificateError as error:
        if not options.quiet:
            print(f"refused: {error}")
        return REFUSED
    if not options.quiet:
        print(certificate)
    return PROVEN


def _problem_of(kind: str, options: argparse.Namespace) -> Any:
    """The graph, the matrix or the costs that a proof of this kind is one of."""
    if options.points:
        return assign.read_points(options)
    if kind.startswith("general"):
        return general.graph_of(running.read_matrix(options))[0]
    return (
        running.read_matrix(options)
        if kind in ("matching", "edges")
        else running.read_costs(options)
    )


def _masses(options: argparse.Namespace, costs: Any) -> dict[str, Any]:
    """The masses and capacities that are given."""
    given = {name: getattr(options, name) for name in ("supply", "demand")}
    found = {name: transport.masses(text) for name, text in given.items() if text is not None}
    if options.pair_capacity is not None:
        found["pair_capacity"] = transport.capacities(options.pair_capacity, costs.shape)
    return found
