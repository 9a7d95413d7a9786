"""`tacit reproduce audit adult` and `mnist`: finished models, audited.

adult    what a prediction of income, or its score, tells about a person's sex and race
mnist    what a classifier's answers tell about whether an image was among its training images: of one that learned
         them by heart, of a private one, and of the private one's learner with hardly any noise

Secrets, outputs, noise and the ceiling were fixed before these tables were seen, on other draws of images. Scores and
finished audits are files of the output folder, so that a run that was killed goes on with `resume`; no private model is
drawn twice.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from .. import __version__, checked, kept
from ..audit import Audit, ImpliedByDP, attempts, certify, membership
from ..errors import InputError
from ..guarantee import Comparison, safe_text
from ..learning import Columns, MomentClassifier, OrientedGradients
from ..report import Figure, Report, Table, figures
from .data import adult_tables, data_folder, mnist_rows
from .results import write_results

CEILING, DELTA = 0.1, 0.05
SCORE_NOISE, LOSS_NOISE, LIRA_NOISE = 0.1, 0.1, 0.5
BUDGETS = {"private, ε = 1": 1.0, "hardly any noise": 100.0}
"""Two of one learner: a private one, and one that shows what the learner does without the noise."""

PRIVATE_DELTA = 1e-5
HIDDEN, EPOCHS = 128, 40  # of the network that learns its images by heart
COMPONENTS = 300  # of the private classifier's public features

_TRUTH = "true income"
_CLASS, _NOISY_SCORE = "class", "noisy score"
_LEARNED = "learned by heart"
_NOISY_LOSS, _NOISY_LIRA = "noisy loss", "noisy LiRA score"
_MODELS = {
    "all columns": (),
    "no sex, race": ("sex", "race"),
    "no kinship either": ("sex", "race", "relationship", "marital-status"),
}
_SCORES = ("loss", "confidence", "entropy", "correct", "lira")
_ATTACKED = 40_000  # rows, where they are drawn with replacement
_RATES = (np.linspace(0, 1, 101) ** 2).tolist()

_Array = NDArray[Any]
_Advance = Callable[[str], None]
_Found = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to run; the fields are the options of the command line.

    `records` are the people audited, or the members and as many others; `rows` are drawn of these for each audit.
    """

    experiment: str
    out: Path
    data: Path | None = None
    records: int | None = None
    rows: int = 200_000
    shadows: int = 16
    seed: int = 0
    resume: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class _Case:
    """One audit: what is told apart by what, and what differential privacy implies for it, if the model has any."""

    model: str
    secret: str
    output: str
    secrets: _Array
    outputs: _Array
    noise: float | None = None
    private: ImpliedByDP | None = None

    @property
    def file(self) -> str:
        name = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.model} {self.secret} {self.output}")
        return f"{name}.json"


def steps(task: Task) -> int:
    """How often `reproduce` calls `advance`."""
    return 1 + (3 + 14 if task.experiment == "adult" else 3 + 12)


def reproduce(task: Task, *, advance: _Advance = lambda _: None) -> Report:
    """Train what is to be audited, audit it, and report; goes on where an earlier run stopped."""
    checked.whole("--seed", task.seed, at_least=0, remedy="use 0")
    if task.records is not None:
        checked.whole("--records", task.records, at_least=100, remedy="leave it out")
    advance("reading the data")
    study = {"adult": _adult, "mnist": _mnist}[
        checked.choice("EXPERIMENT", task.experiment, ("adult", "mnist"), remedy="see tacit reproduce audit --help")
    ]
    return study(task, data_folder(task.data), advance)


