"""The first records of MNIST and Adult, in folders as the whole of them has."""

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

DATA = Path(os.environ.get("TACIT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def write_digits(folder, *, known, tested):
    """The first so many digits of MNIST, in a folder as the whole of it has."""
    if not (DATA / "mnist").is_dir():
        pytest.skip(f"no MNIST in {DATA}; set TACIT_DATA to a folder that holds mnist/*.gz")
    (folder / "mnist").mkdir()
    for kind, count in (("train", known), ("t10k", tested)):
        for name, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            file = f"mnist/{kind}-{name}-ubyte.gz"
            raw = gzip.decompress((DATA / file).read_bytes())
            short = raw[:4] + count.to_bytes(4, "big") + raw[8 : header + count * size]
            (folder / file).write_bytes(gzip.compress(short, 1))
    return folder


def write_adult(folder, *, known, tested):
    """The first so many records of Adult, in an archive as the whole of it is."""
    if not (DATA / "adult.tar.xz").is_file():
        pytest.skip(f"no adult.tar.xz in {DATA}; set TACIT_DATA to a folder that holds it")
    with tarfile.open(DATA / "adult.tar.xz") as archive, tarfile.open(folder / "adult.tar.xz", "w:xz") as short:
        for name, count in (("./adult.data", known), ("./adult.test", tested)):
            text = b"\n".join(archive.extractfile(name).read().split(b"\n")[: count + 1])
            member = tarfile.TarInfo(name)
            member.size = len(text)
            short.addfile(member, io.BytesIO(text))
    return folder
