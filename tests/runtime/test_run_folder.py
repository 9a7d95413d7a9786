"""What a run keeps: every file is sealed for its task, its name and its content, and refused where the seal is not."""

import numpy as np
import pytest

from tacit import InputError
from tacit.runtime import run_folder

MARK = {"task": "bounds", "noise": "gaussian:1"}
SHAPE = (2, 3)


def values():
    return np.arange(6.0).reshape(SHAPE)


@pytest.fixture
def folder(tmp_path):
    run_folder.claim(tmp_path / "out", MARK, resume=False)
    return tmp_path / "out"


def not_again():
    pytest.fail("was made again")


def test_what_was_kept_is_read_back_and_not_made_again(folder):
    for make in (values, not_again):
        assert np.array_equal(run_folder.array(folder / "a.npy", SHAPE, make), values())
    for make in (lambda: {"sigma": 0.5}, not_again):
        assert run_folder.record(folder / "a.json", make) == {"sigma": 0.5}
    run_folder.write(folder / "teacher.skops", b"bytes")
    assert run_folder.read(folder / "teacher.skops") == b"bytes"
    assert np.array_equal(np.load(folder / "a.npy"), values())  # NumPy reads it, too


def test_every_flipped_bit_is_refused(folder):
    array, record = folder / "a.npy", folder / "a.json"
    run_folder.array(array, SHAPE, values)
    run_folder.record(record, lambda: {"sigma": 0.5})
    for path, read in (
        (array, lambda: run_folder.array(array, SHAPE, not_again)),
        (record, lambda: run_folder.record(record, not_again)),
    ):
        good = path.read_bytes()
        for place in range(8 * len(good)):
            bad = bytearray(good)
            bad[place // 8] ^= 1 << place % 8
            path.write_bytes(bad)
            with pytest.raises(InputError, match=r"a kept file must be as this task wrote it, .*; delete the file"):
                read()
        for bad in (b"", good[:-1], good + b"\n", good[: len(good) // 2]):
            path.write_bytes(bad)
            with pytest.raises(InputError, match="a kept file must be as this task wrote it"):
                read()


def test_a_file_of_another_task_or_name_is_refused(folder, tmp_path):
    run_folder.array(folder / "a.npy", SHAPE, values)
    run_folder.claim(tmp_path / "other", {**MARK, "noise": "gaussian:2"}, resume=False)
    for place in (tmp_path / "other" / "a.npy", folder / "b.npy"):
        place.write_bytes((folder / "a.npy").read_bytes())
        with pytest.raises(InputError, match="a kept file must be as this task wrote it"):
            run_folder.array(place, SHAPE, not_again)


def test_batches_without_their_task_are_refused(folder):
    run_folder.array(folder / "a.npy", SHAPE, values)
    (folder / "task.json").unlink()
    for resume in (False, True):
        with pytest.raises(InputError, match=r"must not have \.npy or \.skops files without the task.json"):
            run_folder.claim(folder, MARK, resume=resume)
    assert not (folder / "task.json").exists()


def test_what_comes_before_the_task_does_not_depend_on_it(tmp_path):
    path = tmp_path / "key.json"
    run_folder.record(path, lambda: {"key": "00"}, claimed=False)
    run_folder.claim(tmp_path, MARK, resume=True)
    assert run_folder.record(path, not_again, claimed=False) == {"key": "00"}
    path.write_bytes(path.read_bytes().replace(b"00", b"01"))
    with pytest.raises(InputError, match=r"a kept file must be as this task wrote it, .*; choose another folder"):
        run_folder.record(path, not_again, claimed=False)
