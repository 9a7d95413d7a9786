"""How near bounds by chains come to the best attack under the same prior, in one run.

    python benchmarks/posterior.py [mnist] [generator] [cifar10] [squeezenet] [--seconds 60] [--out FILE.json]
    python benchmarks/posterior.py linear [--seeds 200]

The baseline is the better of two attacks: the mean of chains that see the release alone, and a decoder that was trained
on draws from the prior. 1 would mean that bound and attack meet. Data are read from the folder TACIT_DATA, or
../shared/data beside the project: mnist/*.gz, cifar10.npz, imagenet/ and squeezenet1_1.safetensors. Networks, noise and
normalisation are those of `tacit reproduce hcr`; for SqueezeNet the noise is 8 times the features' root mean square.
Uses a GPU where torch sees one.

`linear` needs no data: linear features of a Gaussian prior of 784 entries, whose answer is known, with many seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tacit.reconstruction import (
    Gaussian,
    Mixture,
    Spectrum,
    evaluate_decoder,
    linear_decoder,
    posterior_attack,
    posterior_bound,
    train_generator,
    trained_decoder,
)
from tacit.reconstruction.latent_priors import latent
from tacit.reproduce import networks
from tacit.reproduce.data import Data, data_of
from tacit.runtime import run_folder

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CASES = ("mnist", "generator", "cifar10", "squeezenet")
EPOCHS = {"mnist": 6, "cifar10": 7}
DRAWS = {"mnist": 60_000, "generator": 60_000, "cifar10": 30_000, "squeezenet": 8_000}
SCALES = {"mnist": 1, "cifar10": 5, "squeezenet": 8}


def data_folder() -> Path:
    return Path(os.environ.get("TACIT_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def trained(network: networks.Network, data: Data, epochs: int) -> nn.Module:
    """Train as `tacit reproduce hcr` does, with batches of 128."""
    images, labels = torch.tensor(data.known, device=DEVICE), torch.tensor(data.known_labels, device=DEVICE)
    network.to(DEVICE)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for chosen in torch.randperm(len(images), generator=generator).to(DEVICE).split(128):  # type: ignore[no-untyped-call]
            loss = nn.functional.cross_entropy(network(images[chosen]), labels[chosen])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return network.features.eval()


def released(name: str) -> tuple[nn.Module, Data, float]:
    """The features, the data, and the noise's standard deviation."""
    torch.manual_seed(0)
    if name == "squeezenet":
        load = partial(run_folder.load_weights, path=data_folder() / "squeezenet1_1.safetensors")
        data = data_of(name, data_folder(), images=32, seed=0)
        features: nn.Module = networks.squeezenet(load).features.eval().to(DEVICE)
    else:
        data = data_of(name, data_folder(), images=1000, seed=0)
        features = trained({"mnist": networks.mnist, "cifar10": networks.cifar10}[name](), data, EPOCHS[name])
    with torch.no_grad():
        clean = features(torch.tensor(data.images[:500], dtype=torch.float32, device=DEVICE))
    return features, data, SCALES[name] * float(clean.square().mean().sqrt())


def draws(prior: Any, count: int) -> torch.Tensor:
    """Inputs from the prior on which an attacker's network is trained."""
    known = latent(prior)
    numbers, components = known.drawn(count, torch.Generator(DEVICE).manual_seed(7))
    with torch.no_grad():
        parts = zip(torch.split(numbers, 1000), torch.split(components, 1000), strict=True)
        return torch.cat([known.decode(*rows) for rows in parts])


