"""Proofs in files, and the second checker, in C: both accept true ones and refuse others."""

import functools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import gpumatch as gm
from gpumatch import certificates

SOURCE = Path(certificates.__file__).parent / "standalone" / "check.c"
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """The second checker: what it says of a problem and a proof, by its exit status."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    program = tmp_path_factory.mktemp("standalone") / "check"
    flags = "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror"
    subprocess.run([COMPILER, *flags, "-o", program, SOURCE, "-lm"], check=True)

    def say(problem, proof):
        done = subprocess.run(
            [program, problem, proof], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode in (0, 1, 2), done
        return done.returncode, done.stdout

    return say


def write_problem(path, A):
    """A Matrix Market file from which no number is rounded."""
    field = "integer" if A.dtype.kind == "i" else "real"
    if isinstance(A, np.ndarray):
        form, sizes, lines = "array", A.shape, map(repr, A.T.ravel().tolist())
    else:
        A = A.tocoo()
        form, sizes = "coordinate", (*A.shape, A.nnz)
        entries = zip(*(part.tolist() for part in (A.row + 1, A.col + 1, A.data)))
        lines = (" ".join(map(repr, entry)) for entry in entries)
    head = f"%%MatrixMarket matrix {form} {field} general\n% a comment\n"
    path.write_text(head + " ".join(map(str, sizes)) + "\n" + "\n".join(lines) + "\n")


KINDS = ("full", "maximum", "any", "limit", "limits", "dearest", "matching")


def problem(rng, kind):
    """A small problem, and its proven result."""
    shape = rng.integers(1, 9, 2)
    if kind in ("full", "dearest") or rng.random() < 0.3:
        values = rng.integers(-9, 10, shape)
    else:
        density = rng.random()
        values = np.where(rng.random(shape) < density, rng.integers(-9, 10, shape), 0)
    if rng.random() < 0.5:
        values = values * rng.choice([0.1, 1e-300, 1e300, 1.0]) * rng.uniform(0.5, 1, shape)
    if kind == "matching":
        A = csr_array(values)
        return A, gm.maximum_matching(A)
    is_sparse = rng.random() < 0.5 and kind not in ("full", "dearest")
    C = coo_array(values).tocsr() if is_sparse else values
    limit = float(np.median(values)) if values.dtype.kind == "f" else int(np.median(values))
    options = {
        "full": {},
        "dearest": {"maximize": True},
        "maximum": {"cardinality": "maximum", "cost_limit": limit if rng.random() < 0.5 else None},
        "any": {"cardinality": "any", "maximize": bool(rng.random() < 0.5)},
        "limit": {"cost_limit": limit, "cardinality": "any"},
        "limits": {
            "cost_limit": limit + rng.integers(-2, 3, shape[0]) * abs(limit / 4 + 1),
            "cardinality": "any",
            "maximize": bool(rng.random() < 0.5),
        },
    }[kind]
    return C, gm.assign(C, backend="cpu", threads=1, **options)


@functools.cache
def solved(count):
    """Problems of all kinds with their results."""
    rng = np.random.default_rng(0)
    return [problem(rng, KINDS[k % len(KINDS)]) for k in range(count)]


def check_true_proofs(second, tmp_path, cases):
    for k, (A, result) in enumerate(cases):
        text, binary, file = (tmp_path / name for name in ("p.txt", "p.npz", "p.mtx"))
        certificates.save(text, A, result)
        certificates.save(binary, A, result)
        certificates.check(text, A)
        certificates.check(binary, A)
        write_problem(file, A)
        status, told = second(file, text)
        assert status == 0, (k, told, text.read_text())


def test_both_accept_true_proofs(second, tmp_path):
    check_true_proofs(second, tmp_path, solved(210))


@pytest.mark.long
def test_both_accept_more_true_proofs(second, tmp_path):
    check_true_proofs(second, tmp_path, solved(2_000))


def corrupted(rng, text):
    """The text with one word changed."""
    lines = text.split("\n")
    at = rng.integers(4, len(lines) - 2)
    parts = lines[at].split(" ")
    place = rng.integers(len(parts))
    word = parts[place]
    try:
        old = float.fromhex(word) if "x" in word else int(word)
    except ValueError:
        new = rng.choice(["any", "full", "maximum", "none", "1", "0x1p+0"]).item()
    else:
        change = rng.choice([1, -1, 2, -3]).item()
        new = (
            (old * (1 + change / 8) + change / 1024).hex()
            if isinstance(old, float)
            else str(old + change)
        )
    parts[place] = new
    lines[at] = " ".join(parts)
    return "\n".join(lines)


def refusals(second, tmp_path, count):
    """How many corrupted proofs ours has refused; the second checker must refuse them, too."""
    rng, refused = np.random.default_rng(1), 0
    text, file = tmp_path / "p.txt", tmp_path / "p.mtx"
    cases = solved(210)
    while refused < count:
        A, result = cases[rng.integers(len(cases))]
        certificates.save(text, A, result)
        changed = corrupted(rng, text.read_text())
        text.write_text(changed)
        try:
            certificates.check(text, A)
        except (ValueError, TypeError, certificates.CertificateError):
            refused += 1
        else:
            continue
        write_problem(file, A)
        status, told = second(file, text)
        assert status != 0, (told, changed, A, result.cost_limit if hasattr(result, "gap") else "")
    return refused


def test_both_refuse_corrupted_proofs(second, tmp_path):
    refusals(second, tmp_path, 150)


@pytest.mark.long
def test_both_refuse_more_corrupted_proofs(second, tmp_path):
    refusals(second, tmp_path, 400)


def test_results_without_such_a_proof_are_named(tmp_path):
    C = np.eye(3)
    for result in (
        gm.k_best(C, 2),
        gm.possible_edges(C),
        gm.assign(C, objective="lexicographic"),
        gm.assign(C, objective="bottleneck"),
    ):
        with pytest.raises(TypeError, match=f"no files of proofs for {type(result).__name__}"):
            certificates.save(tmp_path / "p.npz", C, result)
