"""Reconstruction bounds: time and tightness as ratios against the published procedure, in one run.

The baseline is the published procedure with the settings of the authors' code (facebookresearch/hcrbounds, b240d5b):
SciPy's LSQR over a minibatch of 5000 images as one system, stopped at atol = 2e-2 times the least target, with
derivatives at the perturbed images and host round-trips, 10 repetitions and 25 restarts. One restart of it is timed and
counted 25 times. On a CPU the minibatch is smaller. The authors' own code, run beside it on one H200, takes 1.2 times
as long as this baseline and finds the same median bound.

    python benchmarks/reconstruction.py [--images N] [--imagenet [--squeezenet FILE.safetensors] [--pictures FILE.npy]]

MNIST is read from the folder TACIT_DATA, or ../shared/data beside the project. Uses a GPU where torch sees one.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, lsqr
from torch import Tensor, nn

from tacit.reconstruction import Gaussian, hcr_bounds, multipoint_bounds
from tacit.reconstruction.basis import basis_of

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RESTARTS, REPETITIONS, SIZE = 25, 10, 1 / 200


def mnist_folder() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("TACIT_DATA", beside)) / "mnist"


def idx(name: str) -> np.ndarray[Any, Any]:
    raw = gzip.decompress((mnist_folder() / name).read_bytes())
    shape = [int.from_bytes(raw[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def mnist_network() -> tuple[nn.Module, Tensor]:
    """The paper's features, trained for one epoch, and the normalised test images."""

    def images(name: str) -> Tensor:
        return torch.tensor((idx(name) / 255 - 0.1307) / 0.3081, dtype=torch.float32, device=DEVICE)[:, None]

    torch.manual_seed(0)
    features = nn.Sequential(nn.Flatten(), nn.Linear(784, 784), nn.ReLU(), nn.Linear(784, 784), nn.ReLU()).to(DEVICE)
    head = nn.Linear(784, 10).to(DEVICE)
    optimiser = torch.optim.AdamW([*features.parameters(), *head.parameters()], lr=1e-3)
    inputs = images("train-images-idx3-ubyte.gz")
    labels = torch.tensor(idx("train-labels-idx1-ubyte.gz").astype(np.int64), device=DEVICE)
    for batch in torch.randperm(len(inputs), device=DEVICE).split(32):
        loss = nn.functional.cross_entropy(head(features(inputs[batch])), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return features.eval(), images("t10k-images-idx3-ubyte.gz")


def published(features: nn.Module, images: Tensor, sigma: float, *, restarts: int) -> np.ndarray[Any, Any]:
    """The published procedure for one minibatch: the greatest bound per cosine mode over the restarts."""
    modes = basis_of("dct", tuple(images.shape[1:]), images.device)
    with torch.no_grad():
        base = features(images)
    shape = images.shape
    generator = torch.Generator().manual_seed(0)
    best = np.zeros(shape)
    for _ in range(restarts):
        start = sigma * torch.randn(base.shape, generator=generator).numpy() * SIZE / math.sqrt(base.shape[1])
        lengths = np.linalg.norm(start, axis=1, keepdims=True)
        moved, shift = images, start
        for _ in range(REPETITIONS):
            target = shift * lengths / np.linalg.norm(shift, axis=1, keepdims=True)
            change = lsqr(jacobian(features, moved), target.ravel(), atol=2e-2 * float(lengths.min()))[0]
            moved = images + torch.tensor(change.reshape(shape), dtype=torch.float32, device=images.device)
            with torch.no_grad():
                shift = (features(moved) - base).cpu().numpy()
        chi_square = np.expm1(np.sum(shift.astype(np.float64) ** 2, axis=1) / sigma**2)
        changes = modes.to_modes((moved - images).double()).cpu().numpy()
        best = np.maximum(best, np.abs(changes) / np.sqrt(chi_square)[:, None, None, None])
    return best


def jacobian(features: nn.Module, images: Tensor) -> LinearOperator:
    """Of a whole minibatch, by derivatives."""
    output, back = torch.func.vjp(features, images)[:2]

    def on_device(vector: np.ndarray[Any, Any], like: Tensor) -> Tensor:
        return torch.tensor(vector.reshape(like.shape), dtype=torch.float32).to(like.device)

    def forward(vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return torch.func.jvp(features, (images,), (on_device(vector, images),))[1].detach().cpu().numpy().ravel()

    def transposed(vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return back(on_device(vector, output))[0].detach().cpu().numpy().ravel()

    return LinearOperator((output.numel(), images.numel()), matvec=forward, rmatvec=transposed, dtype=np.float32)


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    result = action()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def peak_memory() -> str:
    return f", peak {torch.cuda.max_memory_allocated() / 1e9:.1f} GB" if DEVICE.type == "cuda" else ""


def mnist(images: int) -> None:
    features, inputs = mnist_network()
    with torch.no_grad():
        sigma = float(features(inputs).square().mean().sqrt())
    prior = float(inputs.std(dim=0).mean())
    noise, batch = Gaussian(sigma), inputs[: 5000 if DEVICE.type == "cuda" else 64]
    multipoint_bounds(features, batch[:2], noise)  # warm up
    hcr_bounds(features, batch[:2], noise, restarts=2)
    memory = 40e9 if DEVICE.type == "cuda" else 2e9
    slow, slow_time = timed(lambda: published(features, batch, sigma, restarts=1))
    slow_per_image = slow_time * RESTARTS / len(batch)
    print(f"MNIST net on {DEVICE.type}, sigma = RMS of the features; standard deviations in normalised pixels")
    print(f"  published procedure       {slow_per_image:9.4f} s an image ({len(batch)} at once, one restart timed)")
    ours, time_ours = timed(lambda: hcr_bounds(features, batch, noise, restarts=RESTARTS, rows=8192))
    per_image = time_ours / len(batch)
    print(f"  hcr_bounds                {per_image:9.4f} s an image  {slow_per_image / per_image:8.1f} × faster")
    one = hcr_bounds(features, batch, noise, restarts=1, rows=8192)
    print(f"  median bound of one restart: published {np.median(slow):.3g}, of hcr_bounds {np.median(one.std):.3g}")
    print(f"  median bound of {RESTARTS} restarts of hcr_bounds {np.median(ours.std):.3g}; prior {prior:.2g}")
    for released, error in (("float32", None), ("float64", 1e-13)):
        options: dict[str, Any] = {"memory": memory, "feature_error": error}
        many, time_many = timed(partial(multipoint_bounds, features, inputs[:images], noise, **options))
        per_image = time_many / images
        print(
            f"  multipoint_bounds, {released} {per_image:8.4f} s an image  {slow_per_image / per_image:8.1f} × faster, "
            f"{images} images in {time_many:.1f} s{peak_memory()}"
        )
        both = min(len(many.std), len(ours.std))
        least = np.min(many.std[:both] / ours.std[:both])
        print(f"    median bound {np.median(many.std):.3g}, on no mode less than {least:.3g} times hcr_bounds")


def imagenet(weights: Path | None, pictures: Path | None) -> None:
    """ImageNet size: 3 × 91 × 91 inputs, upsampled to 224 × 224 inside the models, all 24 843 modes.

    Random weights leave more features moving than trained ones (of SqueezeNet 54 % against 9 %), and take no less time;
    their bounds mean nothing.
    """
    from torchvision.models import resnet18, squeezenet1_1

    torch.manual_seed(0)
    inputs = torch.randn(2, 3, 91, 91) if pictures is None else torch.tensor(np.load(pictures), dtype=torch.float32)
    small, residual = squeezenet1_1(), resnet18()
    if weights is not None:
        from safetensors.torch import load_file

        small.load_state_dict(load_file(weights))
    parts = {"SqueezeNet 1.1": [small.features], "ResNet-18, random weights": list(residual.children())[:-2]}
    for name, layers in parts.items():
        features = nn.Sequential(nn.Upsample(size=(224, 224), mode="bilinear"), *layers, nn.Flatten())
        all_modes(name, features.to(DEVICE).eval(), inputs[:2].to(DEVICE))


def all_modes(name: str, features: nn.Module, inputs: Tensor) -> None:
    with torch.no_grad():
        sigma = 2 * float(features(inputs).square().mean().sqrt())
    multipoint_bounds(features, inputs[:1], Gaussian(sigma), memory=2e9)  # warm up, in small blocks
    found, seconds = timed(lambda: multipoint_bounds(features, inputs, Gaussian(sigma), memory=125e9))
    print(f"{name}, 3 × 91 × 91, all {found.std[0].size} modes, sigma = 2 RMS")
    print(f"  multipoint_bounds         {seconds / len(inputs):9.4f} s an image{peak_memory()}")
    print(f"  median bound {np.median(found.std):.3g}; prior {float(inputs.std(dim=0).mean()):.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000 if DEVICE.type == "cuda" else 16)
    parser.add_argument("--imagenet", action="store_true", help="ImageNet size too; wants a large GPU")
    parser.add_argument("--squeezenet", type=Path, help="its weights, .safetensors; random without")
    parser.add_argument("--pictures", type=Path, help="normalised, 3 × 91 × 91, .npy; random without")
    options = parser.parse_args()
    if options.imagenet:
        imagenet(options.squeezenet, options.pictures)
    if mnist_folder().is_dir():
        mnist(options.images)
    else:
        print(f"skipped: no MNIST in {mnist_folder()}; set TACIT_DATA to a folder that holds mnist/*.gz")


if __name__ == "__main__":
    main()
