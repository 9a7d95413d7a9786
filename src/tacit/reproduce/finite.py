"""`tacit reproduce audit figure1`: Figure 1 of a paper on auditing with finite adversaries.

The paper is "Theoretical guarantees for model auditing with finite adversaries". A linear classifier's output T on a
Gaussian mixture, cut off at ±3, is N(Sμ, 1) given a fair secret S = ±1. How small can any adversary's squared error be?
Compared are the truth, the paper's bound from a two-layer network, certificates from the same rows, and a limit that no
valid certificate exceeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, optimize, special, stats

from ..audit import Certificate, certify, certify_network
from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Attack, Comparison
from ..core.wording import safe_text
from ..report import FINE, WEAK, Figure, Report, Table, Verdict, figures
from ..report.wording import percent_down
from ..runtime.files import write_whole
from ..theory.confidence import sampled_mean_lower

MEANS = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1)
DELTA = 0.01
NOISE = 0.1
_EDGE = 3.0
_CHUNK = 10_000
_FAILURE = 0.001
ENOUGH = 0.9
"""The share of the least error from which on a bound is called fine."""
_NAME = "the classifier's output"
_SECONDS_PER_UNIT, _SECONDS_PER_ROW = 2.5e-8, 2.5e-6
"""What a neuron takes for a row, half of it for products with the others of 1000; and a table's row to be certified."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """N(Sμ, 1), cut off at ±3, for a fair coin S."""

    mean: float

    def draw(self, rows: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], _Floats]:
        """Draw secrets ±1 and outputs."""
        secrets = np.where(rng.random(rows) < 0.5, 1, -1)
        low, high = (special.ndtr(edge - self.mean * secrets) for edge in (-_EDGE, _EDGE))
        return secrets, self.mean * secrets + special.ndtri(low + (high - low) * rng.random(rows))

    def density(self, t: Any, secret: int) -> Any:
        """Return the density of the output, given the secret."""
        inside = special.ndtr(_EDGE + self.mean) - special.ndtr(-_EDGE + self.mean)
        return stats.norm.pdf(t, secret * self.mean) / inside

    @property
    def least_loss(self) -> float:
        """The least squared error, equation (50)."""
        found = integrate.quad(
            lambda t: 2 * self.density(t, -1) / (1 + np.exp(-2 * self.mean * t)), -_EDGE, _EDGE, epsabs=1e-13
        )
        return float(found[0])

    def least_loss_with_noise(self, noise: float) -> float:
        """Return the same if T is released with Gaussian noise."""
        nodes, weights = np.polynomial.legendre.leggauss(400)
        t, weights = _EDGE * nodes, _EDGE * weights

        def squared(y: float) -> float:
            # ¼(p₁ − p₀)²/(½(p₁ + p₀)), whose integral is 1 less the loss.
            kernel = weights * stats.norm.pdf(y, t, noise)
            one, other = float(kernel @ self.density(t, 1)), float(kernel @ self.density(t, -1))
            return 0.5 * (one - other) ** 2 / (one + other)

        reach = _EDGE + 8 * noise
        return 1 - float(integrate.quad(squared, -reach, reach, limit=200, epsabs=1e-12)[0])

    def limit(self, rows: int) -> float:
        """Return what the median value of no valid certificate exceeds, even if only μ is unknown.

        S·T is an exponential family in μ, independent of S: the best limit inverts the test by its sum, here with the
        sum's normal approximation.
        """
        quantile = special.ndtri(1 - DELTA) / np.sqrt(rows)
        here = stats.truncnorm(-_EDGE - self.mean, _EDGE - self.mean, loc=self.mean).mean()

        def gap(mean: float) -> float:
            there = stats.truncnorm(-_EDGE - mean, _EDGE - mean, loc=mean)
            return float(there.mean() - quantile * there.std() - here)

        return Mixture(mean=float(optimize.brentq(gap, self.mean, self.mean + 20 * quantile + 1e-6))).least_loss


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to run; the fields are the options of the command line.

    Attributes
    ----------
    experiment
        "figure1".
    out
        The output folder.
    rows
        Rows of each simulated table.
    neurons, restarts
        Of the paper's network; the best of the restarts counts.
    tables
        How many tables are certified; medians are reported.
    seed
        For tables and networks.
    """

    experiment: str
    out: Path
    rows: int = 100_000
    neurons: int = 1_000
    restarts: int = 3
    tables: int = 21
    seed: int = 0


def steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes, on two cores."""
    network = _SECONDS_PER_UNIT * task.rows * task.neurons * (1 + task.neurons / 1000)
    certificates = _SECONDS_PER_ROW * task.rows * task.tables
    return [*[network] * task.restarts, certificates] * len(MEANS)


