"""Problems with proven results, of each kind that has files of proofs, and what spoils a file."""

import functools
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

import gpumatch as gm
from gpumatch import certificates
from gpumatch.certificates.proof_text import lines_of

SOURCE = Path(certificates.__file__).parent / "standalone" / "check.c"
COMPILER = shutil.which("cc") or shutil.which("gcc")

C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
PATH = csr_array((np.array([3, 9, 3]), (np.arange(3), np.arange(1, 4))), shape=(4, 4))


def second_checker(folder):
    """The second checker: what it says of files and options, and its exit status."""
    program = folder / "check"
    flags = "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror"
    subprocess.run([COMPILER, *flags, "-o", program, SOURCE, "-lm"], check=True)

    def say(*words):
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode in (0, 1, 2), done
        return done.returncode, done.stdout

    return say


def rewritten(path, **changes):
    """The text of a proof with other parts, as if a result had claimed them."""
    proof = certificates.load(path)
    record = proof.record._replace(parts=proof.parts | changes)
    path.write_text("".join(lines_of(record)))
    return certificates.load(path)


def write_problem(folder, A):
    """Files from which no number is rounded; the words that name them to the second checker."""
    if not isinstance(A, gm.PointCosts):
        write_matrix(folder / "p.mtx", A)
        return [folder / "p.mtx"]
    words = ["--points", folder / "x.mtx", folder / "y.mtx"]
    for path, side in zip(words[1:], (A.X, A.Y)):
        write_matrix(path, side)
    if A.row_offset is not None:
        words += ["--offsets", folder / "r.txt", folder / "s.txt"]
        for path, numbers in zip(words[-2:], (A.row_offset, A.col_offset)):
            path.write_text(" ".join(map(repr, numbers.tolist())))
    return words


def write_matrix(path, A):
    """A Matrix Market file."""
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


ASSIGNMENTS = ("full", "maximum", "any", "limit", "limits", "dearest", "matching")


def assignment(rng, kind):
    """A small assignment or matching: costs or graph, and its proven result."""
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


def costs_of(rng, shape, *, density=1.0):
    """Integers or floats, dense or sparse."""
    values = rng.integers(-9, 10, shape)
    if rng.random() < 0.5:
        values = values * rng.choice([0.1, 1e-300, 1e300, 1.0]) * rng.uniform(0.5, 1, shape)
    if density == 1.0 and rng.random() < 0.5:
        return values
    is_there = rng.random(shape) < density
    rows, cols = is_there.nonzero()
    return csr_array((values[rows, cols], (rows, cols)), shape=shape)


def bottleneck(rng, _):
    shape = rng.integers(1, 9, 2)
    cardinality = rng.choice(["full", "maximum"]).item()
    C = costs_of(rng, shape, density=1.0 if cardinality == "full" else rng.random())
    options = {"cardinality": cardinality, "maximize": bool(rng.random() < 0.5)}
    return C, gm.assign(C, objective="bottleneck", backend="cpu", **options)


def masses(rng, length, is_float):
    given = rng.integers(0, 7, length)
    return given * rng.choice([0.25, 0.1, 3.7]) if is_float else given


