"""Noise in the shape that the head does not mind, against the same noise everywhere, on the paper's MNIST network.

The network is trained as `tacit reproduce hcr mnist` trains it, six epochs, on 50 000 training images. The other
10 000 are the public inputs: they shape the noise (with their labels). The prior of the bounds is a Gaussian with the
mean and covariance of the 50 000. Accuracies are those on the 10 000 test images, one noisy release of each.

    python benchmarks/noise_shape.py [--inputs 200] [--steps 60] [--loss 0.004] [--weights FILE]

MNIST is read from the folder TACIT_DATA, or ../shared/data beside the project. Uses a GPU where torch sees one.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from reconstruction import DEVICE, idx
from torch import Tensor, nn

from tacit.reconstruction import Dithered, Gaussian, Mixture, learned_decoder, posterior_attack, posterior_bound
from tacit.reproduce.networks import Network, mnist

PUBLIC, EPOCHS = 10_000, 6


def images(name: str) -> Tensor:
    pixels = torch.tensor((idx(name) / 255 - 0.1307) / 0.3081, dtype=torch.float32, device=DEVICE)
    return pixels.reshape(-1, 1, 28, 28)


def labels(name: str) -> Tensor:
    return torch.tensor(idx(name).astype(np.int64), device=DEVICE)


def trained(inputs: Tensor, classes: Tensor, kept: Path | None) -> Network:
    torch.manual_seed(0)
    network = mnist().to(DEVICE)
    if kept is not None and kept.exists():
        network.load_state_dict(torch.load(kept, weights_only=True, map_location=DEVICE))
        return network.eval()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(inputs)).to(DEVICE).split(32):
            loss = nn.functional.cross_entropy(network(inputs[batch]), classes[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    if kept is not None:
        torch.save(network.state_dict(), kept)
    return network.eval()


def accuracy(network: Network, noise: Gaussian | None, inputs: Tensor, classes: Tensor) -> float:
    with torch.no_grad():
        features = network.features(inputs) if noise is None else Dithered(network.features, noise)(inputs).float()
        return float((network.head(features).argmax(dim=1) == classes).double().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=200, help="draws from the prior for each bound")
    parser.add_argument("--steps", type=int, default=60, help="steps of each chain")
    parser.add_argument("--loss", type=float, default=0.004, help="accuracy that the noise may cost on public images")
    parser.add_argument("--weights", type=Path, help="the trained network: read from here, or kept here once trained")
    options = parser.parse_args()
    inputs, classes = images("train-images-idx3-ubyte.gz"), labels("train-labels-idx1-ubyte.gz")
    test, truth = images("t10k-images-idx3-ubyte.gz"), labels("t10k-labels-idx1-ubyte.gz")
    network = trained(inputs[:-PUBLIC], classes[:-PUBLIC], options.weights)
    print(f"without noise: accuracy {accuracy(network, None, test, truth):.4f}", flush=True)
    prior = Mixture.fitted(inputs[:-PUBLIC].cpu())
    with torch.no_grad():
        same = Gaussian(float(network.features(test).square().mean().sqrt()))
    start = time.perf_counter()
    public = inputs[-PUBLIC:]
    shaped = Dithered.fit_covariance(
        network.features, network.head, public, labels=classes[-PUBLIC:], loss=options.loss
    ).noise
    print(f"shape fitted in {time.perf_counter() - start:.0f} s", flush=True)
    known = prior.sample(20_000, seed=1)
    for name, noise in (("the same everywhere, RMS of the features", same), ("shaped", shaped)):
        assert isinstance(noise, Gaussian)
        print(f"{name}: accuracy {accuracy(network, noise, test, truth):.4f}", flush=True)
        start = time.perf_counter()
        chains = {"steps": options.steps, "seed": 0}
        bound = posterior_bound(network.features, prior, noise, inputs=options.inputs, **chains)
        rising = ", ".join(f"{steps}: {share:.3f}" for steps, share in bound.curve)
        print(f"  remains for anyone: at least {bound.remaining:.3f} of the variance (steps and mean: {rising})")
        print(f"  in {time.perf_counter() - start:.0f} s", flush=True)
        attack = posterior_attack(network.features, prior, noise, tries=options.inputs, **chains)
        print(f"  left by the chains' mean {attack.value:.3f} ({attack.low:.3f} to {attack.high:.3f})", flush=True)
        network_attack = learned_decoder(network.features, known, prior, noise, epochs=5, width=512)
        print(f"  left by a trained network {network_attack.value:.3f}", flush=True)


if __name__ == "__main__":
    main()
