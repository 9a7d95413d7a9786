"""The demo: three releases of handwritten digits, what nobody can learn from them, and what attackers got.

Runs on scikit-learn's bundled digits with the library's public functions. Nothing here is used by the rest of the
library.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import audit, checked, learning, readings
from .errors import MissingExtraError
from .guarantee import Comparison, safe_text
from .report import Chapter, Figure, Report, Slider, Step, Table, figures
from .theory.confidence import binomial_lower, binomial_upper

_Array = NDArray[np.float64]

STEPS = 11
PRIVATE, UNLABELLED = 1200, 300
CANDIDATES = 500
SHOWN = 6
BOUNDED = 24  # images whose modes are bounded one by one
SIZES = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0)  # of the noise, in units of the features
ACCURACY = 0.8  # that the noise has to leave
EPSILON, DELTA = 2.0, 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
TEACHERS, QUERIES = 150, 20
GAMES = 5000  # of the attack on the answers, with a record and without it
ROWS = 20_000  # draws of members, and of others
CERTIFIED = 0.05  # probability with which a certificate may fail


@dataclass(frozen=True, kw_only=True)
class _Digits:
    """Private digits with their labels, public ones, and public ones to test on; images are rows from 0 to 1."""

    private: tuple[_Array, NDArray[np.int64]]
    public: tuple[_Array, NDArray[np.int64]]
    test: tuple[_Array, NDArray[np.int64]]

    @property
    def others(self) -> tuple[_Array, NDArray[np.int64]]:
        """All that is not private."""
        images, labels = (np.concatenate(pair) for pair in zip(self.public, self.test, strict=True))
        return images, labels


def demo(*, seed: int = 0, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Three releases: bound each, attack it, compare. `advance` hears the name of each of the STEPS as it begins.

    The noise of the second part comes from the operating system's entropy, so its numbers differ from run to run.
    """
    from threadpoolctl import threadpool_limits

    seed = checked.whole("seed", seed, at_least=0, remedy="use 0")
    recon = _reconstruction()
    digits = _digits(seed)
    with threadpool_limits(1):  # everything is small: more threads would only wait for one another
        features, features_detail = _features(recon, digits, seed, advance)
        classifier, student, classifier_detail = _classifier(digits, advance)
        scores, scores_detail = _scores(digits, student, seed, advance)
    return Report(
        command="demo",
        title="Three releases of handwritten digits: what nobody can learn, and what attackers got",
        summary=(
            f"1797 small pictures of digits stand for your data: {PRIVATE} are private, the others are public.",
            "They are released in three ways. Each part says what nobody can learn, what attackers got, what helps.",
            "The first and the third release are weak on purpose, as real ones often are before somebody looks.",
        ),
        chapters=(features, classifier, scores),
        detail={
            "seed": seed,
            "features": features_detail,
            "classifier": classifier_detail,
            "scores": scores_detail,
        },
    )


def _reconstruction() -> Any:
    missing = [name for name in ("torch", "opendp") if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"tacit demo must have torch and opendp, got no {' and no '.join(missing)}; pip install 'tacit[demo]'"
        )
    from . import reconstruction

    return reconstruction


def _digits(seed: int) -> _Digits:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 1]).permutation(len(images))
    parts = np.split(order, [PRIVATE, PRIVATE + UNLABELLED])
    private, public, test = ((images[rows] / 16.0, labels[rows]) for rows in parts)
    return _Digits(private=private, public=public, test=test)


# Part 1: noisy features.


