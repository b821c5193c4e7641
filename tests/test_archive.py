# SPDX-License-Identifier: BSD-3-Clause
"""Model files: what is written comes back, and nothing else gets in."""

import hashlib
import io
import json
import os
import stat
import struct
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from adiabat import archive
from adiabat.archive import (
    FORMAT_NAME,
    FORMAT_VERSION,
    pack_archive,
    read_archive,
    unpack_archive,
    write_archive,
)
from adiabat.errors import ModelFileError

MANIFEST = {"estimator": "SVC", "C": 10.0, "classes": ["good", "bäd"], "nested": {"a": [1, None]}}


def some_arrays():
    rng = np.random.default_rng(0)
    return {
        "X": rng.normal(size=(4, 3)),
        "X.fortran": np.asfortranarray(rng.normal(size=(2, 3))),
        "flags": np.array([True, False]),
        "ids": np.array([3, 1, 2]),
        "names": np.array(["a", "β"]),
        "raw": np.array([b"x", b"yz"]),
        "empty": np.empty((0, 5)),
        "scalar": np.array(2.5),
    }


def assert_same(got, expected):
    assert got.keys() == expected.keys()
    for name, array in expected.items():
        assert got[name].dtype == array.dtype
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.tobytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.adiabat"


@pytest.fixture
def saved(path):
    write_archive(path, MANIFEST, some_arrays())
    return path


def test_what_is_written_comes_back(saved):
    manifest, arrays = read_archive(saved)
    assert manifest == MANIFEST
    assert_same(arrays, some_arrays())
    assert all(array.flags.writeable for array in arrays.values())
    assert arrays["X.fortran"].flags.f_contiguous
    assert read_archive(str(saved))[0] == MANIFEST


def test_an_archive_without_arrays(path):
    write_archive(path, {}, {})
    assert read_archive(path) == ({}, {})


