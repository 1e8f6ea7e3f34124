"""Count true proofs that are accepted, and corrupted ones that are refused, by both checkers.

``python -m tests.certificates.proof_count --true 10000 --corrupted 1000 --seed 3``

An assertion stops it at the first proof on which the checkers are wrong or differ.
"""

import argparse
import itertools
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from tests.certificates.proof_problems import (
    MAKERS,
    UNREAD,
    check_corrupted,
    check_true,
    endless,
    second_checker,
)


def count_true(second, folder, seed, count, makers):
    """Check so many true proofs; how many of each problem there were."""
    found = Counter()
    for A, result in itertools.islice(endless(seed, makers), count):
        check_true(second, folder, A, result, is_read=makers is MAKERS)
        found[type(result).__name__] += 1
    return found


def count_corrupted(second, folder, seed, count, makers):
    """Spoil proofs until so many are refused; how many of each problem, and how many were tried."""
    rng, found = np.random.default_rng(seed), Counter()
    for tried, (A, result) in enumerate(endless(seed, makers), 1):
        if check_corrupted(second, folder, rng, A, result, is_read=makers is MAKERS):
            found[type(result).__name__] += 1
        if found.total() == count:
            return found, tried
    raise AssertionError("there are always more")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--true", "--corrupted", "--seed"):
        parser.add_argument(name, type=int, default=0)
    wish = vars(parser.parse_args())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        second = second_checker(folder)
        for makers, by in ((MAKERS, "both"), (UNREAD, "ours alone")):
            accepted = count_true(second, folder, wish["seed"], wish["true"], makers)
            print(f"{wish['true']} true proofs accepted by {by}: {dict(accepted)}", flush=True)
            if wish["corrupted"]:
                args = wish["seed"] + 1, wish["corrupted"], makers
                refused, tried = count_corrupted(second, folder, *args)
                of = f"of {tried} corrupted proofs, {wish['corrupted']} refused by {by}"
                print(f"{of}: {dict(refused)}", flush=True)


if __name__ == "__main__":
    main()
