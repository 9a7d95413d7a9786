"""Files that are there whole or not at all, and what the first of several writers decides."""

import errno
import os
import threading

from tacit.files import write_new, write_whole


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
