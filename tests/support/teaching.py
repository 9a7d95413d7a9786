"""Records for teachers, and teachers that can be killed, in a module that other processes import quickly."""

import contextlib
import os
import socket
import time
from pathlib import Path

import numpy as np
from mortal import Mortal

from tacit.learning import Teachers

KEY = bytes(range(32))
HERE = Path(__file__).resolve().parent
IMPORTABLE = os.pathsep.join(map(str, (HERE, HERE.parents[1] / "src")))
"""The path of a process that is to find this module and the library."""


def data(n=240, *, features=3, classes=3, random_state=0):
    random = np.random.default_rng(random_state)
    y = random.integers(classes, size=n)
    return random.normal(size=(n, features)) + 1.5 * np.eye(classes, features)[y], y


def queries(features=3):
    return np.random.default_rng(1).normal(size=(50, features))


def mortal(**options):
    return Teachers(Mortal(**options), 12, KEY, classes=range(3), trusted=["mortal.Mortal"])


def wait_for(what):
    deadline = time.monotonic() + 240  # for busy machines
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reachable(port):
    with contextlib.closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Poison:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)
