"""`tacit reproduce hcr`: the experiments of arXiv:2404.02866v3, and next to each result what the paper leaves open.

Trained weights, every finished batch of bounds and every attack are files in the output folder. A run that was killed
continues with `resume`, repeats nothing that was finished, and ends with the same numbers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import __version__
from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Attack, Comparison
from ..reconstruction import (
    Gaussian,
    Mixture,
    Spectrum,
    bayes_bound,
    evaluate_decoder,
    hcr_bounds,
    identification_bound,
    linear_decoder,
    multipoint_bounds,
    nearest_candidate,
    posterior_attack,
    posterior_bound,
    trained_decoder,
)
from ..reconstruction.release import as_array, exact, open_release, type_error
from ..report import Report
from ..runtime import run_folder
from ..runtime.files import existing
from . import networks
from .data import Data, data_folder, data_of, pictures_in
from .hcr_page import report
from .hcr_task import IN_FLOAT64, MULTI_POINT, SETTINGS, SHOWN, Findings, Rebuilding, Run, Setting, Task, device_of
from .results import table, write_results

_Array = NDArray[np.float64]
_Advance = Callable[[str], None]

DITHERS = 10
"""Noisy releases of every image, over which the accuracy with noise is averaged."""
GPU_SHARE = 0.6
"""The share of a GPU's free memory that the multi-point bound may use."""
LEAST_TRIED = 30
"""The fewest images on which a decoder's error is worth reporting."""
_GPU_SPEED = 50.0
"""About how many times as fast bounds are on a GPU."""
WIDEST_DECODED = 4096
"""The most features that a decoder sees without projection."""
MOST_FITTED = 8192
"""The most entries of an image for which a covariance is fitted."""
SECONDS_CHAINED = 0.01
"""About what a step of the chains takes for an input on two cores."""


class _Sizes(NamedTuple):
    """Stars of a bound by chains and their ends, draws that a linear decoder learns from and is tried on, and tries."""

    inputs: int
    ends: int
    draws: int
    tries: int
    chains: int


CHAINED = {
    "small": _Sizes(inputs=1000, ends=2, draws=20_000, tries=2000, chains=300),
    "large": _Sizes(inputs=256, ends=1, draws=8_000, tries=500, chains=32),
}


_NETWORKS: dict[str, Callable[..., networks.Network]] = {
    "mnist": networks.mnist,
    "cifar10": networks.cifar10,
    "resnet18": networks.resnet18,
    "swin-t": networks.swin_t,
    "squeezenet": networks.squeezenet,
    "resnet50": networks.resnet50,
}


def steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes, on two cores."""
    setting = _setting(task)
    count = _images(task, setting, data_folder(task.data))
    searched = count if task.search_images is None else min(count, task.search_images)
    faster = _GPU_SPEED if device_of(task).type == "cuda" else 1.0
    search, bound = setting.seconds_searched * task.restarts * task.repetitions / faster, setting.seconds / faster
    batches = [(search, searched), (search, searched), (bound, count), (bound, count)]
    bounds = [each * (rows.stop - rows.start) for each, images in batches for rows in _batches(images, setting.batch)]
    chained = SECONDS_CHAINED * task.chain_steps * min(max(30, 10 * count), CHAINED["small"].inputs) / faster
    return [*[30.0 / faster] * setting.epochs, 5.0, *bounds, 10.0, 30.0 + chained, 60.0]


def reproduce(task: Task, *, advance: _Advance = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it.

    Besides the files of its steps, the output folder gets results.json, results.md and the figures as SVG. `advance` is
    called with a line about each step as it begins.
    """
    setting = _setting(task)
    for name, value in (("--restarts", task.restarts), ("--repetitions", task.repetitions)):
        validate.whole(name, value, at_least=1, remedy="leave it out")
    validate.whole("--seed", task.seed, at_least=0, remedy="use 0")
    if validate.whole("--chain-steps", task.chain_steps, at_least=0, remedy="use 100") % 2:
        raise InputError("--chain-steps", task.chain_steps, requirement="must be even", remedy="add one")
    if task.search_images is not None:
        validate.whole("--search-images", task.search_images, at_least=0, remedy="leave it out to search on all images")
    folder = data_folder(task.data)
    data = data_of(task.net, folder, images=_images(task, setting, folder), seed=task.seed)
    weights = _weights(task, setting, folder)
    run_folder.claim(task.out, _mark(task, setting, data, weights), resume=task.resume)
    network = _network(task, setting, data, weights, advance)
    advance("measuring the features")
    measured = run_folder.record(task.out / "features.json", lambda: _measured(network, data, setting))
    run = Run(
        task=task,
        setting=setting,
        data=data,
        network=network,
        noise=Gaussian(measured["sigma"]),
        feature_error=measured["feature_error"],
    )
    accuracy = run_folder.record(task.out / "accuracy.json", lambda: _accuracy(run))
    sizes = () if task.search_images == 0 else setting.sizes
    bounds = {f"1/{size}": _searched(run, size, advance) for size in sizes}
    bounds[MULTI_POINT] = _multipoint(run, MULTI_POINT, run.feature_error, advance)
    bounds[IN_FLOAT64] = _multipoint(run, IN_FLOAT64, type_error(torch.float64), advance)
    advance("naming the released image")
    naming = Comparison.from_dict(run_folder.record(task.out / "naming.json", lambda: _naming(run).to_dict()))
    advance("rebuilding an image drawn from the prior")
    remaining = _remaining(run)
    advance("rebuilding unseen images by a decoder")
    found = Findings(accuracy=accuracy, bounds=bounds, naming=naming, remaining=remaining, rebuilding=_rebuilding(run))
    page = report(run, found)
    row = page.detail["row"]
    write_results(page, task.out, name=task.net, heading=row["net"], first=f"{table([row])}\n")
    return page


