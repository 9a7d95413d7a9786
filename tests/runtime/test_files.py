"""Files that are there whole or not at all, what the first of several writers decides, and arrays of others."""

import errno
import io
import os
import threading
import zipfile

import numpy as np
import pytest

from tacit import InputError
from tacit.runtime.files import array, arrays, write_new, write_whole


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path):
    path = tmp_path / "results.json"
    write_whole(path, b"first")
    path.chmod(0o640)
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [found.name for found in tmp_path.iterdir()] == ["results.json"]


def test_the_first_of_several_writers_decides(tmp_path):
    path, barrier = tmp_path / "release.json", threading.Barrier(8)

    def write(number):
        barrier.wait()
        write_new(path, b"%d" % number * 10_000)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    decided = path.read_bytes()
    assert len(decided) == 10_000
    assert len(set(decided)) == 1
    write_new(path, b"too late")
    assert path.read_bytes() == decided
    assert [found.name for found in tmp_path.iterdir()] == ["release.json"]


def test_a_file_system_without_links_gets_its_files_too(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)  # as exFAT and some network drives answer
    write_new(tmp_path / "task.json", b"mark")
    assert (tmp_path / "task.json").read_bytes() == b"mark"
    assert [found.name for found in tmp_path.iterdir()] == ["task.json"]


def npy(shape, kind="<f8", content=b""):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


LIES = {
    "claims 14.9 GiB": npy("(2000000000,)", content=bytes(64)),
    "claims more than any machine has": npy("(2000000000, 2000000000)", content=bytes(64)),
    "claims nothing, many times": npy("(2000000000,)", kind="|V0"),
    "claims less than nothing": npy("(-8,)", content=bytes(64)),
    "holds objects": npy("(1,)", kind="|O", content=bytes(64)),
    "ends too soon": npy("(9,)", content=bytes(64)),
    "is no header": npy("os.getcwd()"),
    "was damaged so that NumPy warns": npy("(9L,)", content=bytes(72)),
    "is nothing": b"",
}


@pytest.mark.parametrize("content", LIES.values(), ids=LIES)
def test_an_array_that_its_file_does_not_hold_is_refused_before_memory_is_taken(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", content)
    for read, name in ((array, "a.npy"), (arrays, "a.npz")):
        with pytest.raises(InputError, match="DATA must be a readable file of numbers or text"):
            read(tmp_path / name, "DATA")


def test_arrays_are_read_as_numpy_reads_them(tmp_path):
    rng = np.random.default_rng(0)
    given = {
        "x": rng.normal(size=(3, 4)),
        "y": np.asfortranarray(rng.normal(size=(3, 4))).astype(">f4"),
        "z": np.array(["a", "bc"]),
        "none": np.zeros((0, 3)),
        "one": np.array(5),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **given)
        found = arrays(tmp_path / "a.npz", "DATA")
        assert list(found) == list(given)
        for key, value in given.items():
            np.save(tmp_path / "a.npy", value)
            for one in (found[key], array(tmp_path / "a.npy", "DATA")):
                assert (one.dtype, one.shape) == (value.dtype, value.shape)
                assert np.array_equal(one, value)


def test_an_archive_of_much_of_nothing_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        member.write(npy("(50331648,)"))
        for _ in range(384):
            member.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(InputError, match=r"must not unpack to more than 200 times its size.*without compression"):
        arrays(path, "DATA")


def test_an_archive_with_one_name_twice_is_refused(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue())
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", buffer.getvalue())
    with pytest.raises(InputError, match="must be a readable file"):
        arrays(tmp_path / "a.npz", "DATA")