def _adult(task: Task, folder: Path, advance: _Advance) -> Report:
    """The larger file of Adult is audited, the smaller one is learned from: rows make certificates tight."""
    (table, income), (known, known_income) = adult_tables(folder / "adult.tar.xz")
    count = len(income) if task.records is None else task.records
    if count > len(income):
        raise InputError("--records", count, requirement=f"must be at most {len(income)}", remedy="leave it out")
    chosen = np.sort(np.random.default_rng(task.seed).permutation(len(income))[:count])
    table, income = {name: column[chosen] for name, column in table.items()}, income[chosen]
    kept.claim(task.out, _mark(task, [*table.values(), *known.values()]), resume=task.resume)
    scores = {}
    for name, left_out in _MODELS.items():
        advance(f"training: {name}")
        path = task.out / f"scores-{len(left_out)}.npy"
        make = partial(_income_scores, table, known, known_income, left_out, task.seed)
        scores[name] = kept.array(path, (count,), make)
    secrets = {"sex": table["sex"], "race": np.where(table["race"] == "White", "white", "other")}
    cases = []
    for secret, values in secrets.items():
        cases.append(_Case(model=_TRUTH, secret=secret, output=_CLASS, secrets=values, outputs=income))
        for name, score in scores.items():
            common: Any = {"model": name, "secret": secret, "secrets": values}
            cases.append(_Case(**common, output=_CLASS, outputs=(score > 0.5).astype(np.int64)))
            cases.append(_Case(**common, output=_NOISY_SCORE, outputs=score, noise=SCORE_NOISE))
    found = _audits(task, cases, advance, attacked=np.arange(count))
    right = [f"{100 * np.mean((score > 0.5) == income):.1f} % ({name})" for name, score in scores.items()]
    summary = (
        (
            f"{count} people are audited; the models learned from {len(known_income)} others, and are right about the "
            f"income of {', '.join(right)}."
        ),
        (
            f"Income itself tells {_between(found, _TRUTH, 'sex', _CLASS)} about sex and "
            f"{_between(found, _TRUTH, 'race', _CLASS)} about race: what a model that is always right has to tell."
        ),
        *(_blindness(found, secret) for secret in secrets),
        (
            "These are advantages (TPR − FPR), from what an attack has shown to what nobody exceeds. Sex is Female or "
            "Male in this data set; race is white or other."
        ),
        *_counted(found),
    )
    shown = _intervals(
        {f"{one['secret']} from {one['output']} ({one['model']})": one for one in found},
        "What a prediction of income tells about people",
    )
    return _delivered(
        task,
        title="What a prediction of income tells about sex and race",
        heading="Adult: protected attributes from predictions",
        summary=summary,
        tables=_tables(
            found,
            ("model", "secret", "output"),
            f"Noisy: with Gaussian noise of {SCORE_NOISE:g}. Models were given all columns, all but sex and race, or "
            "neither these nor relationship and marital status.",
        ),
        found=found,
        shown={
            "intervals": shown,
            "roc": _roc(_one(found, next(iter(_MODELS)), "sex", _NOISY_SCORE)),
        },
    )


def _income_scores(
    table: Mapping[str, _Array], known: Mapping[str, _Array], income: _Array, left_out: Sequence[str], seed: int
) -> NDArray[np.float64]:
    """The chance of a large income that gradient boosting gives to each person."""
    seen = {name: column for name, column in known.items() if name not in left_out}
    columns = Columns().fit(seen)
    model = HistGradientBoostingClassifier(random_state=seed).fit(columns.transform(seen), income)
    chances: NDArray[np.float64] = model.predict_proba(columns.transform(table))[:, 1]
    return chances


def _blindness(found: list[_Found], secret: str) -> str:
    by_model = [f"{_between(found, name, secret, _NOISY_SCORE)} ({name})" for name in _MODELS]
    return f"A score with noise of {SCORE_NOISE:g} tells about {secret}: {'; '.join(by_model)}."


