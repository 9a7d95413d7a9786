"""`tacit reproduce hcr`: the experiments of arXiv:2404.02866v3, and beside each what the paper stops short of.

Trained weights, every finished batch of bounds and every attack are files of the output folder: a run that was killed
goes on with `resume`, repeats nothing that was finished, and ends with the same numbers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .. import __version__, checked, kept, readings
from ..errors import InputError
from ..guarantee import Attack, Comparison, safe_text
from ..reconstruction import (
    Gaussian,
    Mixture,
    bayes_bound,
    hcr_bounds,
    identification_bound,
    linear_decoder,
    multipoint_bounds,
    nearest_candidate,
    trained_decoder,
    tried_decoder,
)
from ..reconstruction.release import FEATURE_ERROR, as_array, exact, opened
from ..report import Figure, Report, figures
from . import networks
from .data import Data, data_folder, data_of, pictures_in
from .results import table, write_results

_Array = NDArray[np.float64]
_Advance = Callable[[str], None]

SHOWN = 3
DITHERS = 10
"""Noisy releases of every image, over which the accuracy with dithering is averaged."""
GPU_SHARE = 0.6
"""Of the GPU's memory, that the multi-point bound may use."""
LEAST_TRIED = 30
"""Images that a decoder must be tried on, for its error to be worth a number."""
WIDEST_DECODED = 4096
"""Features that a decoder looks at one by one."""
MULTI_POINT = "multi-point"
MOST_FITTED = 8192
"""Entries of an image for which a covariance is fitted."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How the paper treats one network; for the two that it does not treat, as its ImageNet networks.

    `scale` times the root mean square of the features is σ; `sizes` are reciprocals; `accuracies` are the published
    ones without and with dithering; `batch` is how many images make a file of the output folder.
    """

    title: str
    images: int
    scale: float
    sizes: tuple[int, int]
    lowest: int
    batch: int
    accuracies: tuple[float, float] | None = None
    epochs: int = 0
    weights: str = ""


def _imagenet(title: str, *, scale: float, accuracies: tuple[float, float] | None = None, weights: str = "") -> Setting:
    return Setting(
        title=title,
        images=128,
        scale=scale,
        sizes=(500, 1000),
        lowest=32,
        batch=4,
        accuracies=accuracies,
        weights=weights,
    )


