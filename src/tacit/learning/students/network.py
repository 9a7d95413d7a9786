"""Neural networks as teachers and students: any torch module behind scikit-learn's contract."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ...core import validate
from ...core.errors import InputError, MissingExtraError

_WARM = 0.1
"""The share of the steps in which the rate climbs; then it falls along a cosine."""
_ROWS_AT_ONCE = 4096
"""Of a prediction."""


class NetworkClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A classifier made of a torch module, from rows to one logit for each class.

    It is trained by AdamW on the cross-entropy, at a rate that climbs to `learning_rate` and falls to 0 along a cosine.

    Parameters
    ----------
    module_factory
        `module_factory(n_features, n_classes)` returns the untrained module.
    epochs, learning_rate, batch, weight_decay
        The epochs, the largest learning rate, the records in a batch, and the weight decay of training.
    shape
        The shape of one input, e.g. (1, 28, 28); the module gets rows unless given.
    augment
        `augment(inputs, generator)` changes each batch of training inputs, drawing from a torch generator.
    device
        "cpu", "cuda", …; None takes a GPU if torch sees one.
    random_state
        Decides the first weights, the order of the records and what dropout drops. Torch's own random state is left as
        it was. On one machine and number of threads, equal states give equal weights; on a GPU this holds for
        convolutions and products of matrices, not for every operation of torch.

    Notes
    -----
    Pickles and skops files hold the weights as safetensors beside a reference to the factory, which must be a function
    that can be imported, and for skops must be trusted like this class.
    """

    def __init__(
        self,
        module_factory: Callable[[int, int], Any],
        *,
        epochs: int = 20,
        learning_rate: float = 1e-3,
        batch: int = 128,
        weight_decay: float = 1e-2,
        shape: Sequence[int] | None = None,
        augment: Callable[[Any, Any], Any] | None = None,
        device: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.module_factory = module_factory
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch = batch
        self.weight_decay = weight_decay
        self.shape = shape
        self.augment = augment
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> NetworkClassifier:  # noqa: N803 — scikit-learn's name
        """Train a new module."""
        torch = _torch()
        epochs = validate.whole("epochs", self.epochs, at_least=1, remedy="use about 20")
        batch = validate.whole("batch", self.batch, at_least=1, remedy="use about 128")
        top = validate.number("learning_rate", self.learning_rate, above=0, remedy="use about 0.001")
        decay = validate.number("weight_decay", self.weight_decay, at_least=0, remedy="use about 0.01")
        X, y = validate_data(self, X, y, dtype=np.float32)  # noqa: N806
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise InputError("y", y, requirement="must hold more than one class", remedy="pass records of two classes")
        seed = int(check_random_state(self.random_state).randint(2**31))
        device = self._device()
        inputs, labels = self._inputs(X, device), torch.as_tensor(numbers, device=device)
        with _seeded(seed, device):
            network = self._untrained(X.shape[1], len(classes)).to(device).train()
            optimiser = torch.optim.AdamW(network.parameters(), lr=top, weight_decay=decay)
            order, noise = torch.Generator().manual_seed(seed), torch.Generator(device).manual_seed(seed)
            # Batches of about the same size: a last one of a single record would break batch normalisation.
            parts = math.ceil(len(X) / batch)
            for step in range(epochs * parts):
                if step % parts == 0:
                    batches = torch.randperm(len(X), generator=order).to(device).tensor_split(parts)
                rows = batches[step % parts]
                seen = inputs[rows] if self.augment is None else self.augment(inputs[rows], noise)
                loss = torch.nn.functional.cross_entropy(_logits(network, seen, len(classes)), labels[rows])
                optimiser.param_groups[0]["lr"] = top * _rate(step, epochs * parts)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        self.classes_ = classes
        self.n_iter_ = epochs
        self.network_ = network.eval()
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The chances of each of `classes_`."""
        check_is_fitted(self, "network_")
        classes = len(self.classes_)
        return self._rows(X, lambda network, inputs: _logits(network, inputs, classes).double().softmax(1))

    def transform(self, X: Any) -> NDArray[np.float32]:  # noqa: N803
        """What the last linear layer of the module gets: features learned for this task."""
        check_is_fitted(self, "network_")
        layers = [layer for layer in self.network_.modules() if isinstance(layer, _torch().nn.Linear)]
        if not layers:
            raise InputError(
                "module_factory",
                self.module_factory,
                requirement="must have a linear layer",
                remedy="add one at its end",
            )

        def seen(network: Any, inputs: Any) -> Any:
            found: list[Any] = []
            hook = layers[-1].register_forward_pre_hook(lambda _, given: found.append(given[0]))
            try:
                network(inputs)
            finally:
                hook.remove()
            return found[-1].flatten(1)

        return self._rows(X, seen)

    def _rows(self, X: Any, read: Callable[[Any, Any], Any]) -> NDArray[Any]:  # noqa: N803
        """What is read off the trained network, a row for each of X."""
        torch = _torch()
        X = validate_data(self, X, dtype=np.float32, reset=False)  # noqa: N806
        device = self._device()
        network = self.network_.to(device)
        with torch.inference_mode():
            parts = [
                read(network, self._inputs(X[start : start + _ROWS_AT_ONCE], device))
                for start in range(0, len(X), _ROWS_AT_ONCE)
            ]
            rows: NDArray[Any] = torch.cat(parts).cpu().numpy()
        return rows

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The likeliest of `classes_`."""
        places = np.argmax(self.predict_proba(X), axis=1)
        classes: NDArray[Any] = self.classes_[places]
        return classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        network = state.pop("network_", None)
        if network is not None:
            from safetensors.torch import save

            state["weights"] = save({name: value.contiguous().cpu() for name, value in network.state_dict().items()})
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        weights = state.pop("weights", None)
        super().__setstate__(state)
        if weights is not None:
            from safetensors.torch import load

            device = _torch().device("cpu")
            with _seeded(0, device):
                network = self._untrained(self.n_features_in_, len(self.classes_))
            network.load_state_dict(load(weights))
            self.network_ = network.eval()

    def _untrained(self, n_features: int, n_classes: int) -> Any:
        network = self.module_factory(n_features, n_classes)
        if not isinstance(network, _torch().nn.Module):
            raise InputError(
                "module_factory",
                network,
                requirement="must return a torch module",
                remedy="pass a function of the numbers of features and classes that returns a torch.nn.Module",
            )
        return network

    def _inputs(self, X: NDArray[np.float32], device: Any) -> Any:  # noqa: N803
        """Rows as what the module takes, where it computes."""
        shape = X.shape[1:] if self.shape is None else tuple(self.shape)
        if math.prod(shape) != X.shape[1]:
            raise InputError(
                "shape", shape, requirement=f"must hold {X.shape[1]} numbers, as a row does", remedy="leave it out"
            )
        return _torch().tensor(X, device=device).reshape(-1, *shape)

    def _device(self) -> Any:
        torch = _torch()
        try:
            return torch.device(self.device or ("cuda" if torch.cuda.is_available() else "cpu"))
        except (RuntimeError, TypeError):
            raise InputError(
                "device", self.device, requirement="must be a device of torch", remedy="use 'cpu', 'cuda' or None"
            ) from None


def _torch() -> Any:
    try:
        import safetensors  # noqa: F401 — what stored networks are made of
        import torch
    except ImportError:
        raise MissingExtraError(
            "NetworkClassifier must have torch and safetensors, got no such packages; "
            "pip install 'tacit-privacy[torch]'"
        ) from None
    return torch


def _logits(network: Any, inputs: Any, classes: int) -> Any:
    found = network(inputs)
    if tuple(found.shape) != (len(inputs), classes):
        raise InputError(
            "the shape of what module_factory's module returns",
            tuple(found.shape),
            requirement=f"must be {(len(inputs), classes)}, one logit for each class",
            remedy="end it in a layer of n_classes outputs",
        )
    return found


def _rate(step: int, steps: int) -> float:
    """The learning rate at a step, as a share of its greatest."""
    warm = max(1, round(_WARM * steps))
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm + 1) / (steps - warm + 1))) / 2


@contextlib.contextmanager
def _seeded(seed: int, device: Any) -> Iterator[None]:
    """Torch's own generators, which first weights and dropout draw from, seeded here and then as they were before."""
    torch = _torch()
    cuda = [device] if device.type == "cuda" else []
    before = torch.backends.cudnn.deterministic
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)
        for used in cuda:
            with torch.cuda.device(used):
                torch.cuda.manual_seed(seed)
        torch.backends.cudnn.deterministic = True
        try:
            yield
        finally:
            torch.backends.cudnn.deterministic = before
