"""`make bench`: what a query to the service costs, as ratios to a bare FastAPI application that echoes it.

Both run under uvicorn with the same settings, a process each, and the same client asks both in turn from a process of
its own: one vector a request, 64 connections or one. Goals with 64: recorded queries within 2 ×, fresh ones within 5 ×.
Fresh queries are voted on by 250 linear teachers, decided, and written to the ledger on the disk before the answer
leaves; recorded ones are told from memory. With one connection the time of a fresh query is that of the disk and of the
schedule (`--every`), which is there to hide all others.

The last figure is an attack on that schedule: whoever knows the times of unanimous and of close votes guesses which
is which by a threshold on the time. Without a leak, the guess is right half of the time.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONNECTIONS, REQUESTS, ROUNDS = 64, 2500, 3
FEATURES, TEACHERS, RECORDS = 8, 250, 7500
EVERY, ATTACKS = 0.02, 400
"""Seconds between departures; queries of either kind in the attack."""

ECHO = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.post("/v1/queries")
async def echo(body: dict) -> dict:
    return body
class Announced(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("at http://127.0.0.1:%d/" % self.servers[0].sockets[0].getsockname()[1], flush=True)
Announced(uvicorn.Config(app, port=0, log_level="warning", access_log=False, server_header=False, date_header=False,
    timeout_keep_alive=75)).run()
"""


def rows(count: int, seed: int, *, distance: float = 3.0) -> list[list[float]]:
    """Vectors whose label is the sign of the first number, this far from where it changes."""
    generator = np.random.default_rng(seed)
    found = generator.normal(size=(count, FEATURES))
    found[:, 0] = np.where(found[:, 0] > 0, distance, -distance) + 0.1 * found[:, 0]
    return [[float(value) for value in row] for row in found.round(6)]