SETTINGS = {
    "mnist": Setting(
        title="MNIST",
        images=10_000,
        scale=1,
        sizes=(200, 1000),
        lowest=8,
        batch=500,
        accuracies=(0.979, 0.951),
        epochs=6,
    ),
    "cifar10": Setting(
        title="CIFAR-10",
        images=2500,
        scale=5,
        sizes=(500, 1000),
        lowest=8,
        batch=500,
        accuracies=(0.70, 0.50),
        epochs=7,
    ),
    "resnet18": _imagenet("ResNet-18", scale=2, accuracies=(0.57, 0.54)),
    "swin-t": _imagenet("Swin-T", scale=3, accuracies=(0.64, 0.54)),
    "squeezenet": _imagenet("SqueezeNet 1.1", scale=2, weights="squeezenet1_1.safetensors"),
    "resnet50": _imagenet("ResNet-50", scale=2, weights="resnet50.safetensors"),
}
_NETWORKS: dict[str, Callable[..., networks.Network]] = {
    "mnist": networks.mnist,
    "cifar10": networks.cifar10,
    "resnet18": networks.resnet18,
    "swin-t": networks.swin_t,
    "squeezenet": networks.squeezenet,
    "resnet50": networks.resnet50,
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """Which network, where its data and weights are, and how much of the paper's experiment to run.

    `images` are evaluated (the paper's number unless given); the published search, which is slow, runs on the first
    `search_images` of them, and not at all where that is 0.
    """

    net: str
    out: Path
    data: Path | None = None
    weights: Path | None = None
    images: int | None = None
    search_images: int | None = None
    restarts: int = 25
    repetitions: int = 10
    device: str | None = None
    resume: bool = False
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    """A task with everything that its steps need."""

    task: Task
    setting: Setting
    data: Data
    network: networks.Network
    noise: Gaussian

    @property
    def features(self) -> nn.Module:
        return self.network.features

    @property
    def width(self) -> int:
        """How many features are released."""
        with exact():
            some = torch.tensor(self.data.images[:1], dtype=torch.float32, device=_device(self.task))
            return int(self.features(some).numel())


def steps(task: Task) -> int:
    """How many steps of progress the task has."""
    setting = _setting(task)
    count = _images(task, setting, data_folder(task.data))
    searched = count if task.search_images is None else min(count, task.search_images)
    return setting.epochs + 2 * math.ceil(searched / setting.batch) + math.ceil(count / setting.batch) + 4


def reproduce(task: Task, *, advance: _Advance = lambda _: None) -> Report:
    """Run what is left of the task, and report on all of it. `advance` hears what begins.

    Besides the files of its steps, the output folder gets results.json, results.md and the figures as SVG.
    """
    setting = _setting(task)
    for name, value in (("--restarts", task.restarts), ("--repetitions", task.repetitions)):
        checked.whole(name, value, at_least=1, remedy="leave it out")
    checked.whole("--seed", task.seed, at_least=0, remedy="use 0")
    if task.search_images is not None:
        checked.whole("--search-images", task.search_images, at_least=0, remedy="leave it out to search on all images")
    folder = data_folder(task.data)
    data = data_of(task.net, folder, images=_images(task, setting, folder), seed=task.seed)
    weights = _weights(task, setting, folder)
    kept.claim(task.out, _mark(task, setting, data, weights), resume=task.resume)
    network = _network(task, setting, data, weights, advance)
    advance("measuring the features")
    measured = kept.record(task.out / "features.json", lambda: _measured(network, data, setting, task.seed))
    run = _Run(task=task, setting=setting, data=data, network=network, noise=Gaussian(measured["sigma"]))
    sizes = () if task.search_images == 0 else setting.sizes
    bounds = {f"1/{size}": _searched(run, size, advance) for size in sizes}
    bounds[MULTI_POINT] = _multipoint(run, advance)
    advance("naming the image")
    naming = Comparison.from_dict(kept.record(task.out / "naming.json", lambda: _naming(run).to_dict()))
    advance("what remains for anyone")
    remaining = _remaining(run)
    advance("rebuilding images that were never seen")
    rebuilding = _rebuilding(run)
    report = _report(run, measured, bounds, naming, remaining, rebuilding)
    row = report.detail["row"]
    write_results(report, task.out, name=task.net, heading=row["net"], first=f"{table([row])}\n")
    return report


def _setting(task: Task) -> Setting:
    return SETTINGS[checked.choice("NET", task.net, tuple(SETTINGS), remedy="see tacit reproduce hcr --help")]


def _images(task: Task, setting: Setting, folder: Path) -> int:
    """How many images are evaluated: as asked, or the paper's number, or all where there are fewer."""
    if task.images is not None:
        return checked.whole(
            "--images", task.images, at_least=2, remedy="leave it out to evaluate as many as the paper"
        )
    return setting.images if setting.epochs else min(setting.images, len(pictures_in(folder / "imagenet")))


def _device(task: Task) -> torch.device:
    if task.device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    checked.choice("--device", task.device, ("cpu", "cuda"), remedy="leave it out to use a GPU where there is one")
    if task.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device", "cuda", requirement="must be there", remedy="use cpu, or a torch built for CUDA")
    return torch.device(task.device)


def _weights(task: Task, setting: Setting, folder: Path) -> Path | None:
    """The file of pretrained weights; None where the network is trained here."""
    if setting.epochs:
        if task.weights is not None:
            raise InputError(
                "--weights",
                str(task.weights),
                requirement=f"must not be given for {task.net}, which is trained",
                remedy="leave it out",
            )
        return None
    found = task.weights or (folder / setting.weights if setting.weights else None)
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
        "device": _device(task).type,
        "images": kept.digest(np.ascontiguousarray(data.images).tobytes()),
        "known": kept.digest(np.ascontiguousarray(data.known).tobytes()),
        "weights": None if weights is None else kept.digest(weights.read_bytes()),
        "restarts": task.restarts,
        "repetitions": task.repetitions,
        "batch": setting.batch,
        "seed": task.seed,
    }