def _setting(task: Task) -> Setting:
    return SETTINGS[validate.choice("NET", task.net, tuple(SETTINGS), remedy="see tacit reproduce hcr --help")]


def _images(task: Task, setting: Setting, folder: Path) -> int:
    """Return how many images are evaluated: as asked, or the paper's number, or all if there are fewer."""
    if task.images is not None:
        return validate.whole(
            "--images", task.images, at_least=2, remedy="leave it out to evaluate as many as the paper"
        )
    return setting.images if setting.epochs else min(setting.images, len(pictures_in(folder / "imagenet")))


def _weights(task: Task, setting: Setting, folder: Path) -> Path | None:
    """Return the file of pretrained weights; None if the network is trained here."""
    if setting.epochs:
        if task.weights is not None:
            raise InputError(
                "--weights",
                str(task.weights),
                requirement=f"must not be given for {task.net}, which is trained here",
                remedy="leave it out",
            )
        return None
    found = task.weights or (folder / setting.weights if setting.weights else None)
    if task.weights is not None:
        existing(task.weights, "--weights")
    if found is None or not found.is_file():
        raise InputError(
            "--weights",
            None if found is None else str(found),
            requirement=f"must be a file of torchvision's weights for {setting.title}",
            remedy="pass the .pth or .safetensors file of its state_dict",
        )
    return found


def _mark(task: Task, setting: Setting, data: Data, weights: Path | None) -> dict[str, object]:
    return {
        "tacit": __version__,
        "torch": torch.__version__,
        "net": task.net,
        "device": device_of(task).type,
        "images": run_folder.digest(np.ascontiguousarray(data.images).tobytes()),
        "known": run_folder.digest(np.ascontiguousarray(data.known).tobytes()),
        "weights": None if weights is None else run_folder.digest(weights.read_bytes()),
        "restarts": task.restarts,
        "repetitions": task.repetitions,
        "chain_steps": task.chain_steps,
        "batch": setting.batch,
        "seed": task.seed,
        "released": ["float32", "float64"],
    }


def _network(task: Task, setting: Setting, data: Data, weights: Path | None, advance: _Advance) -> networks.Network:
    """Return the network in evaluation mode: with the given weights, those of an earlier run, or trained now."""
    device, make = device_of(task), _NETWORKS[task.net]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(task.seed)
        network = make(partial(run_folder.load_weights, path=weights)) if weights is not None else make()
    if weights is None:
        path = task.out / "weights.safetensors"

        def trained() -> dict[str, str]:
            _train(network.to(device), data, setting.epochs, task.seed, advance)
            run_folder.save_weights(network, path)
            return {"sha256": run_folder.digest(path.read_bytes())}

        known = run_folder.record(task.out / "weights.json", trained)
        if not path.is_file() or run_folder.digest(path.read_bytes()) != known["sha256"]:
            raise InputError(
                "a kept file",
                str(path),
                requirement="must be as this task wrote it",
                remedy="choose another --out: the results kept here belong to the original weights",
            )
        run_folder.load_weights(network, path)
    return network.to(device).eval()


