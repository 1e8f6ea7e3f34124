"""The SuiteSparse collection: where a matrix is looked for, what is downloaded and refused."""

from __future__ import annotations

import gzip
import hashlib
import io as bytesio
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from gpumatch import io
from gpumatch.io import collection
from tests.io.stored_files import PATTERN, SMALL, same, stored


def archive(*members):
    """A .tar.gz of (name, content) and of TarInfo members."""
    file = bytesio.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                header = member.tobuf()  # addfile wants what the header promises
                tar.fileobj.write(header)
                tar.offset += len(header)
            else:
                name, content = member
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, bytesio.BytesIO(content))
    return file.getvalue()


def special(kind, name="tiny/tiny.mtx", target="/etc/passwd"):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def sized(size, name="tiny/tiny.mtx"):
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Neither data folder nor cache; what would be downloaded comes from `nowhere`, by URL."""
    monkeypatch.delenv("GPUMATCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    site = {}

    def retrieve(url, output_file, pooch):
        if url not in site:
            raise ConnectionError(f"no route to {url}")
        Path(output_file).write_bytes(site[url])

    monkeypatch.setattr("pooch.core.choose_downloader", lambda url, **options: retrieve)
    return site


def sparse(content, name="tiny/tiny.mtx"):
    """A member of which only the parts that are no zeros are stored."""
    file = bytesio.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        entry.pax_headers = {
            "GNU.sparse.map": f"0,{len(content)}",
            "GNU.sparse.size": str(len(content)),
        }
        tar.addfile(entry, bytesio.BytesIO(content))
    return file.getvalue()


URL = "https://sparse.tamu.edu/MM/Group/tiny.tar.gz"


def test_downloads_once_into_the_cache(nowhere, tmp_path, monkeypatch):
    nowhere[URL] = archive(("tiny/tiny_b.mtx", b"1"), ("tiny/tiny.mtx", SMALL))
    matrix = io.suitesparse("Group/tiny")
    assert (tmp_path / "cache" / "gpumatch" / "Group" / "tiny.tar.gz").is_file()
    monkeypatch.setitem(sys.modules, "pooch", None)
    same(io.suitesparse("Group/tiny"), matrix)
    same(matrix, np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("folder", ["data", "data/matrices"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tiny.mtx", SMALL),
        ("tiny.mtx.gz", gzip.compress(SMALL)),
        ("tiny.tar.gz", archive(("tiny/tiny.mtx", SMALL))),
    ],
    ids=["plain", "gzip", "archive"],
)
def test_data_folder_comes_first(nowhere, tmp_path, monkeypatch, folder, name, content):
    nowhere[URL] = archive(("tiny/tiny.mtx", (PATTERN + "1 1 1\n1 1\n").encode()))
    assert io.suitesparse("Group/tiny").shape == (1, 1)
    (tmp_path / folder).mkdir(parents=True)
    stored(tmp_path / folder / name, content)
    monkeypatch.setenv("GPUMATCH_DATA", str(tmp_path / "data"))
    assert io.suitesparse("Group/tiny").shape == (2, 3)


def test_without_network_says_what_to_put_where(nowhere, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no route to") as failure:
        io.suitesparse("Group/tiny")
    assert f"put {URL} into {tmp_path / 'cache' / 'gpumatch' / 'Group'}" in str(failure.value)
    monkeypatch.setenv("GPUMATCH_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as failure:
        io.suitesparse("Group/tiny")
    assert f"put {URL} into {tmp_path}" in str(failure.value)
    assert "pip install" not in str(failure.value)


def test_without_pooch_says_what_to_put_where(nowhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(
        FileNotFoundError, match=r"pooch.*pip install 'gpumatch\[data\]'.*put https"
    ):
        io.suitesparse("Group/tiny")


@pytest.mark.parametrize(
    "name",
    [
        "tiny",
        "Group/",
        "/tiny",
        "../tiny",
        "Group/..",
        "a/b/c",
        "Group/tiny\n",
        "Gr oup/x",
        "Gröup/x",
        "",
    ],
    ids=ascii,
)
def test_name_must_be_group_and_name(nowhere, name):
    with pytest.raises(ValueError, match="not of the form Group/Name"):
        io.suitesparse(name)


MALICIOUS = {
    "escaping": ([("../tiny.mtx", SMALL)], "no member 'tiny/tiny.mtx'"),
    "absolute": ([("/tiny/tiny.mtx", SMALL)], "no member 'tiny/tiny.mtx'"),
    "only others": ([("a/a.mtx", SMALL), ("b/b.mtx", SMALL)], "no member 'tiny/tiny.mtx'"),
    "symbolic link": ([special(tarfile.SYMTYPE)], "not a regular file"),
    "hard link": ([special(tarfile.LNKTYPE)], "not a regular file"),
    "device": ([special(tarfile.CHRTYPE)], "not a regular file"),
    "fifo": ([special(tarfile.FIFOTYPE)], "not a regular file"),
    "folder": ([special(tarfile.DIRTYPE)], "not a regular file"),
    "oversized": ([sized(10**15)], "impossible size"),
    "truncated": ([("x", b"x" * 9000), sized(12000)], "unexpected end of data"),
    # From Python 3.14 on, tarfile takes such a header for the end of the archive.
    "negative size": (
        [sized(-1024, "x"), ("tiny/tiny.mtx", SMALL)],
        "impossible size|has no member",
    ),
    "the matrix's too": ([sized(-512)], "impossible size|has no member"),
    "no matrix": ([("tiny/tiny.mtx", b"<html>not found</html>")], "Missing banner"),
    "bomb": ([("x", b"\0" * 2 * 10**6), ("tiny/tiny.mtx", SMALL)], "more than max_bytes"),
}


@pytest.mark.parametrize(("members", "says"), MALICIOUS.values(), ids=MALICIOUS)
def test_malicious_archive(nowhere, members, says):
    nowhere[URL] = archive(*members)
    with pytest.raises(ValueError, match=says) as failure:
        io.suitesparse("Group/tiny", max_bytes=10**6)
    assert "tiny.tar.gz: " in str(failure.value)


def test_sparse_member(nowhere):
    nowhere[URL] = sparse(SMALL)
    with pytest.raises(ValueError, match=r"tiny.tar.gz: .* has an impossible size"):
        io.suitesparse("Group/tiny")


def test_first_of_two_members_of_the_name(nowhere):
    other = (PATTERN + "1 1 1\n1 1\n").encode()
    nowhere[URL] = archive(("tiny/tiny.mtx", SMALL), ("tiny/tiny.mtx", other))
    assert io.suitesparse("Group/tiny").shape == (2, 3)


def test_what_is_published_is_checked(nowhere, monkeypatch):
    nowhere[URL] = archive(("tiny/tiny.mtx", SMALL))
    published = {"rows": 2, "columns": 3, "entries": 2}
    monkeypatch.setattr(collection, "manifest", lambda: {"Group/tiny": published})
    assert io.suitesparse("Group/tiny").nnz == 2
    for key in published:
        monkeypatch.setattr(
            collection, "manifest", lambda key=key: {"Group/tiny": {**published, key: 7}}
        )
        with pytest.raises(ValueError, match=r"\(2, 3, 2\), but those published of Group/tiny"):
            io.suitesparse("Group/tiny")


def test_hash_of_a_download_is_checked(nowhere, tmp_path, monkeypatch):
    nowhere[URL] = archive(("tiny/tiny.mtx", SMALL))
    known = {"rows": 2, "columns": 3, "entries": 2, "sha256": "0" * 64}
    monkeypatch.setattr(collection, "manifest", lambda: {"Group/tiny": known})
    with pytest.raises(ValueError, match="hash of downloaded file"):
        io.suitesparse("Group/tiny")
    assert not (tmp_path / "cache" / "gpumatch" / "Group" / "tiny.tar.gz").exists()
    known["sha256"] = hashlib.sha256(nowhere[URL]).hexdigest()
    assert io.suitesparse("Group/tiny").nnz == 2


def test_checkout_is_searched(nowhere):
    assert io.suitesparse("HB/west0067").shape == (67, 67)


def test_installed_manifest_comes_first(monkeypatch, tmp_path):
    stored(tmp_path / "_manifest.toml", '["Group/tiny"]\nrows = 2\n')
    monkeypatch.setattr(collection, "_PACKAGE", tmp_path)
    io.manifest.cache_clear()
    try:
        assert io.manifest() == {"Group/tiny": {"rows": 2}}
    finally:
        monkeypatch.undo()
        io.manifest.cache_clear()
    assert "HB/west0067" in io.manifest()


def test_the_cache_is_in_the_home_folder_if_no_other_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in (lambda: monkeypatch.setenv("XDG_CACHE_HOME", ""),
                  lambda: monkeypatch.delenv("XDG_CACHE_HOME")):  # fmt: skip
        unset()
        assert collection._cache() == tmp_path / ".cache" / "gpumatch"


def test_only_an_unknown_name_is_asked_about(nowhere, monkeypatch):
    known = {"AVeryLongGroup/tiny": {}, "AVeryLongGroup/teeny": {}}
    monkeypatch.setattr(collection, "manifest", lambda: known)
    with pytest.raises(ValueError, match=r"did you mean AVeryLongGroup/tiny\?"):
        io.suitesparse("tiny")
    with pytest.raises(FileNotFoundError, match=r"did you mean AVeryLongGroup/tiny\?"):
        io.suitesparse("AVeryLongGroup/tinny")
    with pytest.raises(FileNotFoundError) as failure:
        io.suitesparse("AVeryLongGroup/teeny")
    assert "did you mean" not in str(failure.value)
