"""Proofs in files, and the second checker, in C: both accept true ones and refuse others."""

import functools
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

import gpumatch as gm
from gpumatch import certificates
from gpumatch.certificates.proof_text import lines_of

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

    def say(*files):
        done = subprocess.run(
            [program, *files], capture_output=True, text=True, timeout=60, check=False
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


MAKERS = {
    **dict.fromkeys(ASSIGNMENTS, assignment),
    "bottleneck": bottleneck,
    **dict.fromkeys(("masses", "bounds", "capacities"), flow),
    **dict.fromkeys(("cardinality", "weights", "more weights"), general),
}


@functools.cache
def solved(count):
    """Problems of all kinds with their results."""
    rng = np.random.default_rng(0)
    kinds = list(MAKERS.items())
    made = (make(rng, kind) for kind, make in itertools.islice(itertools.cycle(kinds), count))
    return [(A, result) for A, result in made if result.proven]


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


def check_refusals(second, tmp_path, count):
    """Both refuse so many corrupted proofs: whatever ours refuses, the second checker does, too."""
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
        assert status != 0, (told, changed, A)


def test_both_refuse_corrupted_proofs(second, tmp_path):
    check_refusals(second, tmp_path, 150)


@pytest.mark.long
def test_both_refuse_more_corrupted_proofs(second, tmp_path):
    check_refusals(second, tmp_path, 400)


# -- false claims that agree with themselves -------------------------------------------------------


def rewritten(path, **changes):
    """The text of a proof with other parts, as if a result had claimed them."""
    proof = certificates.load(path)
    parts = proof.parts | changes
    path.write_text("".join(lines_of(proof.problem, proof.shape, proof.sha256, parts)))
    return certificates.load(path)


C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
TRIANGLE_AND_TAIL = csr_array(
    (np.array([5, 6, 7, 1]), (np.array([0, 1, 0, 2]), np.array([1, 2, 2, 3]))), shape=(4, 4)
)
PATH = csr_array((np.array([3, 9, 3]), (np.arange(3), np.arange(1, 4))), shape=(4, 4))


def forged_duals(path):
    """A dual is too high by one, and what it takes away at its pair again gives the same total."""
    certificates.save(path, C, gm.assign(C))
    duals = certificates.load(path).row_dual
    rewritten(path, row_dual=duals + np.array([1, 0, 0]))
    return C


def forged_pairs(path):
    """A worse assignment, with its own total and gap."""
    certificates.save(path, C, gm.assign(C))
    rewritten(path, row_to_col=np.arange(3), col_to_row=np.arange(3), objective=6, gap=1)
    return C


def forged_threshold(path):
    """A cover of all rows touches whatever is better."""
    certificates.save(path, C, gm.assign(C, objective="bottleneck"))
    rewritten(path, threshold_rows=np.arange(3), threshold_cols=np.zeros(0, int))
    return C


def forged_bottleneck(path):
    """A worse bottleneck, whose threshold cover misses better pairs."""
    certificates.save(path, C, gm.assign(C, objective="bottleneck"))
    none = np.zeros(0, int)
    mates = {"row_to_col": np.arange(3), "col_to_row": np.arange(3)}
    rewritten(path, **mates, objective=4, threshold_rows=none, threshold_cols=none)
    return C


def forged_flow(path):
    """A flow of which a unit stays at home, with its own total and gap."""
    result = gm.transport(C - 3, [2, 1, 1], [1, 1, 2], cardinality="any")
    certificates.save(path, C - 3, result)
    proof = certificates.load(path)
    paid = (C - 3)[proof.row_ind, proof.col_ind]
    at = int(paid.argmin())
    kept = np.arange(paid.size) != at
    units = proof.flow_units - ~kept
    kept = units > 0
    rewritten(
        path, row_ind=proof.row_ind[kept], col_ind=proof.col_ind[kept], flow_units=units[kept],
        objective=result.objective - int(paid[at]), gap=-int(paid[at]),
    )  # fmt: skip
    return C - 3


def forged_mass(path):
    """A flow beyond what a column takes."""
    certificates.save(path, C, gm.transport(C, [1, 1, 1], [1, 1, 1]))
    rewritten(path, col_upper=np.array([0, 2, 1]))
    return C


def forged_load(path):
    """A column that takes more than it may, at no cost."""
    costs = np.zeros((2, 1), int)
    certificates.save(path, costs, gm.transport(costs, [1, 1], [1]))
    ends = {"row_ind": np.array([0, 1]), "col_ind": np.array([0, 0])}
    rewritten(path, flow_units=np.array([1, 1]), **ends)
    return costs


def forged_inside(path):
    """A pair of two vertices of the cover, in place of the two pairs that they could have."""
    edges = (np.array([0, 0, 1]), np.array([0, 1, 0]))
    costs = csr_array((np.zeros(3, int), edges), shape=(2, 2))
    certificates.save(path, costs, gm.assign(costs, cardinality="maximum"))
    mates = {"row_to_col": np.array([0, -1]), "col_to_row": np.array([0, -1])}
    rewritten(path, cover_rows=np.array([0]), cover_cols=np.array([0]), **mates)
    return costs


def forged_edges(path):
    """A smaller matching of a graph, with the set that proves the larger one."""
    certificates.save(path, PATH, gm.general.maximum_matching(PATH))
    rewritten(path, mate=np.array([-1, 2, 1, -1]))
    return PATH


def forged_weight(path):
    """A lighter matching, with its own total and gap."""
    certificates.save(path, PATH, gm.general.maximum_weight_matching(PATH))
    rewritten(path, mate=np.array([1, 0, 3, 2]), objective=6, gap=3)
    return PATH


def forged_cardinality(path):
    """The heaviest matching, which is not the largest."""
    certificates.save(path, PATH, gm.general.maximum_weight_matching(PATH))
    rewritten(path, cardinality="maximum")
    return PATH


def forged_sets(path):
    """Two odd sets that overlap."""
    G = TRIANGLE_AND_TAIL
    certificates.save(path, G, gm.general.maximum_weight_matching(G))
    proof = certificates.load(path)
    rewritten(
        path, set_vertices=np.array([0, 1, 2, 3]), set_begin=np.array([0, 1]),
        set_end=np.array([3, 4]), set_dual=np.append(proof.set_dual[:1], 0)[-2:],
    )  # fmt: skip
    return G


def forged_mates(path):
    """An unmatched column that names a row as its mate."""
    certificates.save(path, C[:2], gm.assign(C[:2]))
    col_to_row = certificates.load(path).col_to_row
    rewritten(path, col_to_row=np.where(col_to_row < 0, 0, col_to_row))
    return C[:2]


def forged_problem(path):
    """A proof of costs that differ where no pair is."""
    certificates.save(path, C, gm.assign(C))
    return C + np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]])