def _train(network: networks.Network, data: Data, epochs: int, seed: int, advance: _Advance) -> None:
    """Train by AdamW with a rate of 0.001 on random minibatches of 32."""
    device = next(network.parameters()).device
    images, labels = torch.tensor(data.known, device=device), torch.tensor(data.known_labels, device=device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=device.type == "cuda")
    generator = torch.Generator().manual_seed(seed)
    for epoch in range(epochs):
        advance(f"training, epoch {epoch + 1} of {epochs}")
        for chosen in torch.randperm(len(images), generator=generator).to(device).split(32):
            loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def _measured(network: networks.Network, data: Data, setting: Setting) -> dict[str, float]:
    """Return the noise that the paper's rule gives, and the relative error of float32 features."""
    release = open_release(network.features.eval(), data.images)
    size = float(release.features(release.inputs).square().mean().sqrt())
    return {"sigma": setting.scale * size, "feature_error": release.error}


def _accuracy(run: Run) -> dict[str, float]:
    """Measure the accuracy without and with noise, on the evaluated images and all others not used for training.

    The others cost one forward pass each, and make the accuracy more precise.
    """
    data, head = run.data, copy.deepcopy(run.network.head).to(torch.float64).eval()
    tested: list[tuple[NDArray[Any], NDArray[np.int64]]] = [(data.images, data.labels)]
    if not run.setting.epochs:
        tested.append((data.known, data.known_labels))
    release = open_release(run.features, data.images)
    generator = torch.Generator().manual_seed(run.task.seed)
    count = hits = dithered_hits = 0
    with exact():
        for images, labels in tested:
            for rows in _batches(len(images), 256):
                clean = release.features(torch.tensor(images[rows], dtype=torch.float64, device=device_of(run.task)))
                truth = torch.tensor(labels[rows], device=clean.device)
                count += len(truth)
                hits += int((head(clean).argmax(dim=1) == truth).sum())
                for _ in range(DITHERS):
                    noisy = clean + run.noise.sample(clean.cpu(), generator).to(clean.device)
                    dithered_hits += int((head(noisy).argmax(dim=1) == truth).sum())
    return {"images": count, "accuracy": hits / count, "dithered": dithered_hits / (DITHERS * count)}


def _batches(count: int, batch: int) -> Iterator[slice]:
    return (slice(first, min(first + batch, count)) for first in range(0, count, batch))


def _searched(run: Run, size: int, advance: _Advance) -> _Array:
    """Run the published search: Algorithm 1, the greatest bound over the restarts."""
    task, images = run.task, run.data.images[: run.task.search_images]
    at_once = run.setting.batch * task.restarts

    def found(rows: slice) -> _Array:
        return hcr_bounds(
            run.features,
            images[rows],
            run.noise,
            size=1 / size,
            repetitions=task.repetitions,
            restarts=task.restarts,
            # Each batch has its own random stream, so that an interrupted run gives the same numbers.
            seed=task.seed + rows.start,
            rows=at_once if device_of(task).type == "cuda" else min(at_once, 1024),
            feature_error=run.feature_error,
        ).std

    parts = []
    for rows in _batches(len(images), run.setting.batch):
        advance(f"published search, size 1/{size}, images {rows.start + 1} to {rows.stop} of {len(images)}")
        path = task.out / f"hcr-{size}-{rows.start:05d}-{rows.stop:05d}.npy"
        parts.append(run_folder.array(path, images[rows].shape, partial(found, rows)))
    return np.concatenate(parts)


def _multipoint(run: Run, name: str, feature_error: float, advance: _Advance) -> _Array:
    images, device = run.data.images, device_of(run.task)
    memory = GPU_SHARE * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 4e9
    parts = []
    for rows in _batches(len(images), run.setting.batch):
        advance(f"{name}, images {rows.start + 1} to {rows.stop} of {len(images)}")
        path = run.task.out / f"{name.replace(', ', '-')}-{rows.start:05d}-{rows.stop:05d}.npy"
        options: dict[str, Any] = {"memory": memory, "feature_error": feature_error}
        found = partial(multipoint_bounds, run.features, images[rows], run.noise, **options)
        parts.append(run_folder.array(path, images[rows].shape, lambda found=found: found().std))  # type: ignore[misc]
    return np.concatenate(parts)