def _network(task: Task, setting: Setting, data: Data, weights: Path | None, advance: _Advance) -> networks.Network:
    """In evaluation mode on the device: with the weights given, as kept by an earlier run, or trained."""
    device, make = _device(task), _NETWORKS[task.net]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(task.seed)
        network = make(partial(kept.load_weights, path=weights)) if weights is not None else make()
    if weights is None:
        path = task.out / "weights.safetensors"
        if not path.exists():
            _train(network.to(device), data, setting.epochs, task.seed, advance)
            kept.save_weights(network, path)
        kept.load_weights(network, path)
    return network.to(device).eval()


def _train(network: networks.Network, data: Data, epochs: int, seed: int, advance: _Advance) -> None:
    """AdamW with a rate of 0.001 on random minibatches of 32, all on the device."""
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


def _measured(network: networks.Network, data: Data, setting: Setting, seed: int) -> dict[str, float]:
    """σ, and the accuracy without and with dithering."""
    release = opened(network.features.eval(), data.images)
    clean = release.features(release.inputs)
    noise = Gaussian(setting.scale * float(clean.square().mean().sqrt()))
    head = copy.deepcopy(network.head).to(torch.float64).eval()
    labels = torch.tensor(data.labels, device=clean.device)
    generator = torch.Generator().manual_seed(seed)
    hits = dithered_hits = 0
    with exact():
        for rows, truth in zip(clean.split(256), labels.split(256), strict=True):
            hits += int((head(rows).argmax(dim=1) == truth).sum())
            for _ in range(DITHERS):
                noisy = rows + noise.sample(rows.cpu(), generator).to(rows.device)
                dithered_hits += int((head(noisy).argmax(dim=1) == truth).sum())
    return {"sigma": noise.size, "accuracy": hits / len(clean), "dithered": dithered_hits / (DITHERS * len(clean))}


def _batches(count: int, batch: int) -> Iterator[slice]:
    return (slice(first, min(first + batch, count)) for first in range(0, count, batch))


def _searched(run: _Run, size: int, advance: _Advance) -> _Array:
    """The published search: Algorithm 1, the greatest bound over the restarts."""
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
            # Each batch has a stream of its own, so that a run that was interrupted draws what it would have drawn.
            seed=task.seed + rows.start,
            rows=at_once if _device(task).type == "cuda" else min(at_once, 1024),
        ).std

    parts = []
    for rows in _batches(len(images), run.setting.batch):
        advance(f"published search, size 1/{size}, images {rows.start + 1} to {rows.stop} of {len(images)}")
        path = task.out / f"hcr-{size}-{rows.start:05d}-{rows.stop:05d}.npy"
        parts.append(kept.array(path, images[rows].shape, partial(found, rows)))
    return np.concatenate(parts)


def _multipoint(run: _Run, advance: _Advance) -> _Array:
    images, device = run.data.images, _device(run.task)
    memory = GPU_SHARE * torch.cuda.mem_get_info(device)[1] if device.type == "cuda" else 4e9
    parts = []
    for rows in _batches(len(images), run.setting.batch):
        advance(f"{MULTI_POINT}, images {rows.start + 1} to {rows.stop} of {len(images)}")
        path = run.task.out / f"{MULTI_POINT}-{rows.start:05d}-{rows.stop:05d}.npy"
        found = partial(multipoint_bounds, run.features, images[rows], run.noise, memory=memory)
        parts.append(kept.array(path, images[rows].shape, lambda found=found: found().std))  # type: ignore[misc]
    return np.concatenate(parts)