def _mnist(task: Task, folder: Path, advance: _Advance) -> Report:
    """Members and others are training images of MNIST; its test images are the public ones, without labels."""
    checked.whole("--rows", task.rows, at_least=400, remedy="leave it out")
    checked.whole("--shadows", task.shadows, at_least=4, remedy="leave it out")
    images, labels, public, _ = mnist_rows(folder / "mnist")
    count = 3_000 if task.records is None else task.records
    if 2 * count > len(labels):
        raise InputError("--records", count, requirement=f"must be at most {len(labels) // 2}", remedy="lower it")
    kept.claim(task.out, _mark(task, [images, public]), resume=task.resume)
    places = np.random.default_rng([task.seed, count]).permutation(len(labels))[: 2 * count]
    sides = places[:count], places[count:]
    tables = {}
    advance(f"training: {_LEARNED}")
    by_heart = partial(_by_heart, seed=task.seed)
    pixels = [(images[side], labels[side]) for side in sides]
    tables[_LEARNED] = _scores(task, "by-heart", by_heart, lambda: pixels)
    features = make_pipeline(OrientedGradients(), Nystroem(gamma=2.0, n_components=COMPONENTS, random_state=0))

    def transformed() -> list[tuple[_Array, _Array]]:
        if not hasattr(features, "public_"):
            features.public_ = features.fit(public).transform(public)
        return [(features.transform(images[side]), labels[side]) for side in sides]

    for name, epsilon in BUDGETS.items():
        advance(f"training: {name}")
        tables[name] = _scores(
            task,
            f"private-{epsilon:g}",
            lambda x, y, epsilon=epsilon: _Chances(epsilon, x, y, features.public_),  # type: ignore[misc]
            transformed,
        )
    cases = []
    for name, table in tables.items():
        known = dict(zip(_SCORES, table[1:], strict=True))
        private = ImpliedByDP(epsilon=BUDGETS[name], delta=PRIVATE_DELTA) if name in BUDGETS else None
        common = {"model": name, "secret": "member", "secrets": table[0] == 1, "private": private}
        right, confidence = known["correct"].astype(np.int64), np.round(known["confidence"], 1)
        cases += [
            _Case(**common, output="right or wrong", outputs=right),
            _Case(**common, output="confidence, 1 digit", outputs=confidence),
            _Case(**common, output=_NOISY_LOSS, outputs=known["loss"], noise=LOSS_NOISE),
            _Case(**common, output=_NOISY_LIRA, outputs=known["lira"], noise=LIRA_NOISE),
        ]
    half = task.rows // 2
    attacked = np.arange(min(_ATTACKED // 2, half))
    found = _audits(task, cases, advance, attacked=np.concatenate([attacked, half + attacked]))
    shown = _intervals(
        {f"{one['output']} ({one['model']})": one for one in found}, "What answers tell about the training images"
    )
    return _delivered(
        task,
        title="What a classifier of digits tells about its training images",
        heading="MNIST: membership",
        summary=_membership_summary(task, count, tables, found),
        tables=_tables(
            found,
            ("model", "output"),
            "DP allows: what the model's own guarantee implies, without any table, where membership is tossed like a "
            "coin before training. Noisy: with Gaussian noise, of "
            f"{LOSS_NOISE:g} on the loss and of {LIRA_NOISE:g} on the LiRA score. Hardly any noise: the private "
            f"learner with ε = {BUDGETS['hardly any noise']:g}.",
        ),
        found=found,
        shown={
            "intervals": shown,
            "roc-by-heart": _roc(_one(found, _LEARNED, "member", _NOISY_LIRA)),
            "roc-private": _roc(_one(found, next(iter(BUDGETS)), "member", _NOISY_LOSS)),
        },
    )


def _scores(
    task: Task, name: str, train: Callable[[_Array, _Array], Any], records: Callable[[], list[tuple[_Array, _Array]]]
) -> _Array:
    """Rows drawn from members and others: whether it is a member, and the model's scores."""

    def made() -> NDArray[np.float64]:
        members, others = records()
        model = train(*members)
        table = membership(
            model, members, others, factory=train, shadows=task.shadows, draws=task.rows // 2, seed=task.seed
        )
        columns = [table.member, *(table.scores[score] for score in _SCORES)]
        return np.array(columns, dtype=np.float64)

    return kept.array(task.out / f"scores-{name}.npy", (1 + len(_SCORES), 2 * (task.rows // 2)), made)


def _by_heart(images: _Array, labels: _Array, *, seed: int) -> Any:
    """A network without any penalty, trained long enough to be right about all of 3000 images."""
    model = MLPClassifier((HIDDEN,), alpha=0.0, max_iter=EPOCHS, n_iter_no_change=EPOCHS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops where it was told to
        # scikit-learn answers Ctrl-C with a warning and a half-trained network.
        warnings.filterwarnings("error", message="Training interrupted by user")
        try:
            return model.fit(images, labels)
        except UserWarning:
            raise KeyboardInterrupt from None


class _Chances:
    """A private classifier with chances: its fitted values, of the size that they have on public points, by softmax."""

    def __init__(self, epsilon: float, inputs: _Array, labels: _Array, public: _Array) -> None:
        model = MomentClassifier(epsilon=epsilon, delta=PRIVATE_DELTA, ridge=0.5, classes=range(10))
        self._model = model.fit(inputs, labels, public)
        self._size = float(np.std(self._model.decision_function(public)))
        self.classes_ = self._model.classes_

    def predict_proba(self, inputs: _Array) -> NDArray[np.float64]:
        chances: NDArray[np.float64] = special.softmax(self._model.decision_function(inputs) / self._size, axis=1)
        return chances


def _membership_summary(task: Task, count: int, tables: Mapping[str, _Array], found: list[_Found]) -> tuple[str, ...]:
    right = []
    for name, table in tables.items():
        correct = dict(zip(_SCORES, table[1:], strict=True))["correct"]
        member, other = (100 * correct[table[0] == side].mean() for side in (1, 0))
        right.append(f"{member:.1f} and {other:.1f} % ({name})")
    private, bare = BUDGETS
    implied = safe_text(ImpliedByDP(epsilon=BUDGETS[private], delta=PRIVATE_DELTA).advantage, toward="up")
    worst = {name: max(one["high"] for one in found if one["model"] == name) for name in tables}
    shown = {name: max(one["low"] for one in found if one["model"] == name) for name in tables}
    low, high = safe_text(shown[_LEARNED], toward="down"), safe_text(worst[_LEARNED], toward="up")
    return (
        (
            f"{count} training images are members, {count} more are not; {task.rows} rows are drawn from them for "
            "each audit, with replacement, so that rows are independent given the model: certificates are about a "
            "random one of these members against a random one of these others."
        ),
        (
            f"Right about members and others: {'; '.join(right)}. The private classifiers have public features, made "
            "from MNIST's test images without their labels; the network has none."
        ),
        (
            f"The worst of the four outputs of the network that learned by heart lets an attack reach {low}, and "
            f"nobody more than {high}."
        ),
        (
            f"No output of the private classifier gives anyone more than {safe_text(worst[private], toward='up')}. Its "
            f"guarantee alone, ε = {BUDGETS[private]:g} at δ = {PRIVATE_DELTA:g}, would allow {implied}: it holds for "
            "the worst record and for those who see the whole model, the certificate for the average record and one "
            "output."
        ),
        (
            f"The same learner with hardly any noise gives nobody more than {safe_text(worst[bare], toward='up')}, and "
            f"an attack {safe_text(shown[bare], toward='down')}: so much of the protection is the learner's, not the "
            "noise's."
        ),
        (
            "Loss is for those who know the image's label. Who computes the LiRA score also holds the image and "
            f"{task.shadows} shadow models; its certificate covers those who see that score and nothing else."
        ),
        *_counted(found),
    )


def _audits(task: Task, cases: Sequence[_Case], advance: _Advance, *, attacked: _Array) -> list[_Found]:
    """Every audit, those that are finished from their files; all certificates hold together."""
    found = []
    for case in cases:
        advance(f"auditing {case.secret} from {case.model}: {case.output}")
        made = partial(_audited, case, DELTA / len(cases), attacked, task.seed)
        found.append(kept.record(task.out / case.file, made))
    return found


def _audited(case: _Case, delta: float, attacked: _Array, seed: int) -> _Found:
    certificate = certify(
        case.secrets,
        case.outputs,
        delta=delta,
        loss="joint",
        noise=case.noise,
        name=f"{case.output} of the model “{case.model}”",
        seed=seed,
    )
    tried = attempts(
        case.secrets[attacked],
        case.outputs[attacked],
        certificate=certificate,
        noise=case.noise,
        failure_probability=0.1 * delta,
        seed=seed,
    )
    whole = Audit(
        certificate=certificate, attacks=tuple(attempt.attack for attempt in tried), require_advantage=CEILING
    )
    return {
        "model": case.model,
        "secret": case.secret,
        "output": case.output,
        "low": whole.low,
        "high": whole.high,
        "verdict": whole.verdict,
        "judged": "met" if whole.met else "broken" if whole.low > CEILING else "not proven",
        "failure_probability": whole.failure_probability,
        "tpr_at_1_percent": float(certificate.tpr_at(0.01)),
        "auc": certificate.auc,
        "bits": certificate.bits,
        "epsilon_shown": max(attempt.epsilon for attempt in tried),
        "implied": None if case.private is None else case.private.advantage,
        "attack": tried[0].method,
        "roc": {attempt.name: attempt.roc for attempt in tried},
        "region": np.asarray(certificate.tpr_at(_RATES)).tolist(),
        "comparison": whole.comparisons[0].to_dict(),
    }


def _one(found: list[_Found], model: str, secret: str, output: str) -> _Found:
    (one,) = [one for one in found if (one["model"], one["secret"], one["output"]) == (model, secret, output)]
    return one


def _between(found: list[_Found], model: str, secret: str, output: str) -> str:
    one = _one(found, model, secret, output)
    return f"{safe_text(one['low'], toward='down')} – {safe_text(one['high'], toward='up')}"


def _counted(found: list[_Found]) -> tuple[str, ...]:
    judged = [one["judged"] for one in found]
    failing = sum(one["failure_probability"] for one in found)
    return (
        (
            f"A ceiling of {CEILING:g} is met by {judged.count('met')} of {len(judged)} outputs, broken by "
            f"{judged.count('broken')}, and not proven for {judged.count('not proven')}."
        ),
        (
            f"All intervals hold together except with probability {failing:.2g}, for the average record and who sees "
            "just that output."
        ),
    )


def _tables(found: list[_Found], labels: tuple[str, ...], note: str) -> tuple[Table, Table]:
    implied = any(one["implied"] is not None for one in found)
    told, read = [], []
    for one in found:
        named = [one[label] for label in labels]
        cells = [safe_text(one["low"], toward="down"), safe_text(one["high"], toward="up")]
        if implied:
            cells.append("–" if one["implied"] is None else safe_text(one["implied"], toward="up"))
        told.append((*named, *cells, one["judged"]))
        cells = [safe_text(one[name], toward="up") for name in ("tpr_at_1_percent", "auc", "bits")]
        read.append((*named, *cells, safe_text(one["epsilon_shown"], toward="down")))
    return (
        Table(
            title="What is told, as an advantage",
            columns=(*labels, "shown", "at most", *["DP allows"] * implied, f"{CEILING:g} allowed"),
            rows=tuple(told),
            note="Advantages, TPR − FPR. Shown: by the best attack, on rows of its own. At most: certified, for "
            f"everyone who sees the output. {note}",
        ),
        Table(
            title="Other readings of the same certificates and attacks",
            columns=(*labels, "TPR at 1 % FPR", "AUC", "bits", "ε shown"),
            rows=tuple(read),
            note="The first three are never exceeded. ε shown: by an attack; for no smaller ε are the two classes' "
            "outputs (ε, 0)-indistinguishable.",
        ),
    )


def _intervals(found: Mapping[str, _Found], title: str) -> Figure:
    named = {name: (one["low"], one["high"]) for name, one in found.items()}
    return Figure(
        title=title,
        caption="The largest advantage of anyone lies on the line: from what an attack has shown to what nobody "
        "exceeds.",
        alternative="; ".join(
            f"{name}: {safe_text(low, toward='down')} to {safe_text(high, toward='up')}"
            for name, (low, high) in named.items()
        ),
        svg=figures.intervals(named, x_label="advantage (TPR − FPR)", marked=(CEILING, f"allowed: {CEILING:g}")),
    )


def _roc(one: _Found) -> Figure:
    return Figure(
        title=f"Where every ROC curve has to stay: {one['secret']} from {one['output']}, {one['model']}",
        caption="Nobody who sees only this output leaves the shaded region, whatever the method. Lines: attacks, on "
        "rows of their own.",
        alternative=f"The region reaches {safe_text(one['high'], toward='up')} above the diagonal, the best attack "
        f"{safe_text(one['low'], toward='down')} or more.",
        svg=figures.roc(_RATES, one["region"], one["roc"]),
    )


def _delivered(
    task: Task,
    *,
    title: str,
    heading: str,
    summary: tuple[str, ...],
    tables: tuple[Table, ...],
    found: list[_Found],
    shown: Mapping[str, Figure],
) -> Report:
    report = Report(
        command=f"reproduce audit {task.experiment}",
        title=title,
        summary=summary,
        comparisons=tuple(Comparison.from_dict(one["comparison"]) for one in found),
        figures=tuple(shown.values()),
        tables=tables,
        detail={
            "audits": [{key: value for key, value in one.items() if key != "comparison"} for one in found],
            "ceiling": CEILING,
            "delta": DELTA,
            "figures": list(shown),
        },
    )
    write_results(report, task.out, name=f"audit-{task.experiment}", heading=heading)
    return report


def _mark(task: Task, columns: Sequence[_Array]) -> dict[str, object]:
    return {
        "tacit": __version__,
        "task": f"audit {task.experiment}",
        "data": kept.digest("".join(kept.digest(np.ascontiguousarray(one).tobytes()) for one in columns).encode()),
        "options": {name: getattr(task, name) for name in ("records", "rows", "shadows", "seed")},
    }