FORGERIES = (
    *(forged_mates, forged_problem, forged_load, forged_inside),
    *(forged_duals, forged_pairs, forged_threshold, forged_bottleneck, forged_flow, forged_mass),
    *(forged_edges, forged_weight, forged_cardinality, forged_sets),
)


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_both_refuse_forgeries(forge, second, tmp_path):
    text, file = tmp_path / "p.txt", tmp_path / "p.mtx"
    A = forge(text)
    with pytest.raises(certificates.CertificateError):
        certificates.check(text, A)
    write_problem(file, A)
    status, told = second(file, text)
    assert status == 1, told


def test_results_without_such_a_proof_are_named(tmp_path):
    C = np.eye(3)
    for result in (
        gm.k_best(C, 2),
        gm.possible_edges(C),
        gm.assign(C, objective="lexicographic"),
        gm.assign(np.stack([C, C])),
        gm.general.maximum_weight_matching(csr_array(C), algorithm="suitor"),
        gm.maximum_matching(csr_array(C), row_capacity=2),
    ):
        with pytest.raises(TypeError, match=f"no files of proofs for {type(result).__name__}"):
            certificates.save(tmp_path / "p.npz", C, result)


@pytest.mark.parametrize("form", ["symmetric", "dense", "one triangle"])
def test_the_second_checker_reads_other_forms(form, second, tmp_path):
    """A graph is the same one in each; zeros of a dense matrix are no edges."""
    lines = {
        "symmetric": "coordinate integer symmetric\n4 4 4\n2 1 5\n3 2 6\n3 1 7\n4 3 1\n",
        "dense": "array integer general\n4 4\n" + "\n".join("0570506076010010"),
        "one triangle": "coordinate integer general\n4 4 4\n1 2 5\n2 3 6\n1 3 7\n3 4 1\n",
    }
    text, file = tmp_path / "p.txt", tmp_path / "p.mtx"
    file.write_text(f"%%MatrixMarket matrix {lines[form]}")
    A = gm.io.read(file)
    for result in (gm.general.maximum_matching(A), gm.general.maximum_weight_matching(A)):
        certificates.save(text, A, result)
        assert second(file, text)[0] == 0
    if form != "one triangle":
        certificates.save(text, A, gm.maximum_matching(A))
        assert second(file, text)[0] == 0
    text.write_text(text.read_text().replace("end", "end more"))
    assert second(file, text)[0] == 2


def test_masses_are_those_that_are_given(second, tmp_path):
    """A flow's proof names its masses; both checkers compare them with others."""
    C = np.array([[4, 1], [2, 5]])
    text, file = tmp_path / "p.txt", tmp_path / "p.mtx"
    write_problem(file, C)
    for supply, demand in (([2, 1], [1, 2]), ([0.1, 0.7], [0.5, 0.3])):
        certificates.save(text, C, gm.transport(C, supply, demand))
        wrong = [supply[0], supply[1] + 1]
        assert certificates.check(text, C, supply=supply, demand=demand).gap == 0
        with pytest.raises(certificates.CertificateError, match="supply 1"):
            certificates.check(text, C, supply=wrong, demand=demand)
        for given, status in ((supply, 0), (wrong, 1)):
            masses = [tmp_path / "supply", tmp_path / "demand"]
            for path, numbers in zip(masses, (given, demand)):
                path.write_text(" ".join(map(repr, numbers)))
            assert second(file, text, *masses)[0] == status


def test_a_proof_is_loaded_as_it_was_saved(tmp_path):
    """By both forms, of every problem; its repr names it."""
    shown = set()
    for A, result in solved(28):
        proofs = []
        for ending in ("txt", "npz"):
            file = tmp_path / f"p.{ending}"
            certificates.save(file, A, result)
            proofs.append(certificates.load(file))
        one, other = proofs
        assert (one.problem, one.shape, one.sha256) == (other.problem, other.shape, other.sha256)
        assert str(one) == str(other)
        for name, part in one.parts.items():
            assert np.array_equal(part, other.parts[name]), name
        shown.add(one.problem)
    assert len(shown) == 6