def _naming(run: _Run) -> Comparison:
    """Which of the evaluated images was released: the limit for anyone, and the nearest candidate."""
    draws = min(20_000, 200_000_000 // run.width)
    seed, images = run.task.seed, run.data.images
    guarantee = identification_bound(run.features, images, run.noise, draws=draws, seed=seed)
    attack = nearest_candidate(run.features, images, run.noise, guarantee, draws=draws, seed=seed + 1)
    return Comparison(guarantee=guarantee, attack=attack)


def _remaining(run: _Run) -> Comparison | None:
    """What remains for anyone if images are drawn from a Gaussian fitted to the training set; None for large images."""
    if run.data.images[0].size > MOST_FITTED:
        return None

    def compared() -> dict[str, Any]:
        prior, seed = Mixture.fitted(run.data.known), run.task.seed
        guarantee = bayes_bound(run.features, prior, run.noise, seed=seed).guarantee()
        attack = linear_decoder(run.features, prior.sample(20_000, seed=seed + 1), prior, run.noise, seed=seed)
        return Comparison(guarantee=guarantee, attack=attack).to_dict()

    return Comparison.from_dict(kept.record(run.task.out / "remaining.json", compared))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rebuilding:
    """What a decoder achieved on images that it never saw, how many they were, and what it made of the first."""

    attack: Attack
    images: int
    shown: _Array


def _rebuilding(run: _Run) -> _Rebuilding | None:
    """Learned from the training set and tried on the evaluated images; None where these are too few to try it on."""
    known, unseen = _split(run.data)
    if len(unseen) < LEAST_TRIED:
        return None
    features, seed = _decoded(run, known), run.task.seed

    @cache
    def decoder() -> Callable[[Tensor], Tensor]:
        return trained_decoder(features, known, run.noise, seed=seed)

    def attack() -> dict[str, Any]:
        return tried_decoder(decoder(), features, known, unseen, run.noise, seed=seed).to_dict()

    def shown() -> _Array:
        release = opened(features, unseen[:SHOWN])
        clean = release.features(release.inputs)
        noisy = clean + run.noise.sample(clean.cpu(), torch.Generator().manual_seed(seed)).to(clean.device)
        return as_array(decoder()(noisy))

    folder = run.task.out
    return _Rebuilding(
        attack=Attack.from_dict(kept.record(folder / "decoder.json", attack)),
        images=len(unseen),
        shown=kept.array(folder / "decoder.npy", unseen[:SHOWN].shape, shown),
    )


def _split(data: Data) -> tuple[_Array, _Array]:
    """What the decoder learns from and what it is tried on; where other images are few, part of the evaluated ones."""
    known = data.known.astype(np.float64)
    if len(known) >= len(data.images):
        return known, data.images
    first = math.ceil(len(data.images) / 4)
    return np.concatenate([known, data.images[first:]]), data.images[:first]


def _decoded(run: _Run, known: _Array) -> nn.Module:
    """What the decoder looks at: all features or, of very many, their part in the span of those of the known images.

    The linear decoder that it starts from looks nowhere else, and the noise of that part is the same.
    """
    if run.width <= WIDEST_DECODED:
        return run.features
    release = opened(run.features, known)
    clean = release.features(release.inputs)
    directions = torch.linalg.qr((clean - clean.mean(dim=0)).T)[0]
    part = nn.Linear(len(directions), len(known), bias=False, dtype=torch.float64, device=clean.device)
    part.weight = nn.Parameter(directions.T.contiguous(), requires_grad=False)
    return nn.Sequential(run.features, part)


def _report(
    run: _Run,
    measured: dict[str, float],
    bounds: dict[str, _Array],
    naming: Comparison,
    remaining: Comparison | None,
    rebuilding: _Rebuilding | None,
) -> Report:
    task, setting, spread = run.task, run.setting, readings.prior_std(run.data.images)
    medians = [
        readings.median_guarantee(
            MULTI_POINT if method == MULTI_POINT else "hcr",
            values,
            spread=spread,
            noise=run.noise,
            feature_error=FEATURE_ERROR,
            how="" if method == MULTI_POINT else f", size {method}",
        )
        for method, values in bounds.items()
    ]
    searched = [values for method, values in bounds.items() if method != MULTI_POINT]
    common = len(searched[0]) if searched else 0
    row = {
        "net": setting.title,
        "images": len(run.data.images),
        "search_images": common,
        "inputs": int(run.data.images[0].size),
        "features": run.width,
        "sigma": measured["sigma"],
        "accuracy": measured["accuracy"],
        "dithered": measured["dithered"],
        "published_accuracy": None if setting.accuracies is None else setting.accuracies[0],
        "published_dithered": None if setting.accuracies is None else setting.accuracies[1],
        "prior_std": spread,
        "median": {method: median.value for method, median in zip(bounds, medians, strict=True)},
        "median_lowest": {
            method: float(np.median(values[..., : setting.lowest, : setting.lowest]))
            for method, values in bounds.items()
        },
        "least_gain": _least_ratio(bounds[MULTI_POINT][:common], np.maximum(*searched)) if searched else None,
        "naming_limit": naming.guarantee.value,
        "naming_attack": None if naming.attack is None else naming.attack.value,
        "remaining": None if remaining is None else remaining.guarantee.value,
        "remaining_attack": None if remaining is None or remaining.attack is None else remaining.attack.value,
        "decoder": None if rebuilding is None else rebuilding.attack.value,
        "decoder_images": None if rebuilding is None else rebuilding.images,
    }
    shown = _figures(run, bounds, spread, rebuilding)
    return Report(
        command=f"reproduce hcr {task.net}",
        title=f"The published bounds on {setting.title}, and what lies beyond them",
        summary=_summary(run, row, naming, rebuilding),
        comparisons=(
            *(Comparison(guarantee=median) for median in medians),
            naming,
            *([] if remaining is None else [remaining]),
        ),
        figures=tuple(shown.values()),
        detail={
            "row": row,
            "figures": list(shown),
            "decoder": None if rebuilding is None else rebuilding.attack.to_dict(),
            "restarts": task.restarts,
            "repetitions": task.repetitions,
            "seed": task.seed,
            "device": _device(task).type,
            "folder": str(task.out),
        },
    )


def _least_ratio(some: _Array, others: _Array) -> float:
    """The least of some/others over all entries where the others are positive and finite."""
    there = (others > 0) & np.isfinite(others)
    return float(np.min(some[there] / others[there])) if there.any() else math.inf


def _summary(run: _Run, row: dict[str, Any], naming: Comparison, rebuilding: _Rebuilding | None) -> tuple[str, ...]:
    setting = run.setting
    published = ""
    if setting.accuracies is not None:
        published = " (published: {:.1f} % and {:.1f} %)".format(*(100 * share for share in setting.accuracies))
    searched = ""
    if row["search_images"]:
        median = row["median"][f"1/{setting.sizes[0]}"]
        searched = f"{safe_text(median, toward='down')} or more by the published search, and by "
    sentences = [
        (
            f"{row['images']} images of {row['inputs']} numbers, released as {row['features']} features with Gaussian "
            f"noise of {setting.scale:g} times their root mean square, σ = {row['sigma']:.3g}."
        ),
        (
            f"The network classifies {100 * row['accuracy']:.1f} % of them without the noise and "
            f"{100 * row['dithered']:.1f} % with it{published}."
        ),
        (
            f"Unbiased estimates of half of the modes scatter by {searched}"
            f"{safe_text(row['median'][MULTI_POINT], toward='down')} or more by the multi-point bound, where the "
            f"images themselves vary by {row['prior_std']:.2g}. That says nothing of attackers with prior knowledge, "
            "who are biased."
        ),
        (
            "An adversary who holds these images names the released one with probability "
            f"{safe_text(naming.guarantee.value, toward='up')} at most."
        ),
    ]
    if row["remaining"] is not None:
        sentences.append(
            "If images were drawn from a Gaussian with the mean and covariance of the training set, "
            f"{safe_text(row['remaining'], toward='down', digits=2)} of their variance would remain, at least, whoever "
            f"rebuilds them; the best linear decoder leaves {row['remaining_attack']:.2g}."
        )
    if rebuilding is not None:
        share = safe_text(rebuilding.attack.value, toward="nearest", digits=2)
        sentences.append(
            f"A decoder ({rebuilding.attack.method}) rebuilds {rebuilding.images} images that it never saw with a mean "
            f"squared error of {share} of their variance."
        )
    return tuple(sentences)


def _figures(run: _Run, bounds: dict[str, _Array], spread: float, rebuilding: _Rebuilding | None) -> dict[str, Figure]:
    """Each by the name of its file."""
    setting = run.setting
    searched = {f"published search, {name}": values for name, values in bounds.items() if name != MULTI_POINT}
    lowest = {name: values[..., : setting.lowest, : setting.lowest] for name, values in searched.items()}
    beside = {**dict(list(searched.items())[:1]), MULTI_POINT: bounds[MULTI_POINT]}
    block = f"the {setting.lowest} × {setting.lowest} lowest modes"
    found = {"multi-point": _histogram("The multi-point bound, all modes", beside, spread)}
    if searched:
        found = {
            "published": _histogram("The published search, all modes", searched, spread),
            "lowest": _histogram(f"The published search, {block}", lowest, spread),
            "multi-point": _histogram("The same beside the multi-point bound, all modes", beside, spread),
        }
    return {**found, "images": _pictures(run, bounds, rebuilding)}


def _histogram(title: str, bounds: dict[str, _Array], spread: float) -> Figure:
    most = 1e9 * spread
    beyond = "; what exceeds it a billion times is counted there" if max(map(np.max, bounds.values())) > most else ""
    return Figure(
        title=title,
        caption="Standard deviation that unbiased estimates of a mode must have, at least, over all modes and images. "
        f"The dashed line is the images' own spread{beyond}.",
        alternative="; ".join(
            f"{name}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
            for name, values in bounds.items()
        ),
        svg=figures.histogram(
            {name: np.minimum(values, most) for name, values in bounds.items()},
            marked=(spread, "spread of the images"),
            x_label="bound, per mode",
        ),
    )


def _pictures(run: _Run, bounds: dict[str, _Array], rebuilding: _Rebuilding | None) -> Figure:
    count = min(SHOWN, *(len(values) for values in bounds.values()))
    images = run.data.images[:count]
    rows = {"original": images}
    for method, values in bounds.items():
        name = method if method == MULTI_POINT else f"published search, {method}"
        rows[f"moved by the bound: {name}"] = readings.moved_by(values[:count], images, basis="dct", seed=run.task.seed)
    caption = (
        "Every cosine mode moved up or down by the toss of a coin, as far as an unbiased estimate of it must scatter, "
        "and cut off at black and white."
    )
    if rebuilding is not None:
        rows["rebuilt by a decoder that never saw it"] = rebuilding.shown[:count]
        caption += " Real attackers are biased: the last row is what one of them makes of the noisy features."
    return Figure(
        title="What the bounds mean for an image",
        caption=caption,
        alternative=f"Rows of images: {', '.join(rows)}.",
        svg=figures.image_rows({name: run.data.pictures(values) for name, values in rows.items()}),
    )