def learned(folder: Path) -> Path:
    from tacit.learning.study.run import learn_files

    names = [f"x{number}" for number in range(FEATURES)]
    for name, count in (("private.csv", RECORDS), ("public.csv", 60)):
        labelled = name == "private.csv"
        with (folder / name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow([*names, *["label"] * labelled])
            for row in rows(count, 1 + labelled, distance=0.3):
                table.writerow([*row, *[str(row[0] > 0)] * labelled])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learn_files(
            folder / "private.csv",
            label="label",
            epsilon=1.0,
            delta=1e-6,
            budget_epsilon=1e6,
            budget_delta=0.5,
            public=folder / "public.csv",
            out=folder / "run",
            learner="sklearn.linear_model:LogisticRegression",
            student="sklearn.linear_model:LogisticRegression",
            teachers=TEACHERS,
            classes="False,True",
            queries="20",
        )
    return folder / "run"


async def _client(port: int, requests: list[bytes], times: list[tuple[int, float]], order: list[int]) -> None:
    """One connection: the next request, its answer, and the time between."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while order:
        number = order.pop()
        began = time.perf_counter()
        writer.write(requests[number])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request was refused: {head[:200]!r}")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        times.append((number, time.perf_counter() - began))
    writer.close()


def load() -> None:
    """The client's process: what to send comes in, times go out."""
    given = json.load(sys.stdin)
    requests = []
    for row in given["rows"]:
        body = json.dumps({"rows": [row]})
        head = f"POST /v1/queries HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {given['token']}\r\n"
        requests.append(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    times: list[tuple[int, float]] = []
    order = list(range(len(requests)))[::-1]

    async def everybody() -> None:
        clients = (_client(given["port"], requests, times, order) for _ in range(given["connections"]))
        await asyncio.gather(*clients)

    began = time.perf_counter()
    asyncio.run(everybody())
    json.dump({"seconds": time.perf_counter() - began, "times": [taken for _, taken in sorted(times)]}, sys.stdout)


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """The time that a process has had on a core, however many others wanted it (Linux)."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def asked(
    served: tuple[subprocess.Popen[str], int], token: str, wanted: list[list[float]], connections: int
) -> dict[str, Any]:
    process, port = served
    before = cpu_seconds(process)
    given = json.dumps({"port": port, "token": token, "rows": wanted, "connections": connections})
    done = subprocess.run([sys.executable, __file__, "load"], input=given, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    times = found["times"]
    return {
        "p50": float(np.quantile(times, 0.5)),
        "p99": float(np.quantile(times, 0.99)),
        "rate": len(times) / found["seconds"],
        "cpu": (cpu_seconds(process) - before) / len(times),
        "times": times,
    }


def started(*command: str) -> tuple[subprocess.Popen[str], int]:
    log = Path(tempfile.mkstemp(prefix="tacit-bench-")[1])
    with log.open("w") as file:
        process = subprocess.Popen([sys.executable, *command], stdout=file, stderr=file, text=True)
    while True:
        found = re.search(r"at http://127\.0\.0\.1:(\d+)/", log.read_text().replace("\n", ""))
        if found:
            return process, int(found[1])
        if process.poll() is not None:
            raise SystemExit(log.read_text())
        time.sleep(0.05)


def told(name: str, found: list[dict[str, Any]], bare: list[dict[str, Any]]) -> None:
    """The medians of the rounds, and the ratio to the bare application."""
    p50, p99, rate, cpu = (float(np.median([one[key] for one in found])) for key in ("p50", "p99", "rate", "cpu"))
    slower = float(np.median([one["rate"] for one in bare])) / rate
    dearer = cpu / float(np.median([one["cpu"] for one in bare]))
    print(
        f"  {name:9} p50 {1e3 * p50:7.2f} ms  p99 {1e3 * p99:7.2f} ms  {rate:6.0f}/s: {slower:5.2f} × echo"
        f"   CPU {1e3 * cpu:5.2f} ms: {dearer:5.2f} × echo"
    )


def attacked(served: tuple[subprocess.Popen[str], int], token: str, *, queries: int, seed: int) -> None:
    """Guess by the time to an answer whether votes were unanimous or close; halves learn a threshold and try it."""
    far, near = rows(queries, seed, distance=3.0), rows(queries, seed + 1, distance=0.0)
    close = np.random.default_rng(seed).permutation(2 * queries) % 2 == 1
    sources = iter(far), iter(near)
    found = asked(served, token, [next(sources[int(one)]) for one in close], 1)
    right, tries = guesses(np.array(found["times"]), close)
    reach = 3.29 * np.sqrt(0.25 / tries)  # 99.9 % of the time, if nothing leaks
    print(f"  attack by time: {right / tries:.3f} of {tries} right; without a leak, within 1/2 ± {reach:.3f} at 99.9 %")


def guesses(times: NDArray[np.float64], close: NDArray[np.bool_]) -> tuple[int, int]:
    """How many of the second half are told by the best threshold of the first, and their number."""
    half = len(times) // 2
    cuts = np.quantile(times[:half], np.linspace(0.02, 0.98, 49))
    scores = [((times[:half] > cut) == close[:half]).mean() for cut in cuts]
    best = int(np.argmax(np.abs(np.array(scores) - 0.5)))
    said = (times[half:] > cuts[best]) == (scores[best] >= 0.5)
    return int((said == close[half:]).sum()), len(times) - half


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        from tacit.service.tokens import Tokens

        run = learned(Path(folder))
        token = Tokens(run).add("bench")
        options = ["--epsilon", "5000", "--delta", "1e-3", "--mechanism", "svt", "--refusals", "5000"]
        options += ["--every", str(EVERY), "--rate", "1e9", "--port", "0"]
        service, echo = started("-m", "tacit", "serve", str(run), *options), started("-c", ECHO)
        try:
            for server in (service, echo):
                asked(server, token, rows(200, 9), 8)
            for connections, requests in ((CONNECTIONS, REQUESTS), (1, 200)):
                found: dict[str, list[dict[str, Any]]] = {"echo": [], "recorded": [], "fresh": []}
                for number in range(ROUNDS):
                    wanted = rows(requests, 100 * connections + number)
                    for name, server in (("fresh", service), ("recorded", service), ("echo", echo)):
                        found[name].append(asked(server, token, wanted, connections))
                print(
                    f"{connections} connections, {TEACHERS} linear teachers, {ROUNDS} rounds of {requests}, "
                    f"answers leave every {1e3 * EVERY:g} ms; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
                )
                for name, one in found.items():
                    told(name, one, found["echo"])
            attacked(service, token, queries=ATTACKS, seed=7)
        finally:
            for process, _ in (service, echo):
                process.kill()
                process.wait()


if __name__ == "__main__":
    load() if sys.argv[1:] == ["load"] else main()