def reproduce(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Run Figure 1 of the paper, with certificates next to its bound; write results.json, results.md and figures."""
    validate.choice("EXPERIMENT", task.experiment, ("figure1",), remedy="use figure1")
    validate.whole("--rows", task.rows, at_least=100, remedy="the paper uses 100 000")
    validate.whole("--neurons", task.neurons, at_least=1, remedy="the paper uses 1 000")
    validate.whole("--restarts", task.restarts, at_least=1, remedy="use 3")
    validate.whole("--tables", task.tables, at_least=1, remedy="use 21")
    validate.whole("--seed", task.seed, at_least=0, remedy="use 0")
    try:
        task.out.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InputError(
            "--out", str(task.out), requirement="must be a folder", remedy="choose one that can be written"
        ) from None
    rows, comparisons = [], []
    for place, mean in enumerate(MEANS):
        row, comparison = _row(mean, task, np.random.default_rng([task.seed, place]), advance)
        rows.append(row)
        comparisons.append(comparison)
    report = _report(task, rows, comparisons)
    write_whole(task.out / "results.json", report.to_json().encode())
    for name, figure in zip(("losses", "shares"), report.pictures, strict=True):
        write_whole(task.out / f"audit-figure1-{name}.svg", figure.svg.encode())
    write_whole(task.out / "results.md", _markdown(report).encode())
    return report


def _row(
    mean: float, task: Task, rng: np.random.Generator, advance: Callable[[str], None]
) -> tuple[dict[str, float], Comparison]:
    mixture = Mixture(mean=mean)
    secrets, outputs = mixture.draw(task.rows, rng)
    fresh = mixture.draw(task.rows, rng)
    best: tuple[float, Callable[[_Floats], _Floats]] | None = None
    for restart in range(task.restarts):
        advance(f"μ = {mean:g}: network {restart + 1}")
        network = _network(outputs, secrets, task.neurons, rng)
        loss = float(np.mean((secrets - network(outputs)) ** 2))
        if best is None or loss < best[0]:
            best = loss, network
    assert best is not None  # noqa: S101 — there is one restart at least
    advance(f"μ = {mean:g}: certificates")
    first = _certificates(mean, secrets, outputs)
    losses = {name: [one.squared_loss] for name, one in first.items()}
    for _ in range(task.tables - 1):
        for name, one in _certificates(mean, *mixture.draw(task.rows, rng)).items():
            losses[name].append(one.squared_loss)
    printed = certify_network(
        min(1.0, best[0]),
        positives=int((secrets == 1).sum()),
        negatives=int((secrets == -1).sum()),
        neurons=task.neurons,
        barron=mean,
        diameter=2 * _EDGE,
        failure_probability=DELTA,
    )
    truth, limit = mixture.least_loss, mixture.limit(task.rows)
    truths = {"lipschitz": truth, "noisy": mixture.least_loss_with_noise(NOISE), "monotone": truth}
    row = {
        "mean": mean,
        "truth": truth,
        "truth_with_noise": truths["noisy"],
        "empirical": best[0],
        "printed": printed.squared_loss,
        "printed_share": printed.squared_loss / best[0],
        "limit": limit,
        "limit_share": limit / truth,
    }
    for name, found in losses.items():
        row[name] = float(np.median(found))
        row[f"{name}_share"] = row[name] / truths[name]
        row[f"{name}_lowest_share"] = min(found) / truths[name]
        row[f"{name}_highest_share"] = max(found) / truths[name]
    return row, _comparison(first["lipschitz"], best[1], *fresh)


def _certificates(mean: float, secrets: NDArray[np.int64], outputs: _Floats) -> dict[str, Certificate]:
    """Certify under the paper's assumption that η has Barron constant μ, with noise, and with a monotone posterior."""
    common: dict[str, Any] = {"failure_probability": DELTA, "sampling": "pairs", "name": _NAME}
    # About (2·range/(C²n))^(1/3) is best, and depends on no outcome.
    width = min(2 * _EDGE, (4 * _EDGE / (mean**2 * len(outputs))) ** (1 / 3))
    return {
        "lipschitz": certify(secrets, outputs, assume_max_slope=mean, width=width, **common),
        "noisy": certify(secrets, outputs, noise=NOISE, **common),
        "monotone": certify(secrets, outputs, method="monotone", **common),
    }


def _network(
    outputs: _Floats, secrets: NDArray[np.int64], neurons: int, rng: np.random.Generator
) -> Callable[[_Floats], _Floats]:
    """Return a two-layer network: random neurons, and the output layer that fits these rows best.

    No training gives these neurons a lower loss on these rows; Theorem 1 asks for the lowest over all neurons.
    """
    slopes = 2.0 * rng.standard_normal(neurons)
    offsets = -slopes * rng.uniform(-_EDGE, _EDGE, neurons)

    def hidden(t: _Floats) -> NDArray[np.float32]:
        return np.tanh(np.outer(t, slopes) + offsets, dtype=np.float32, casting="same_kind")

    gram, target = np.zeros((neurons, neurons)), np.zeros(neurons)
    for start in range(0, len(outputs), _CHUNK):
        part = hidden(outputs[start : start + _CHUNK])
        gram += part.T @ part
        target += part.T @ secrets[start : start + _CHUNK]
    ridge = 1e-7 * float(np.trace(gram)) + 1e-9
    outer = np.linalg.solve(gram + ridge * np.eye(neurons), target)

    def guess(t: _Floats) -> _Floats:
        return np.concatenate([hidden(t[start : start + _CHUNK]) @ outer for start in range(0, len(t), _CHUNK)])

    return guess


def _comparison(
    certificate: Certificate,
    network: Callable[[_Floats], _Floats],
    secrets: NDArray[np.int64],
    outputs: _Floats,
) -> Comparison:
    """Compare the certificate with the network on rows it never saw; guesses are clipped at ±1."""
    errors = (secrets - np.clip(network(outputs), -1, 1)) ** 2 / 4
    failure = _FAILURE / 2
    low = 4 * sampled_mean_lower(errors, failure_probability=failure)
    high = 4 * (1 - sampled_mean_lower(1 - errors, failure_probability=failure))
    guarantee = certificate.guarantee_of("squared loss")
    attack = Attack(
        quantity=guarantee.quantity,
        value=float(4 * errors.mean()),
        low=low,
        high=high,
        failure_probability=_FAILURE,
        adversary=guarantee.adversary,
        method=f"two-layer network, tested on {len(outputs)} rows of its own",
    )
    return Comparison(guarantee=guarantee, attacks=(attack,))


def _report(task: Task, rows: list[dict[str, float]], comparisons: list[Comparison]) -> Report:
    least = {name: min(row[f"{name}_share"] for row in rows) for name in ("lipschitz", "noisy", "monotone", "limit")}
    shown = {name: safe_text(100 * value, toward="down", digits=4) for name, value in least.items()}
    shown["limit"] = safe_text(100 * least["limit"], toward="up", digits=4)  # which nothing exceeds
    losses, shares = _figures(task, rows, shown)
    return Report(
        command="reproduce audit",
        title="When a failed attack proves that every attack fails",
        summary=_summary(task, shown, [row["printed_share"] for row in rows]),
        comparisons=tuple(comparisons),
        verdicts=_verdicts(least, shown, [row["printed_share"] for row in rows]),
        opening=(losses,),
        figures=(shares,),
        tables=(
            Table(
                title="Figure 1 in numbers",
                columns=("μ", "least error", "network", "paper (51)", "C = μ", "noise", "monotone", "limit"),
                rows=tuple(
                    (
                        f"{row['mean']:g}",
                        f"{row['truth']:.5f}",
                        f"{row['empirical']:.5f}",
                        safe_text(row["printed"], toward="down", digits=4),
                        *(_share(row[f"{name}_share"]) for name in ("lipschitz", "noisy", "monotone", "limit")),
                    )
                    for row in rows
                ),
                note=f"{task.rows} rows, failure probability {DELTA:g}, {task.neurons} neurons, best of "
                f"{task.restarts} networks. The last four columns are shares of the least error, medians over "
                f"{task.tables} tables; with noise, of the least error from the noisy output.",
            ),
        ),
        detail={
            "rows": rows,
            "failure_probability": DELTA,
            "table_rows": task.rows,
            "neurons": task.neurons,
            "noise": NOISE,
        },
    )


def _figures(task: Task, rows: list[dict[str, float]], shown: dict[str, str]) -> tuple[Figure, Figure]:
    means = [row["mean"] for row in rows]

    def line(name: str) -> list[float]:
        return [row[name] for row in rows]

    return (
        Figure(
            title="The least squared error of any adversary",
            caption="1 means no knowledge of the secret. The paper's bound holds if training found the global "
            "minimum; the certificate needs no network.",
            alternative=f"The truth falls to {rows[-1]['truth']:.3f} as μ grows; the certificate stays close, "
            f"the paper's bound falls to {rows[-1]['printed']:.3f}.",
            svg=figures.lines(
                means,
                {
                    "least error (50)": (line("truth"), figures.INK),
                    "network, on its own rows": (line("empirical"), figures.ACHIEVED),
                    "certificate, C = μ": (line("lipschitz"), figures.PROVEN),
                    "paper's bound (51)": (line("printed"), figures.MUTED),
                },
                labels=("μ", "squared error"),
            ),
        ),
        Figure(
            title="How tight certificates are",
            caption="As a share of the truth, medians over "
            f"{task.tables} tables: three certificates, and the largest possible median of a valid one.",
            alternative=f"Certificates lie at {shown['monotone']} % or more, the limit at {shown['limit']} %.",
            svg=figures.lines(
                means,
                {
                    "statistical limit": (line("limit_share"), figures.INK),
                    "C = μ": (line("lipschitz_share"), figures.PROVEN),
                    f"noise of {NOISE:g}": (line("noisy_share"), figures.USEFUL),
                    "monotone": (line("monotone_share"), figures.ACHIEVED),
                },
                labels=("μ", "share of the least error"),
            ),
        ),
    )


def _verdicts(least: dict[str, float], shown: dict[str, str], printed: list[float]) -> tuple[Verdict, ...]:
    """Return the cards: how much of the truth certificates and the paper's bound reach."""
    cards = [
        Verdict(
            level=FINE if least[name] >= ENOUGH else WEAK,
            about=about,
            proven=f"{shown[name]} % of the least error",
            measured=True,
            reason=f"At the worst μ; the certificate itself is proven. {more}",
        )
        for name, about, more in (
            (
                "lipschitz",
                "The certificate, as the paper assumes",
                f"The median of no valid one exceeds {shown['limit']} %.",
            ),
            ("noisy", f"The certificate with noise of {NOISE:g}", "It assumes nothing about the classifier."),
        )
    ]
    paper = Verdict(
        level=FINE if min(printed) >= ENOUGH else WEAK,
        about="The paper's bound (51)",
        proven=f"{percent_down(min(printed))} of the network's error",
        measured=True,
        reason="At the worst μ. It assumes that training found the best network of all.",
    )
    return (*cards, paper)


def _summary(task: Task, shown: dict[str, str], printed: list[float]) -> tuple[str, ...]:
    ours = (
        f"From {task.rows} rows and under the paper's own assumption, a certificate reaches at least "
        f"{shown['lipschitz']} % of the true least error of every adversary; with noise of {NOISE:g} on the output "
        f"{shown['noisy']} %, and if the secret's probability never falls as the output grows {shown['monotone']} %."
    )
    limit = (
        f"These are medians over {task.tables} tables at the worst μ; no valid certificate has a median above "
        f"{shown['limit']} % there, even if only μ is unknown."
    )
    theirs = (
        f"The paper's bound (51) reaches {100 * min(printed):.1f} – {100 * max(printed):.1f} % of the network's error, "
        "and assumes that training found the best network of all."
    )
    return ours, limit, theirs


def _share(value: float) -> str:
    return f"{safe_text(100 * value, toward='down', digits=5)} %"


def _markdown(report: Report) -> str:
    (table,) = report.tables
    lines = [f"# {report.title}", "", *(f"{sentence}\n" for sentence in report.summary)]
    lines += [f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    lines += [f"| {' | '.join(row)} |" for row in table.rows]
    lines += ["", table.note, ""]
    for name, figure in zip(("losses", "shares"), report.pictures, strict=True):
        picture = f"![{figure.alternative}](audit-figure1-{name}.svg)"
        lines += [f"**{figure.title}.** {figure.caption}", "", picture, ""]
    return "\n".join(lines)