def _network(digits: _Digits, seed: int) -> tuple[Any, Any]:
    """A layer whose output is released, and the one that reads the digit from it; trained on public digits."""
    import torch
    from torch import nn

    images, labels = (torch.tensor(part) for part in digits.others)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        layer, head = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).double(), nn.Linear(64, 10).double()
    optimiser = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.01, weight_decay=1e-4)
    for _ in range(150):
        loss = nn.functional.cross_entropy(head(layer(images)), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return layer.eval(), head.eval()


def _features(recon: Any, digits: _Digits, seed: int, advance: Callable[[str], None]) -> tuple[Chapter, dict[str, Any]]:
    import torch

    advance("part 1, features: training a small network")
    layer, head = _network(digits, seed)
    images, labels = digits.private[0][:CANDIDATES], digits.private[1][:CANDIDATES]
    candidates, public = torch.tensor(images), torch.tensor(digits.others[0])
    with torch.no_grad():
        clean = layer(candidates)
        size = float(clean.square().mean().sqrt())
        unnoisy = float((head(clean).argmax(dim=1).numpy() == labels).mean())
    sigmas = [size * share for share in SIZES]
    advance("part 1, features: how much noise, and what it proves")
    chosen = recon.calibrate(layer, head, candidates, labels, target={"accuracy": ACCURACY}, sigmas=sigmas, seed=seed)
    here = sigmas.index(chosen.noise.sigma)
    advance("part 1, features: attacks at every noise")
    named, rebuilt, decoders = [], [], []
    for sigma in sigmas:
        noise = recon.Gaussian(sigma)
        named.append(recon.nearest_candidate(layer, candidates, noise, chosen.identification, seed=seed + 1))
        decoder = recon.trained_decoder(layer, public, noise, epochs=20, width=256, seed=seed)
        with torch.no_grad():
            shown = recon.Dithered(layer, noise)(candidates[:SHOWN])
        rebuilt.append(np.clip(np.asarray(decoder(shown)), 0, 1))
        decoders.append(decoder)
    prior = recon.Gallery(candidates)
    rebuilding = recon.tried_decoder(decoders[here], layer, public, prior, chosen.noise, tries=4096, seed=seed + 1)
    advance("part 1, features: bounds for every mode, and twins")
    squares = candidates[:BOUNDED].reshape(-1, 1, 8, 8)
    network = torch.nn.Sequential(torch.nn.Flatten(), layer)
    unbiased = recon.multipoint_bounds(network, squares, chosen.noise)
    anyone = recon.two_point_bounds(network, squares, chosen.noise, box=(0.0, 1.0))
    twins = recon.twins(network, squares[:SHOWN], chosen.noise, box=(0.0, 1.0), seed=seed)
    told = max(twins.guarantee(index).value for index in range(SHOWN))
    bounds = {"unbiased estimates": unbiased.std, "anyone, on the worse of two": anyone.rmse}
    spread = readings.prior_std(images)
    medians = [
        Comparison(
            guarantee=readings.median_guarantee(
                method, values, spread=spread, noise=chosen.noise, feature_error=unbiased.feature_error
            )
        )
        for method, values in (("two-point", anyone.rmse), ("multi-point", unbiased.std))
    ]
    naming = Comparison(guarantee=chosen.identification, attack=named[here])
    remaining = Comparison(guarantee=chosen.remaining, attack=rebuilding)
    limits, reads = chosen.identification_upper.tolist(), chosen.accuracies.tolist()
    chapter = Chapter(
        title="Noisy features of an image",
        released=f"{clean.shape[1]} numbers that a small network computes from each image, with fresh Gaussian noise "
        f"of standard deviation {chosen.noise.sigma:.3g}, {SIZES[here]:g} times the numbers' own size. The rest of the "
        f"network still reads {_percent(reads[here])} of the digits ({_percent(unnoisy)} without noise).",
        nobody=f"Nobody who holds {CANDIDATES} candidates names the right image more often than "
        f"{_percent_up(limits[here])} of the time, and nobody's rebuilt images have less than "
        f"{_percent_down(chosen.remaining.value)} of the images' own variance as their mean squared error.",
        attacker=f"The nearest candidate is the right one {_percent(named[here].value)} of the time, almost as often "
        "as the proof allows. A network trained on public digits rebuilds images with "
        f"{_percent(rebuilding.value)} of the variance as its error; move the slider to see them.",
        change=_more_noise(reads, limits),
        comparisons=(naming, remaining, *medians),
        sliders=(_noise_slider(images[:SHOWN], reads, limits, chosen.remaining_lower.tolist(), named, rebuilt, here),),
        figures=(
            Figure(
                title="An image, what the bound allows, and a twin",
                caption="Second row: every mode moved, by the toss of a coin, as far as an unbiased estimate of it "
                "must scatter: nothing is left, and that says little, as attackers are biased. Third row: other valid "
                f"images whose features are almost the same. Nobody tells an image from its twin more than "
                f"{_percent_up(told)} of the time.",
                alternative="Three rows of small images: digits, pure noise, and speckled images that hardly look "
                "like digits.",
                svg=figures.image_rows(
                    {
                        "original": list(images[:SHOWN].reshape(-1, 8, 8)),
                        "moved by the bound for unbiased estimates": _squares(
                            readings.moved_by(unbiased.std[:SHOWN], np.asarray(squares[:SHOWN]), basis="dct", seed=seed)
                        ),
                        "twin: its release differs by less than the noise": _squares(twins.inputs),
                    }
                ),
            ),
            Figure(
                title="Bounds on every mode",
                caption=f"Of {BOUNDED} images, 64 cosine modes each. Right: the standard deviation of unbiased "
                "estimates. Left: the root mean squared error of anyone, on the worse of two images. An estimate with "
                "the images' own spread (dashed) as its error has learned nothing.",
                alternative="; ".join(
                    f"{name}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
                    for name, values in bounds.items()
                )
                + f"; the images' own spread is {spread:.2g}",
                svg=figures.histogram(bounds, marked=(spread, "spread of the images"), x_label="bound, per mode"),
            ),
        ),
    )
    return chapter, {
        "sigma": chosen.noise.sigma,
        "accuracy_without_noise": unnoisy,
        "noise_in_units_of_the_features": SIZES,
        "sigmas": sigmas,
        "accuracy": reads,
        "identification_upper": limits,
        "identification_by_attack": [attack.value for attack in named],
        "remaining_lower": chosen.remaining_lower.tolist(),
        "spread_of_the_images": spread,
        "bounds": {"multi-point": unbiased.std.tolist(), "two-point": anyone.rmse.tolist()},
        "twins": {"telling_apart_upper": told, "root_mean_square_difference": twins.difference.tolist()},
    }


def _more_noise(reads: list[float], limits: list[float]) -> str:
    """Where naming becomes rare, and what is left of the accuracy there."""
    rare = next((place for place, limit in enumerate(limits) if limit <= 0.1), len(limits) - 1)
    return (
        f"Noise of {SIZES[rare]:g} times the features keeps everyone below {_percent_up(limits[rare])}, but then only "
        f"{_percent(reads[rare])} of the digits are read. This network cannot have both: release fewer numbers, or "
        "nothing but the digit that was read."
    )


def _noise_slider(
    images: _Array,
    reads: list[float],
    limits: list[float],
    remaining: list[float],
    named: list[Any],
    rebuilt: list[_Array],
    here: int,
) -> Slider:
    lines = {
        "digits still read correctly": (reads, figures.USEFUL),
        "image named by anyone, at most": (limits, figures.PROVEN),
        "image named by the nearest-candidate attack": ([attack.value for attack in named], figures.ACHIEVED),
    }
    steps = []
    for place, size in enumerate(SIZES):
        reading = (
            f"With noise of {size:g} times the features, {_percent(reads[place])} of the digits are read. Nobody names "
            f"the image more often than {_percent_up(limits[place])} of the time; the attack did "
            f"{_percent(named[place].value)} of the time. At least {_percent_down(remaining[place])} of the images' "
            "variance stays hidden, whoever rebuilds them."
        )
        curve = figures.curves(
            SIZES, lines, x_label="noise ÷ size of the features", y_label="share of releases", marked=(size, "here")
        )
        pictures = figures.image_rows(
            {"original": _squares(images), "rebuilt by an attacker, from one release": _squares(rebuilt[place])}
        )
        steps.append(
            Step(
                name=f"{size:g}",
                values=(
                    _percent(reads[place]),
                    _percent_up(limits[place]),
                    _percent(named[place].value),
                    _percent_down(remaining[place]),
                ),
                reading=reading,
                pictures=(
                    (f"Accuracy, proven limit and attack all fall as the noise grows; {size:g} is marked.", curve),
                    (f"{SHOWN} digits, and what an attacker makes of them with noise of {size:g}.", pictures),
                ),
            )
        )
    return Slider(
        title="What more noise buys, and costs",
        caption="Noise in units of the features' root mean square. Read: digits that the network still reads. Nobody "
        "names, hidden: proven, all rows together except with probability 0.001. Attack names: measured.",
        columns=("noise", "read", "nobody names", "attack names", "hidden"),
        steps=tuple(steps),
        chosen=here,
    )


# Part 2: a classifier that may be published.


def _mechanism(epsilon: float) -> learning.GNMax:
    return learning.GNMax(epsilon=epsilon, delta=DELTA, queries=QUERIES, counts=True)


def _private_classifier(epsilon: float) -> learning.PrivateClassifier:
    """Teachers and student are nearest neighbours: any learner will do, differentiable or not."""
    from sklearn.neighbors import KNeighborsClassifier

    return learning.PrivateClassifier(
        KNeighborsClassifier(1),
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=TEACHERS,
        mechanism=_mechanism(epsilon),
        student=learning.Propagated(KNeighborsClassifier(5)),
        classes=range(10),
    )


def _classifier(digits: _Digits, advance: Callable[[str], None]) -> tuple[Chapter, Any, dict[str, Any]]:
    from sklearn.neighbors import KNeighborsClassifier

    advance("part 2, classifier: teachers vote, a student learns")
    mechanism, model = _mechanism(EPSILON), _private_classifier(EPSILON)
    model.fit(*digits.private, digits.public[0])
    student = model.published()
    right = int(np.sum(student.predict(digits.test[0]) == digits.test[1]))
    trials = len(digits.test[1])
    low, high = (limit(right, trials=trials, failure_probability=0.025) for limit in (binomial_lower, binomial_upper))
    plain = float(KNeighborsClassifier(5).fit(*digits.private).score(*digits.test))
    advance("part 2, classifier: an attack on the answers")
    half = 10 * TEACHERS  # far from where a count could fall below 0
    game = learning.Game(
        name="winners that differ",
        left=[(half + 1, half)] * QUERIES,
        right=[(half, half + 1)] * QUERIES,
    )
    attack = learning.distinguishing_attack(
        mechanism, runs=GAMES, length=QUERIES, failure_probability=0.01, tried=[game]
    )
    advance("part 2, classifier: more and less budget")
    scores = [
        right / trials
        if epsilon == EPSILON
        else float(_private_classifier(epsilon).fit(*digits.private, digits.public[0]).score(*digits.test))
        for epsilon in EPSILONS
    ]
    sigma = mechanism.sigma
    ordered = np.sort(np.asarray(model.noisy_counts_)[model.answered_], axis=1)
    true = np.sort(model.teachers_.counts(digits.public[0][model.answered_]), axis=1)
    leads = {
        "true votes, which stay private": (true[:, -1] - true[:, -2]) / TEACHERS,
        "noisy counts, which are released": (ordered[:, -1] - ordered[:, -2]) / TEACHERS,
    }
    factor = safe_text(float(np.exp(EPSILON)), toward="up")
    chapter = Chapter(
        title="A classifier learned from private records",
        released=f"A nearest-neighbour classifier that has never seen a private record. {TEACHERS} teachers, each "
        f"trained on about {PRIVATE // TEACHERS} private digits, voted on {QUERIES} public images; the counts were "
        f"released with exact discrete Gaussian noise of {sigma:.1f} votes, and the classifier learned from them and "
        f"from {UNLABELLED} unlabelled public images. It reads {_percent(right / trials)} of the test digits "
        f"({_percent(low)} to {_percent(high)} with 95 % confidence; {_percent(plain)} without privacy).",
        nobody="Whether a given digit was among the private ones: that makes nothing that anyone sees more than "
        f"{factor} times as likely or unlikely (ε = {EPSILON:g}), except with probability δ = {DELTA:g}, whatever they "
        "know and however often they use the classifier.",
        attacker=f"An attacker who knows all records but one, and all votes, and plays {QUERIES} queries "
        f"{2 * GAMES} times, shows a privacy loss of {attack.value:.2g}, with 99 % confidence at least "
        f"{safe_text(attack.low, toward='down')}. The rest of ε lies in events too rare to be seen in so few games.",
        change="Get more records: ten times as many make ten times as many teachers, among whom the same noise counts "
        "a tenth. A larger ε buys accuracy and sells the promise; choose it before you look at the records, with "
        "tacit plan.",
        comparisons=(Comparison(guarantee=model.guarantee_, attack=attack),),
        tables=(
            Table(
                title="The budget, and what it bought",
                columns=("what", "value"),
                rows=(
                    ("privacy loss ε of everything released", f"{EPSILON:g}"),
                    ("δ that belongs to it", f"{DELTA:g}"),
                    ("answers, all paid from it together", f"{len(model.answered_)}"),
                    ("noise in every count", f"{sigma:.1f} votes of {TEACHERS}"),
                    ("left for another release", "none"),
                ),
                note="Another run on the same records would be another release, with a cost of its own.",
            ),
        ),
        figures=(
            Figure(
                title="Margins, before and after the noise",
                caption="By how much the winning digit led, as a share of all teachers, on each query. Leads beyond "
                "the noise (dashed) survive it. True votes are shown only because these digits are public.",
                alternative=f"Two histograms of leads, with noise of {_percent(sigma / TEACHERS)} of the votes marked: "
                + ", ".join(f"{name} have a median of {_percent(float(np.median(x)))}" for name, x in leads.items()),
                svg=figures.leads(leads, sigma / TEACHERS),
            ),
            Figure(
                title="Accuracy against budget",
                caption="Each dot is a release of its own, with fresh noise, and would cost its own ε on private "
                "records. Repeat the demo, and the dots move: so much do 20 noisy answers vary.",
                alternative="Accuracy on test digits: "
                + "; ".join(f"{_percent(score)} at ε = {e:g}" for e, score in zip(EPSILONS, scores, strict=True)),
                svg=figures.curves(
                    EPSILONS,
                    {"test digits read correctly": (scores, figures.USEFUL)},
                    x_label="privacy loss ε",
                    y_label="accuracy",
                    marked=(EPSILON, "this release"),
                ),
            ),
        ),
    )
    return (
        chapter,
        student,
        {
            "epsilon": EPSILON,
            "delta": DELTA,
            "teachers": TEACHERS,
            "answers": len(model.answered_),
            "sigma_votes": sigma,
            "accuracy": {"value": right / trials, "low": low, "high": high, "records": trials},
            "accuracy_without_privacy": plain,
            "epsilons": EPSILONS,
            "accuracies": scores,
            "leads": {name: values.tolist() for name, values in leads.items()},
        },
    )


# Part 3: an audit of scores.


@dataclass(frozen=True, kw_only=True)
class _Audited:
    """What an audit of one model's confidence found; the best attack comes first."""

    secret: NDArray[Any]
    output: _Array
    certificate: audit.Certificate
    tried: tuple[audit.Attempt, ...]

    @property
    def comparison(self) -> Comparison:
        return Comparison(guarantee=self.certificate.guarantee, attack=self.tried[0].attack)


def _audited(model: Any, name: str, digits: _Digits, seed: int) -> _Audited:
    table = audit.membership(model, digits.private, digits.others, draws=ROWS, seed=seed)
    output = np.round(table.scores["confidence"], 1)  # what is released, and few values to certify
    secret = np.where(table.member, "training record", "another record")
    certificate = audit.certify(secret, output, delta=CERTIFIED, loss="joint", name=name)
    tried = audit.attempts(
        secret, output, certificate=certificate, methods=("threshold", "histogram", "boosting"), seed=seed
    )
    return _Audited(secret=secret, output=output, certificate=certificate, tried=tried)


def _scores(digits: _Digits, student: Any, seed: int, advance: Callable[[str], None]) -> tuple[Chapter, dict[str, Any]]:
    from sklearn.ensemble import RandomForestClassifier

    advance("part 3, scores: training a forest that knows its records by heart")
    forest = RandomForestClassifier(20, bootstrap=False, random_state=seed).fit(*digits.private)
    advance("part 3, scores: certificate and attacks on the forest")
    leaky = _audited(forest, "the confidence of the forest, to one digit", digits, seed)
    advance("part 3, scores: the same for the private classifier")
    tight = _audited(student, "the confidence of the private classifier, to one digit", digits, seed)
    advance("part 3, scores: certificates from fewer rows")
    points, least = _growth(tight, seed)
    accuracy = float(forest.score(*digits.others))
    low = safe_text(leaky.tried[0].attack.low, toward="down")
    chapter = Chapter(
        title="The confidence scores of an over-fitted model",
        released=f"How sure a random forest is of its answer, to one digit, for any image that is sent to it. The "
        f"forest learned the {PRIVATE} private digits by heart, and reads {_percent(accuracy)} of the others.",
        nobody=f"Nobody who sees the score tells the digits that it was trained on from others with an advantage (true "
        f"minus false positives) above {_up(leaky.certificate.advantage)}, where 0 is guessing and 1 is certainty. "
        "That is a limit, and a bad one.",
        attacker=f"A {leaky.tried[0].method} on the score reached {leaky.tried[0].attack.value:.2f}, with "
        f"{100 * leaky.tried[0].attack.confidence:.1f} % confidence at least {low}. The forest gives its records "
        "away, and no cleverer attack on this score gets much further.",
        change=f"Publish the classifier of part 2 instead: nobody's advantage by its score exceeds "
        f"{_up(tight.certificate.advantage)}, and the best attack reached {tight.tried[0].attack.value:.2f}. It reads "
        f"{_percent(float(student.score(*digits.test)))} of the test digits. To keep a forest, let no leaf "
        "hold fewer than some dozen records, and audit it again.",
        comparisons=(leaky.comparison, tight.comparison),
        figures=(
            _roc(leaky, "Where every attack on the forest has to stay"),
            _roc(tight, "The same for the private classifier"),
            Figure(
                title="The certificate against the number of rows",
                caption="For the private classifier. Dots: certificates from so many rows, each valid alone. Line: "
                "what as many rows certify where nothing differs. Dots stay above the line because any two sets of "
                "digits differ a little, even for a model that saw neither: the proof is about these very digits.",
                alternative=f"The certified advantage falls from {points[0][1]:.2f} with {points[0][0]} rows to "
                f"{points[-1][1]:.3f} with {points[-1][0]}.",
                svg=figures.growth(points, least, levels={}, marked={}),
            ),
        ),
        tables=(_audit_table(leaky, tight),),
    )
    return chapter, {
        "draws": ROWS,
        "accuracy_of_the_forest": accuracy,
        **{
            name: {
                "advantage_upper": found.certificate.advantage,
                "balanced_accuracy_upper": found.certificate.balanced_accuracy,
                "auc_upper": found.certificate.auc,
                "bits_upper": found.certificate.bits,
                "attacks": {attempt.method: list(attempt.rates.advantage) for attempt in found.tried},
            }
            for name, found in (("forest", leaky), ("private_classifier", tight))
        },
        "certificate_by_rows": {str(rows): advantage for rows, advantage in points},
    }


def _growth(found: _Audited, seed: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Certificates from parts of the table, and from as many rows that tell nothing."""
    order = np.random.default_rng([seed, 2]).permutation(ROWS)
    options: dict[str, Any] = {"delta": CERTIFIED, "loss": "joint"}
    points, least = [], []
    for half in (100, 200, 500, 1000, 2000, 5000, 10_000, ROWS):
        rows = np.concatenate([order[:half], ROWS + order[:half]])
        part = audit.certify(found.secret[rows], found.output[rows], **options)
        nothing = audit.certify([False, True], [0, 0], weights=[half, half], **options)
        points.append((2 * half, part.advantage))
        least.append((2 * half, nothing.advantage))
    return points, least


def _roc(found: _Audited, title: str) -> Figure:
    return Figure(
        title=title,
        caption="Nobody who sees only this score leaves the shaded region, whatever the method. Lines: the attacks, "
        "on rows of their own, which may stray by chance. The diagonal is guessing.",
        alternative=f"True against false positive rate: the region reaches {_up(found.certificate.advantage)} above "
        f"the diagonal, the best attack {found.tried[0].attack.value:.2f}.",
        svg=found.certificate.plot(found.tried).svg,
    )


def _audit_table(leaky: _Audited, tight: _Audited) -> Table:
    rows = [
        (words, *(_up(getattr(found.certificate, name)) for found in (leaky, tight)))
        for words, name in (
            ("advantage, at most", "advantage"),
            ("right guesses, at most", "balanced_accuracy"),
            ("area under the ROC, at most", "auc"),
            ("bits about membership, at most", "bits"),
        )
    ]
    reached = tuple(f"{found.tried[0].attack.value:.4f}" for found in (leaky, tight))
    return Table(
        title="What nobody exceeds",
        columns=("reading", "forest", "private classifier"),
        rows=(*rows, ("advantage of the best attack", *reached)),
        note=f"Proven from {2 * ROWS} draws of these very digits, half members and half others, for the average one of "
        f"them; each column except with probability {CERTIFIED:g}. Guessing: 0 advantage, 0.5 right, area 0.5, 0 bits.",
    )


def _squares(images: _Array) -> list[_Array]:
    return list(np.clip(images, 0, 1).reshape(-1, 8, 8))


def _up(value: float) -> str:
    return safe_text(value, toward="up")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _percent_up(share: float) -> str:
    return f"{safe_text(100 * share, toward='up', digits=2)} %"


def _percent_down(share: float) -> str:
    return f"{safe_text(100 * share, toward='down', digits=2)} %"