@given(
    array=hnp.arrays(
        dtype=st.one_of(
            hnp.boolean_dtypes(),
            hnp.integer_dtypes(endianness="?"),
            hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
            hnp.unicode_string_dtypes(endianness="?"),
            hnp.byte_string_dtypes(),
        ),
        shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_every_plain_array_comes_back(array, tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "m"
    write_archive(path, {}, {"a": array})
    assert_same(read_archive(path)[1], {"a": array})


def test_strided_and_large_arrays_come_back(path):
    base = np.arange(400_000.0).reshape(500, 800)
    arrays = {"big": base, "slice": base[::3, 5:9], "turned": base.T}
    write_archive(path, {}, arrays)
    got = read_archive(path)[1]
    for name, array in arrays.items():
        np.testing.assert_array_equal(got[name], array)


def test_the_same_content_gives_the_same_bytes(saved, tmp_path):
    again = tmp_path / "again"
    write_archive(again, dict(reversed(MANIFEST.items())), dict(reversed(some_arrays().items())))
    assert again.read_bytes() == saved.read_bytes()


def test_any_zip_tool_can_look_inside(saved):
    with zipfile.ZipFile(saved) as z:
        assert z.testzip() is None
        document = json.loads(z.read("manifest.json"))
        member = z.read("X.npy")
    assert document["format"] == FORMAT_NAME
    assert document["version"] == FORMAT_VERSION
    assert document["arrays"]["X"]["sha256"] == hashlib.sha256(member).hexdigest()
    np.testing.assert_array_equal(np.load(io.BytesIO(member)), some_arrays()["X"])


# what cannot be written


@pytest.mark.parametrize(
    ("manifest", "error"),
    [
        ({"x": float("nan")}, ValueError),
        ({"x": [float("inf")]}, ValueError),
        ({"x": {1: 2}}, TypeError),
        ({"x": np.int64(3)}, TypeError),
        ({"x": object()}, TypeError),
        ({"x": "y" * (1 << 26)}, ValueError),
    ],
)
def test_a_manifest_that_json_would_change_is_refused(path, manifest, error):
    with pytest.raises(error, match="manifest"):
        write_archive(path, manifest, {})
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "array",
    [
        np.array([object()]),
        np.array([1 + 2j]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(2, [("a", "f8")]),
        np.zeros(2, np.longdouble),
        np.zeros(2, "V4"),
    ],
    ids=lambda a: str(a.dtype),
)
def test_an_array_that_is_not_plain_is_refused(path, array):
    if array.dtype == np.float64:
        pytest.skip("long double is double here")
    with pytest.raises(TypeError, match="dtype"):
        write_archive(path, {}, {"a": array})


@pytest.mark.parametrize("name", ["", "../a", "a/b", "1a", "a b", "ä", "a" * 101, 3])
def test_a_name_that_is_not_plain_is_refused(path, name):
    with pytest.raises(ValueError, match="array name"):
        write_archive(path, {}, {name: np.ones(1)})


# all or nothing


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(saved, monkeypatch, step):
    before = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk is full")

    monkeypatch.setattr(archive.os, step, fail)
    with pytest.raises(OSError, match="disk is full"):
        write_archive(saved, {"new": True}, {})
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_write_that_fails_at_any_point_leaves_the_old_file(saved, monkeypatch, error):
    before = saved.read_bytes()
    write = archive._Hashed.write
    for k in range(1000):
        calls = iter(range(1000))

        def fail_at_k(self, data, calls=calls, k=k):
            if next(calls) == k:
                raise error("stop")
            return write(self, data)

        monkeypatch.setattr(archive._Hashed, "write", fail_at_k)
        try:
            write_archive(saved, {"new": True}, some_arrays())
        except error:
            assert saved.read_bytes() == before
            assert list(saved.parent.iterdir()) == [saved]
        else:
            break
    assert k > len(some_arrays())
    assert read_archive(saved)[0] == {"new": True}


def test_a_missing_folder_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_archive(tmp_path / "none" / "m", {}, {})
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "none")


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_kept(saved, tmp_path):
    os.chmod(saved, 0o640)
    link = tmp_path / "link"
    link.symlink_to(saved)
    write_archive(link, {"new": True}, {})
    assert link.is_symlink()
    assert read_archive(saved)[0] == {"new": True}
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640
    fresh = tmp_path / "fresh"
    umask = os.umask(0o022)
    try:
        write_archive(fresh, {}, {})
    finally:
        os.umask(umask)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600  # it holds training rows


def test_a_relative_path_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_archive("m", MANIFEST, {})
    assert read_archive("m")[0] == MANIFEST


# damage


def read_damaged(path, data):
    """None if the bytes are refused, else the content; any other error is a failure."""
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile and NumPy may warn before they raise
            return read_archive(path)
    except ModelFileError as error:
        assert repr(str(path)) in str(error)
        return None


def small_archive(path):
    manifest, arrays = {"C": 1.5}, {"a": np.array([1.0, -2.0]), "s": np.array(["x"])}
    write_archive(path, manifest, arrays)
    return manifest, arrays, path.read_bytes()


def header_positions(path):
    """Where the zip keeps what is not content: dates, versions and attributes of its members."""
    data, positions = path.read_bytes(), set()
    with zipfile.ZipFile(path) as z:
        for info in z.infolist():
            positions |= set(range(info.header_offset, info.header_offset + 30))
        entry = z.start_dir
        for info in z.infolist():
            assert data[entry : entry + 4] == b"PK\x01\x02"
            positions |= set(range(entry, entry + 46))
            entry += 46 + len(info.filename)
    return positions | set(range(entry, entry + 22))


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80, 0xFF])
def test_every_changed_byte_is_detected_or_harmless(path, mask):
    manifest, arrays, data = small_archive(path)
    headers = header_positions(path)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= mask
        got = read_damaged(path, bytes(damaged))
        if got is not None:
            # Never a byte of an array, of the manifest, of a name or of the seal.
            assert position in headers
            assert got[0] == manifest
            assert_same(got[1], arrays)


def test_every_truncation_is_detected(path):
    data = small_archive(path)[2]
    for length in range(len(data)):
        assert read_damaged(path, data[:length]) is None


def test_foreign_bytes_around_the_content_are_detected(path):
    data = small_archive(path)[2]
    for damaged in (b"#!/bin/sh\n" + data, data + b"\0", data + data, b"\0" * 100 + data):
        assert read_damaged(path, damaged) is None