def flow(rng, kind):
    """A small transport: ``"capacities"`` has some for the pairs."""
    shape = rng.integers(1, 7, 2)
    cardinality = rng.choice(["full", "maximum", "any"]).item()
    if kind == "capacities":
        cardinality = rng.choice(["maximum", "any"]).item()
    C = costs_of(rng, shape, density=1.0 if cardinality == "full" else rng.random())
    is_float = bool(rng.random() < 0.5)
    supply, demand = (masses(rng, length, is_float) for length in shape)
    if kind == "bounds" and not is_float:
        cardinality, demand = "full", (demand // 2, np.maximum(demand, 1) + supply.sum())
        supply = np.maximum(supply, demand[0].sum())
        C = C if isinstance(C, np.ndarray) else np.arange(shape.prod()).reshape(shape) % 7
    options = {"cardinality": cardinality, "maximize": bool(rng.random() < 0.5)}
    if cardinality != "full" and rng.random() < 0.3:
        options["cost_limit"] = 2.5 if rng.random() < 0.5 else 1
    if kind == "capacities":
        most = rng.integers(0, 4, shape)
        if rng.random() < 0.3:
            most = 2
        elif not isinstance(C, np.ndarray) and rng.random() < 0.5:
            most = rng.integers(0, 4, C.nnz)
        options["pair_capacity"] = most
    return C, gm.transport(C, supply, demand, backend="cpu", **options)


def general(rng, kind):
    """A small graph, stored in one triangle or in both."""
    n = int(rng.integers(2, 12))
    rows, cols = np.triu(rng.random((n, n)) < rng.random(), 1).nonzero()
    values = rng.integers(-9 if rng.random() < 0.5 else 1, 10, rows.size)
    if rng.random() < 0.5:
        values = values * rng.choice([0.1, 1e-300, 1e300, 1.0]) * rng.uniform(0.5, 1, rows.size)
    ends = (rows, cols) if rng.random() < 0.5 else (cols, rows)
    G = csr_array((values, ends), shape=(n, n))
    if rng.random() < 0.5:
        G = (G + G.T).tocsr()
    if kind == "cardinality":
        return G, gm.general.maximum_matching(G)
    options = {"cardinality": rng.choice(["any", "maximum"]).item()}
    options["maximize"] = bool(rng.random() < 0.7)
    result = gm.general.maximum_weight_matching(G, **options)
    if 2 * result.size == n and rng.random() < 0.7:
        options["cardinality"] = "perfect"
        result = gm.general.maximum_weight_matching(G, **options)
    return G, result


METRICS = "sqeuclidean", "euclidean", "cityblock", "chebyshev"


def points(rng, kind):
    """Distances of few points, with ties, at every scale, with offsets or without."""
    shape, width = rng.integers(1, 8, 2), int(rng.integers(1, 5))
    X, Y = (rng.normal(0, 1, (count, width)) for count in shape)
    if rng.random() < 0.5:
        X, Y = np.round(2 * X), np.round(2 * Y)
    scale = rng.choice([1.0, 0.1, 1e6] + [1e-170, 1e150] * (kind != "points' flow"))
    given = {"metric": rng.choice(METRICS).item()}
    if rng.random() < 0.3:
        given |= {"row_offset": rng.normal(0, 1, shape[0]), "col_offset": np.ones(shape[1])}
    C = gm.PointCosts(X * scale, Y * scale, **given)
    options = {"maximize": bool(rng.random() < 0.3)}
    if kind == "points' bottleneck":
        options["cardinality"] = rng.choice(["full", "maximum"]).item()
        return C, gm.assign(C, objective="bottleneck", **options)
    options["cardinality"] = rng.choice(["full", "maximum", "any"]).item()
    if options["cardinality"] != "full" and rng.random() < 0.5:
        rows, cols = rng.integers(0, C.shape[0], 3), rng.integers(0, C.shape[1], 3)
        options["cost_limit"] = float(np.median(C.at(rows, cols)))
    if kind == "points":
        return C, gm.assign(C, backend="cpu", threads=1, **options)
    supply, demand = (masses(rng, length, bool(rng.random() < 0.5)) for length in shape)
    return C, gm.transport(C, supply, demand, backend="cpu", **options)


def ranking(rng, kind):
    """The cheapest assignments; those of a batch if that is asked for."""
    shape = rng.integers(1, 6, 2)
    options = {"maximize": bool(rng.random() < 0.3), "proof": True}
    if rng.random() < 0.3:
        options["cost_limit"] = 2
    if kind == "rankings":
        problems = [costs_of(rng, shape) for _ in range(3)]
        return problems, gm.k_best(problems, 3, **options)
    C = costs_of(rng, shape)
    return C, gm.k_best(C, int(rng.integers(1, 7)), **options)


def lexicographic(rng, _):
    C = costs_of(rng, rng.integers(1, 7, 2))
    return C, gm.assign(C, objective="lexicographic", maximize=bool(rng.random() < 0.3))


def optima(rng, kind):
    """The pairs of optima, or nearly so, and the edges of maximum matchings."""
    shape = rng.integers(1, 7, 2)
    if kind == "edges":
        A = csr_array(rng.random(shape) < 0.4)
        return A, (gm.possible_edges if rng.random() < 0.5 else gm.forced_edges)(A)
    C = costs_of(rng, shape)
    a = gm.assign(C, cardinality=rng.choice(["full", "any"]).item())
    return C, gm.alternatives(C, a, within=rng.choice([0, 1]).item())


def batch(rng, kind):
    count, shape = int(rng.integers(0, 4)), rng.integers(1, 5, 2)
    problems = [costs_of(rng, rng.integers(1, 5, 2)) for _ in range(count)]
    if kind == "batch":
        return problems, gm.assign(problems, cardinality="maximum")
    if kind == "clouds":
        X, Y = (rng.random((3, size, 2)) for size in shape)
        C = gm.PointCosts.batch(X, Y, rng.choice([*METRICS, "cosine"]).item())
        return C, gm.assign(C)
    C = rng.integers(0, 9, (3, *shape))
    total = int(shape.prod())
    return C, gm.transport(
        C, np.full(shape[0], total // shape[0]), np.full(shape[1], total // shape[1])
    )


MAKERS = {
    **dict.fromkeys(ASSIGNMENTS, assignment),
    "bottleneck": bottleneck,
    **dict.fromkeys(("masses", "bounds", "capacities"), flow),
    **dict.fromkeys(("cardinality", "weights", "more weights"), general),
    **dict.fromkeys(("points", "points' bottleneck", "points' flow"), points),
}
UNREAD = {
    **dict.fromkeys(("ranking", "rankings"), ranking),
    "lexicographic": lexicographic,
    **dict.fromkeys(("alternatives", "edges"), optima),
    **dict.fromkeys(("batch", "clouds", "flows"), batch),
}
"""Those that the second checker does not check."""


@functools.cache
def solved(count, *, are_unread=False):
    """Problems of all kinds with their results."""
    return list(itertools.islice(endless(0, UNREAD if are_unread else MAKERS), count))


def endless(seed, makers):
    """Yield problems, of one kind after the other, whose results are proven."""
    rng = np.random.default_rng(seed)
    for kind, make in itertools.cycle(makers.items()):
        A, result = make(rng, kind)
        if np.all(getattr(result, "proven", True)):
            yield A, result


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


def check_true(second, folder, A, result, *, is_read=True):
    """Ours accepts both forms of a true proof, and so does the second checker, if it reads it."""
    text, binary = folder / "p.txt", folder / "p.npz"
    for file in (text, binary):
        certificates.save(file, A, result)
        certificates.check(file, A)
    if is_read:
        status, told = second(*write_problem(folder, A), text)
        assert status == 0, (told, text.read_text())


def check_corrupted(second, folder, rng, A, result, *, is_read=True):
    """Spoil a proof; True if ours refuses it, and then so does the second checker."""
    text = folder / "p.txt"
    certificates.save(text, A, result)
    changed = corrupted(rng, text.read_text())
    text.write_text(changed)
    try:
        certificates.check(text, A)
    except (ValueError, TypeError, certificates.CertificateError):
        if is_read:
            status, told = second(*write_problem(folder, A), text)
            assert status != 0, (told, changed, A)
        return True
    return False