def _naming(run: Run) -> Comparison:
    """Bound the chance of naming the released image among those evaluated, and attack it by the nearest candidate."""
    draws = min(20_000, 200_000_000 // run.width)
    seed, images = run.task.seed, run.data.images
    options: dict[str, Any] = {"draws": draws, "feature_error": run.feature_error}
    guarantee = identification_bound(run.features, images, run.noise, seed=seed, **options)
    attack = nearest_candidate(run.features, images, run.noise, guarantee, seed=seed + 1, **options)
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _remaining(run: Run) -> Comparison | None:
    """Bound rebuilding an image drawn from a prior fitted to others, by chains; None for large images without a GPU.

    The prior is a Gaussian with the covariance of the training set or, for large images, with the power of natural
    images per frequency and colour. Without chains, Ziv and Zakai's inequality bounds small images.
    """
    large, chained = run.data.images[0].size > MOST_FITTED, run.task.chain_steps
    if large and (not chained or device_of(run.task).type == "cpu"):
        return None

    def compared() -> dict[str, Any]:
        prior = Spectrum.fitted(_split(run.data)[0]) if large else Mixture.fitted(run.data.known)
        sizes = CHAINED["large" if large else "small"]
        few, seed = max(30, 10 * len(run.data.images)), run.task.seed
        model: tuple[Any, ...] = (run.features, prior, run.noise)
        common: dict[str, Any] = {"steps": chained, "feature_error": run.feature_error}
        drawn = prior.sample(sizes.draws, seed=seed + 1)
        attacks = [linear_decoder(run.features, drawn, prior, run.noise, tries=sizes.tries, seed=seed)]
        if chained:
            bound = posterior_bound(*model, inputs=min(few, sizes.inputs), ends=sizes.ends, seed=seed, **common)
            attacks += [posterior_attack(*model, tries=min(few, sizes.chains), seed=seed + 1, **common)]
            return Comparison(guarantee=bound.guarantee, attacks=tuple(attacks)).to_dict()
        return Comparison(
            guarantee=bayes_bound(*model, seed=seed, **common).guarantee, attacks=tuple(attacks)
        ).to_dict()

    return Comparison.from_dict(run_folder.record(run.task.out / "remaining.json", compared))


def _rebuilding(run: Run) -> Rebuilding | None:
    """Train a decoder and try it on the evaluated images; None if these are too few."""
    known, unseen = _split(run.data)
    if len(unseen) < LEAST_TRIED:
        return None
    features, seed = _decoded(run, known), run.task.seed

    @cache
    def decoder() -> Callable[[Tensor], Tensor]:
        return trained_decoder(features, known, run.noise, seed=seed)

    def attack() -> dict[str, Any]:
        return evaluate_decoder(decoder(), features, known, unseen, run.noise, seed=seed).to_dict()

    def shown() -> _Array:
        release = open_release(features, unseen[:SHOWN])
        clean = release.features(release.inputs)
        noisy = clean + run.noise.sample(clean.cpu(), torch.Generator().manual_seed(seed)).to(clean.device)
        return as_array(decoder()(noisy))

    folder = run.task.out
    return Rebuilding(
        attack=Attack.from_dict(run_folder.record(folder / "decoder.json", attack)),
        images=len(unseen),
        shown=run_folder.array(folder / "decoder.npy", unseen[:SHOWN].shape, shown),
    )


def _split(data: Data) -> tuple[_Array, _Array]:
    """Return what the decoder learns from and is tried on; if other images are few, parts of the evaluated ones."""
    known = data.known.astype(np.float64)
    if len(known) >= len(data.images):
        return known, data.images
    first = math.ceil(len(data.images) / 4)
    return np.concatenate([known, data.images[first:]]), data.images[:first]


def _decoded(run: Run, known: _Array) -> nn.Module:
    """Return what the decoder sees: all features or, if there are very many, a projection of them.

    The projection is onto the span of the known images' features. The linear decoder it starts from uses nothing else,
    and the projected noise is the same.
    """
    if run.width <= WIDEST_DECODED:
        return run.features
    release = open_release(run.features, known)
    clean = release.features(release.inputs)
    directions = torch.linalg.qr((clean - clean.mean(dim=0)).T)[0]
    part = nn.Linear(len(directions), len(known), bias=False, dtype=torch.float64, device=clean.device)
    part.weight = nn.Parameter(directions.T.contiguous(), requires_grad=False)
    return nn.Sequential(run.features, part)