@given(st.data())
def test_bytes_moved_about_are_detected_or_harmless(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("archive") / "m"
    manifest, arrays, content = small_archive(path)
    damaged = bytearray(content)
    places = st.integers(0, len(content))
    for _ in range(data.draw(st.integers(1, 3))):
        start, length, target = data.draw(places), data.draw(st.integers(1, 64)), data.draw(places)
        piece = data.draw(st.one_of(st.binary(max_size=16), st.just(content[start:][:length])))
        stop = target + data.draw(st.integers(0, 64))
        damaged[target:stop] = piece
    got = read_damaged(path, bytes(damaged))
    if got is not None:
        assert got[0] == manifest
        assert_same(got[1], arrays)


@given(st.binary(max_size=300))
def test_any_other_file_is_refused(tmp_path_factory, data):
    assert read_damaged(tmp_path_factory.mktemp("archive") / "m", data) is None


# forgery: sealed consistently, and still not a model file


def forge(path, members, *, document=None, comment=None, compression=zipfile.ZIP_STORED):
    """Write a zip with a valid seal over whatever it holds."""
    described = {
        name: {
            "bytes": len(data),
            "dtype": "<f8",
            "sha256": hashlib.sha256(data).hexdigest(),
            "shape": [2],
        }
        for name, data in members
    }
    base = {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "arrays": described,
        "total_bytes": sum(len(data) for _, data in members),
        "content": {},
    }
    text = json.dumps(document(base) if document else base).encode()
    with zipfile.ZipFile(path, "w", compression) as z, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in members:
            z.writestr(name + ".npy", data)
        z.writestr("manifest.json", text)
        seal = f"adiabat-model/1 sha256={hashlib.sha256(text).hexdigest()}"
        z.comment = comment or seal.encode()


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


GOOD = npy(np.array([1.0, 2.0]), version=(1, 0))


def test_a_faithful_forgery_is_a_model_file(path):
    forge(path, [("a", GOOD)])
    assert_same(read_archive(path)[1], {"a": np.array([1.0, 2.0])})


class Explosive:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def with_array(**change):
    def document(base):
        base["arrays"]["a"] |= change
        return base

    return document


FORGERIES = {
    "pickle": ([("a", npy(np.array([Explosive()]), allow_pickle=True))], {}, "not allowed"),
    "record": (
        [("a", npy(np.zeros(2, [("a", "f8")]), version=(1, 0)))],
        {},
        "not allowed",
    ),
    "npy version": ([("a", npy(np.array([1.0, 2.0]), version=(2, 0)))], {}, "not allowed"),
    "shape": ([("a", GOOD)], {"document": with_array(shape=[1, 2])}, "another type"),
    "dtype": ([("a", GOOD)], {"document": with_array(dtype="<i8")}, "another type"),
    "sha256": ([("a", GOOD)], {"document": with_array(sha256="0" * 64)}, "checksum"),
    "size": ([("a", GOOD)], {"document": with_array(bytes=3)}, "another size"),
    "negative": ([("a", GOOD)], {"document": with_array(shape=[-2])}, "unexpected form"),
    "bool": ([("a", GOOD)], {"document": with_array(shape=[True])}, "unexpected form"),
    "total": ([("a", GOOD)], {"document": lambda d: d | {"total_bytes": 7}}, "total size"),
    "short": ([("a", GOOD[:-8])], {}, "does not fit"),
    "long": ([("a", GOOD + b"\0" * 8)], {}, "does not fit"),
    "huge shape": (
        [("a", GOOD.replace(b"(2,), }" + b" " * 12, b"(999999999999,), } "))],
        {"document": with_array(shape=[999999999999])},
        "does not fit",
    ),
    "huge items": (
        [("a", GOOD.replace(b"<f8", b"<f9"))],
        {"document": with_array(dtype="<f9")},
        "not a model file",
    ),
    "code": (
        [("a", GOOD.replace(b"'<f8'", b"f8()("))],
        {"document": with_array(dtype="<f8")},
        "not allowed",
    ),
    "missing": (
        [],
        {
            "document": lambda d: (
                d | {"arrays": {"a": {"bytes": 0, "dtype": "<f8", "sha256": "", "shape": []}}}
            )
        },
        "lacks a.npy",
    ),
    "unknown": (
        [("a", GOOD)],
        {"document": lambda d: d | {"arrays": {}, "total_bytes": 0}},
        "does not list",
    ),
    "twice": ([("a", GOOD), ("a", GOOD)], {}, "twice"),
    "climbing": ([("../a", GOOD)], {}, "unexpected name"),
    "absolute": ([("/tmp/a", GOOD)], {}, "unexpected name"),
    "folder": ([("b/a", GOOD)], {}, "unexpected name"),
    "compressed": ([("a", GOOD)], {"compression": zipfile.ZIP_DEFLATED}, "compressed"),
    "bomb": ([("a", npy(np.zeros(10**6)))], {"compression": zipfile.ZIP_DEFLATED}, "compressed"),
    "newer": ([("a", GOOD)], {"comment": b"adiabat-model/2 sha256=" + b"0" * 64}, "upgrade"),
    "unsealed": ([("a", GOOD)], {"comment": b"hello"}, "not a model file"),
    "other seal": ([("a", GOOD)], {"comment": b"adiabat-model/1 sha256=" + b"0" * 64}, "checksum"),
    "other format": ([("a", GOOD)], {"document": lambda d: d | {"format": "x"}}, "format"),
    "other version": ([("a", GOOD)], {"document": lambda d: d | {"version": 2}}, "version"),
    "not a dict": ([], {"document": lambda d: [d]}, "unexpected form"),
    "content": ([], {"document": lambda d: d | {"content": 3}}, "unexpected form"),
    "extra": ([], {"document": lambda d: d | {"more": 3}}, "unexpected form"),
    "nan": ([], {"document": lambda d: d | {"content": {"x": float("nan")}}}, "NaN"),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forgery_is_refused_with_the_reason(path, case, monkeypatch):
    monkeypatch.chdir(path.parent)
    members, options, message = FORGERIES[case]
    forge(path, members, **options)
    with pytest.raises(ModelFileError, match=message) as caught:
        read_archive(path)
    assert repr(str(path)) in str(caught.value)
    assert not (path.parent / "exploded").exists()


def test_deep_nesting_is_refused(path):
    text = b'{"format":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("manifest.json", text)
        z.comment = b"adiabat-model/1 sha256=" + hashlib.sha256(text).hexdigest().encode()
    with pytest.raises(ModelFileError):
        read_archive(path)


def test_an_archive_without_manifest_is_refused(path):
    with zipfile.ZipFile(path, "w") as z:
        z.comment = b"adiabat-model/1 sha256=" + b"0" * 64
    with pytest.raises(ModelFileError, match="no manifest"):
        read_archive(path)


def test_overlapping_members_cannot_declare_more_than_the_file(path):
    big = npy(np.zeros(5000))
    forge(path, [("a", big), ("b", GOOD)])
    data = bytearray(path.read_bytes())
    # Point the entry of b at the bytes of a: same content twice, from one copy.
    entry_a = data.find(b"PK\x01\x02")
    entry_b = data.find(b"PK\x01\x02", entry_a + 4)
    data[entry_b + 16 : entry_b + 28] = data[entry_a + 16 : entry_a + 28]
    data[entry_b + 42 : entry_b + 46] = data[entry_a + 42 : entry_a + 46]
    assert read_damaged(path, bytes(data)) is None


def test_bytes_in_memory_are_those_of_the_file(tmp_path):
    manifest, arrays = {"a": [1, 2.5, None]}, {"x": np.arange(5.0), "y": np.array(["q"])}
    path = tmp_path / "m"
    write_archive(path, manifest, arrays)
    data = pack_archive(manifest, arrays)
    assert data == path.read_bytes()
    content, found = unpack_archive(data, "somewhere")
    assert content == manifest and found["x"].tolist() == arrays["x"].tolist()
    with pytest.raises(ModelFileError, match="somewhere"):
        unpack_archive(data[:-7], "somewhere")


def test_a_file_that_declares_more_than_it_is_long_is_refused_before_it_is_read(path, monkeypatch):
    """Header, manifest and directory agree on 8 MB, of which 16 bytes are there."""
    n = 10**6
    header = GOOD[:-16].replace(b"(2,), }" + b" " * 6, b"(1000000,), }")
    length = len(header) + 8 * n
    forge(
        path,
        [("a", header + GOOD[-16:])],
        document=lambda d: with_array(shape=[n], bytes=length)(d) | {"total_bytes": length},
    )
    with zipfile.ZipFile(path) as z:
        entry = z.start_dir
    data = bytearray(path.read_bytes())
    assert data[entry + 46 : entry + 51] == b"a.npy"
    data[entry + 20 : entry + 28] = struct.pack("<II", length, length)
    path.write_bytes(data)
    monkeypatch.setattr(archive, "_read_array", None)
    with pytest.raises(ModelFileError, match="declares more content than it is long"):
        read_archive(path)