def measured(case: str, seconds: float, inputs: int | None) -> dict[str, Any]:
    features, data, sigma = released("mnist" if case == "generator" else case)
    start = time.perf_counter()
    if case == "squeezenet":
        prior: Any = Spectrum.fitted(data.known)
    elif case == "generator":
        prior = train_generator(data.known)
    else:
        prior = Mixture.fitted(data.known)
    fitted = time.perf_counter()
    noise = Gaussian(sigma)
    count = inputs or {"mnist": 2000, "generator": 1000, "cifar10": 1000, "squeezenet": 64}[case]
    ends = 1 if case == "squeezenet" else 2
    bound = posterior_bound(features, prior, noise, seconds=seconds, inputs=count, ends=ends)
    bounded = time.perf_counter()
    print(case, bound, f"{bounded - fitted:.0f} s", flush=True)
    options: dict[str, Any] = {"steps": bound.steps, "seed": 1}
    options |= {"tries": 32} if case == "squeezenet" else {"tries": 300, "chains": 8}
    attack = posterior_attack(features, prior, noise, **options)
    print(case, attack, f"{time.perf_counter() - bounded:.0f} s", flush=True)
    drawn = draws(prior, DRAWS[case])
    if case == "squeezenet":
        decoded = linear_decoder(features, drawn, prior, noise, tries=500, seed=0)
    else:
        decoder = trained_decoder(features, drawn, noise, seed=0)
        decoded = evaluate_decoder(decoder, features, drawn, prior, noise, tries=1000, seed=0)
    best = min(attack, decoded, key=lambda found: found.high)
    attacked = time.perf_counter()
    found: dict[str, Any] = {
        "case": case,
        "prior": bound.prior,
        "sigma": sigma,
        "bound": bound.remaining,
        "curve": bound.curve,
        "steps": bound.steps,
        "inputs": bound.inputs,
        "accepted": bound.accepted,
        "kernel": bound.kernel,
        "attack": [attack.low, attack.value, attack.high],
        "trained decoder": [decoded.low, decoded.value, decoded.high],
        "ratio": bound.remaining / best.value,
        "seconds": {
            "prior": fitted - start,
            "bound": bounded - fitted,
            "attack": attacked - bounded,
        },
    }
    if case in ("mnist", "generator"):
        known, real = data.known.astype(np.float64), data.images[:300]
        share = float(real.var(axis=0).mean()) / float(prior.variances.mean())
        on_real = posterior_attack(features, prior, noise, held_out=real, **options)
        found["chains on real images"] = share * on_real.value
        for trained_on, inputs_known in (("draws", drawn), ("real images", known)):
            if trained_on == "real images":
                decoder = trained_decoder(features, known, noise, seed=0)
            on_real = evaluate_decoder(decoder, features, inputs_known, real, noise, seed=0)
            found[f"decoder trained on {trained_on}, on real images"] = share * on_real.value
    return found


def linear(seeds: int, inputs: int) -> dict[str, Any]:
    """Bounds as shares of the closed form: how near the first one comes, and how many are above it."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Any:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    turned = torch.linalg.qr(drawn(784, 784))[0]
    covariance = turned @ torch.diag(torch.linspace(0, 4, 784, dtype=torch.float64).neg().exp()) @ turned.T
    weights = 2 * drawn(100, 784) / 28
    known = torch.linalg.inv(weights @ covariance @ weights.T + torch.eye(100, dtype=torch.float64))
    left = covariance - covariance @ weights.T @ known @ weights @ covariance
    truth = float(left.trace() / covariance.trace())
    factor = torch.linalg.cholesky(covariance)
    prior = Mixture(np.zeros((1, 784)), factor, shape=(1, 28, 28), description="a Gaussian")
    features = nn.Sequential(nn.Flatten(), nn.Linear(784, 100, bias=False)).double()
    features[1].weight.data = weights
    options: dict[str, Any] = {"steps": 4, "ends": 1}
    first = posterior_bound(features, prior, Gaussian(1.0), inputs=2000, **options)
    bounds = [
        posterior_bound(features, prior, Gaussian(1.0), inputs=inputs, seed=seed, **options).remaining / truth
        for seed in range(seeds)
    ]
    return {
        "truth": truth,
        "with 2000 inputs": first.remaining / truth,
        "seeds": seeds,
        "inputs": inputs,
        "above the truth": sum(bound > 1 for bound in bounds),
        "least": min(bounds),
        "mean": float(np.mean(bounds)),
        "greatest": max(bounds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    everything = []
    for case in options.cases:
        if case == "linear":
            everything.append(linear(options.seeds, options.inputs or 100))
        else:
            everything.append(measured(case, options.seconds, options.inputs))
        print(json.dumps(everything[-1], indent=1), flush=True)
        if options.out:
            options.out.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
