"""Files that are no proofs are bad input, named by a ValueError."""

import zipfile

import numpy as np
import pytest

import gpumatch as gm
from gpumatch import certificates
from gpumatch.certificates.proof_arrays import write_arrays
from gpumatch.certificates.proof_text import lines_of
from tests.certificates.proof_problems import PATH, C


def array_file(text, words=b""):
    """An array of an .npz file, as its head says."""
    head = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + words


HOSTILE = {
    "no array": {"row_dual": b"hello"},
    "a large array": {
        "row_dual.npy": array_file("{'descr': '<i8', 'fortran_order': False, 'shape': (10**18,)}"),
        "col_dual.npy": array_file(
            "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000000,)}"
        ),
    },
    "no head": {"row_dual.npy": array_file("{[]: 1}")},
    "an open head": {"row_dual.npy": array_file("(" * 99)},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_archives_that_are_none_are_bad_input(name, tmp_path):
    """Whatever NumPy raises becomes a ValueError that names the file."""
    file = tmp_path / "p.npz"
    certificates.save(file, C, gm.assign(C))
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for part in HOSTILE[name]:
        parts.pop(f"{part.removesuffix('.npy')}.npy")
    with zipfile.ZipFile(file, "w") as archive:
        for part, words in (parts | HOSTILE[name]).items():
            archive.writestr(part, words)
    with pytest.raises(ValueError, match=r"p\.npz"):
        certificates.load(file)


def test_offsets_that_overflow_are_refused(tmp_path):
    """Their differences as int64 would be positive."""
    file, most = tmp_path / "p.txt", 2**63 - 1
    certificates.save(file, PATH, gm.possible_edges(PATH))
    record = certificates.load(file).record
    offsets = np.array([0, most, -most - 1, -1, record.parts["indices"].size])
    for changed in (
        record._replace(parts=record.parts | {"indptr": offsets}),
        record._replace(parts=record.parts | {"indptr": offsets[:0]}, shape=(-1, 4)),
    ):
        file.write_text("".join(lines_of(changed)))
        with pytest.raises(ValueError, match=r"indptr|shape"):
            certificates.load(file)


def test_a_batch_has_one_kind_of_proofs_and_no_batch(tmp_path):
    file = tmp_path / "p.txt"
    certificates.save(file, [C], gm.assign([C]))
    record = certificates.load(file).record
    (one,) = record.parts["problems"]
    matching = one._replace(problem="matching")
    for problems, told in (
        *(([record], "is a batch"), ([one, matching], "several kinds")),
        ([matching], "no batches of problem matching"),
    ):
        changed = record._replace(parts={"problems": problems})
        for path, write in (
            (file, lambda path, record: path.write_text("".join(lines_of(record)))),
            (tmp_path / "p.npz", write_arrays),
        ):
            write(path, changed)
            with pytest.raises(ValueError, match=told):
                certificates.load(path)
