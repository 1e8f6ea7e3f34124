"""``gpumatch check``: a proof in a file, checked against its problem."""

from __future__ import annotations

import argparse
from typing import Any

from gpumatch.cli import running

PROVEN, REFUSED = 0, 1


def add_to(commands: Any) -> None:
    text = "check that a file of `--proof` proves its result"
    description = (
        f"{text[0].upper()}{text[1:]}. Exit codes: 0 it does, 1 it does not, 2 bad input or usage."
    )
    check = commands.add_parser("check", help=text, description=description, allow_abbrev=False)
    check.add_argument("proof", metavar="FILE", help="the proof (.txt or .npz)")
    running.add_source(check, "the matrix that was matched, or the costs that were assigned")
    check.set_defaults(command=_check)


def _check(options: argparse.Namespace) -> int:
    from gpumatch import certificates

    proof = certificates.load(options.proof)
    read = running.read_matrix if proof.problem == "matching" else running.read_costs
    problem = read(options)
    try:
        proof.check_problem(problem)
        certificate = certificates.verify(problem, proof)
    except certificates.CertificateError as error:
        print(f"refused: {error}")
        return REFUSED
    print(certificate)
    return PROVEN
