"""Priors that were learned from public inputs: a decoder of standard normal numbers, and how to train a small one."""

from __future__ import annotations

import contextlib
import copy
import json
import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from ..core import validate
from ..core.errors import InputError
from ..runtime import files
from .convolution import AsProducts
from .latent_priors import LatentPrior
from .priors import fingerprint, public_inputs

_VARIANCE_DRAWS = 20_000
_BATCH = 128
_HELD_OUT = 0.1
_FLOOR = 1e-3
"""Least variance of the noise of an entry, as a share of the inputs' mean variance: no entry is known exactly."""
_ROWS = 1024
_LEAST_NOISE = 1e-100
_COUPLINGS = 8
_FINGERPRINTED, _BITS = 8, 12
"""Codes whose decoded inputs enter the fingerprint, and how many bits of these."""
_FORMAT = "tacit generator 1"
_DECODER = "decoder."


class Generator(LatentPrior):
    """A prior under which an input is what a decoder makes of standard normal numbers, with noise in every entry.

    Parameters
    ----------
    decoder
        A torch module from rows of standard normal numbers to inputs. It is copied, and used in evaluation mode.
    codes
        How many numbers it takes.
    shape
        The shape of one input.
    pixel_noise
        The standard deviation of the noise of every entry: one number, or one for each entry.
    description
        Where the prior comes from, in words. Guarantees quote it.

    Notes
    -----
    The variance of which shares are stated is that of 20 000 draws, a fixed number.
    """

    bent = True

    def __init__(
        self,
        decoder: nn.Module,
        *,
        codes: int,
        shape: tuple[int, ...],
        pixel_noise: object,
        description: str,
    ) -> None:
        if not isinstance(decoder, nn.Module):
            remedy = "pass a module from rows of codes to inputs"
            raise InputError("decoder", type(decoder).__name__, requirement="must be a torch module", remedy=remedy)
        self.decoder = copy.deepcopy(decoder).eval().requires_grad_(requires_grad=False)
        self.codes = validate.whole("codes", codes, at_least=1, remedy="give the decoder's number of inputs")
        self.shape, entries = tuple(shape), math.prod(shape)
        self.size = self.codes + entries
        given = torch.tensor(
            validate.array("pixel_noise", pixel_noise, at_least=_LEAST_NOISE, remedy="give standard deviations")
        )
        if given.numel() not in (1, entries):
            requirement = f"must be one number or {entries}"
            raise InputError("pixel_noise", given.numel(), requirement=requirement, remedy="give one for each entry")
        self.pixel_noise = given.flatten().expand(entries).clone()
        self.weights = torch.ones(1, dtype=torch.float64)
        words = validate.text("description", description, remedy="say where the prior comes from")
        self._kept: dict[tuple[torch.dtype, torch.device], tuple[nn.Module, Tensor]] = {}
        self._variances: Tensor | None = None
        self._checked()
        kind = f"a generator of {self.codes} numbers"  # whatever a file calls it, guarantees say what it is
        words = words if words.startswith(kind) else f"{kind}: {words}"
        self.description = f"{words} ({self._fingerprint()})"

    def __repr__(self) -> str:
        return f"Generator, inputs of shape {self.shape}: {self.description}"

    def decode(self, numbers: Tensor, components: Tensor) -> Tensor:  # noqa: ARG002 — there is one
        """Inputs, one per row, in the type of the numbers; differentiable in these."""
        kind = (numbers.dtype, numbers.device)
        if kind not in self._kept:
            decoder = copy.deepcopy(self.decoder).to(numbers.device, numbers.dtype)
            if numbers.is_cuda and numbers.dtype == torch.float32:  # the order in which its convolutions are fast
                decoder = decoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            self._kept[kind] = (decoder, self.pixel_noise.to(numbers))
        decoder, noise = self._kept[kind]
        # Convolutions in float64 are slow on a GPU; products are not.
        with AsProducts() if numbers.is_cuda and not numbers.requires_grad else contextlib.nullcontext():
            made = decoder(numbers[:, : self.codes])
        return (made.reshape(len(numbers), -1) + noise * numbers[:, self.codes :]).reshape(-1, *self.shape)

    @property
    def variances(self) -> Tensor:
        """The variance of every entry of 20 000 draws."""
        if self._variances is None:
            numbers, components = self.drawn(_VARIANCE_DRAWS, torch.Generator().manual_seed(0))
            with torch.no_grad():
                parts = [
                    self.decode(*rows)
                    for rows in zip(numbers.float().split(_ROWS), components.split(_ROWS), strict=True)
                ]
            self._variances = torch.cat(parts).flatten(1).double().var(dim=0)
        return self._variances

    @property
    def unit(self) -> str:
        """What errors are shares of, in words."""
        return f"{float(self.variances.mean()):.9g}, the variance of an entry over 20 000 draws from the prior"

    def save(self, path: Path | str) -> None:
        """Write the prior to a .safetensors file, from which `Generator.load` reads it.

        Parameters
        ----------
        path
            The file. Only priors that `train_generator` made can be written: others have a decoder of your own code.
        """
        from safetensors.torch import save_file

        if not isinstance(self.decoder, _Decoder):
            raise InputError(
                "decoder",
                type(self.decoder).__name__,
                requirement="must be one that train_generator made",
                remedy="save the weights of your own decoder yourself",
            )
        tensors = {_DECODER + name: value.contiguous() for name, value in self.decoder.state_dict().items()}
        tensors["pixel_noise"] = self.pixel_noise
        words = self.description.rpartition(" (")[0]
        about = {"format": _FORMAT, "shape": json.dumps(self.shape), "description": words, "codes": str(self.codes)}
        save_file(tensors, str(path), metadata=about)

    @classmethod
    def load(cls, path: Path | str) -> Generator:
        """Read a prior that `save` wrote. Nothing in the file is run.

        Parameters
        ----------
        path
            A .safetensors file.
        """
        from safetensors import SafetensorError, safe_open

        remedy = "use a file that train_generator(public).save(FILE) wrote"
        try:
            with safe_open(str(files.plain(Path(path), "prior")), framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 — it is no dict
            if about.get("format") != _FORMAT:
                raise ValueError
            shape, codes = tuple(int(size) for size in json.loads(about["shape"])), int(about["codes"])
            with torch.device("meta"):  # takes no memory, whatever shape the file states
                decoder = _Decoder(shape, codes)
            own = {name: value for name, value in tensors.items() if name.startswith(_DECODER)}
            decoder.load_state_dict({name.removeprefix(_DECODER): value for name, value in own.items()}, assign=True)
            noise = tensors["pixel_noise"]
            return cls(decoder, codes=codes, shape=shape, pixel_noise=noise, description=about["description"])
        except (KeyError, ValueError, TypeError, RuntimeError, OSError, SafetensorError) as failure:
            what = f"{path}: {failure}" if isinstance(failure, (InputError, OSError)) else str(path)
            raise InputError("prior", what, requirement="must be a file with a generator", remedy=remedy) from None

    def _fingerprint(self) -> str:
        """A digest of the weights and of what the decoder makes of some codes, which its architecture changes, too."""
        sizes = torch.tensor([self.codes, *self.shape], dtype=torch.float64)
        weights = (value.double().cpu() for value in self.decoder.state_dict().values())
        numbers, components = self.drawn(_FINGERPRINTED, torch.Generator().manual_seed(0))
        with torch.no_grad():
            made = self.decode(numbers, components).flatten(1)
        # Other machines differ in the last bits, so that only the first digits count.
        unit = 2.0 ** (math.floor(math.log2(float(made.abs().max()) + 1e-300)) - _BITS)
        return fingerprint(sizes, self.pixel_noise, *weights, torch.round(made / unit) + 0.0)

    def _checked(self) -> None:
        """Try the decoder on one code."""
        remedy = f"it must take rows of {self.codes} numbers and return inputs of shape {self.shape}"
        try:
            numbers, components = torch.zeros(2, self.size, dtype=torch.float64), torch.zeros(2, dtype=torch.long)
            found = self.decode(numbers, components)
        except Exception as failure:  # the caller's own module may raise anything
            what = f"{type(failure).__name__}: {failure}"
            raise InputError("decoder", what, requirement="must decode codes", remedy=remedy) from None
        if not bool(torch.isfinite(found).all()):
            raise InputError("decoder", "inf or nan", requirement="must return finite numbers", remedy=remedy)


def train_generator(
    public: object,
    *,
    codes: int = 32,
    steps: int = 3000,
    seed: int = 0,
    device: str | None = None,
    advance: Callable[[float], None] = lambda _: None,
) -> Generator:
    """Learn a small generator from public inputs: a variational autoencoder, convolutional for images.

    A flow then learns how the public inputs' codes come from standard normal numbers, so that draws look like them, and
    the noise of every entry is what the decoder leaves over on a tenth of them that it was not trained on.

    Parameters
    ----------
    public
        The inputs, one per row; a hundred or more.
    codes
        How many numbers a code has.
    steps
        Of training, with 128 inputs each.
    seed
        For training. The same seed gives the same prior on the same machine.
    device
        Where to train; a GPU by default if there is one.
    advance
        Is told the share of the work that is done.

    Returns
    -------
    Generator
        The prior.
    """
    inputs = public_inputs("public", public)
    if len(inputs) < 100:
        remedy = "use Mixture.fitted for fewer"
        raise InputError("public", len(inputs), requirement="must hold 100 inputs or more", remedy=remedy)
    codes = validate.whole("codes", codes, at_least=1, remedy="use 32")
    steps = validate.whole("steps", steps, at_least=1, remedy="use 3000")
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    shape = tuple(inputs.shape[1:])
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(inputs), generator=generator)
    kept = math.ceil(len(inputs) * _HELD_OUT)
    mean, scale = inputs.mean(), inputs.std()
    if not float(scale) > 0:
        raise InputError("public", 0.0, requirement="must differ from one another", remedy="pass others")
    rows = ((inputs[order] - mean) / scale).float().to(place)
    held, known = rows[:kept], rows[kept:]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder, decoder = _Encoder(shape, codes).to(place), _Decoder(shape, codes).to(place)
    _train(encoder, decoder.body, known, steps, generator, lambda share: advance(share / 2))
    with torch.no_grad():
        left = torch.cat([decoder.body(encoder(part)[0]) - part for part in held.split(_ROWS)]).flatten(1)
    variance = left.double().square().mean(dim=0).cpu()
    noise = float(scale) * variance.clamp(min=_FLOOR).sqrt()
    _learn_codes(decoder, encoder, known, steps, generator, lambda share: advance((1 + share) / 2))
    decoder.scaled(float(mean), float(scale))
    return Generator(
        decoder.cpu(),
        codes=codes,
        shape=shape,
        pixel_noise=noise,
        description=f"a generator of {codes} numbers, trained on {len(inputs)} public inputs for {steps} steps with "
        f"seed {seed}, its noise {float(noise.square().mean().sqrt()):.3g} an entry",
    )


def _train(
    encoder: nn.Module,
    decoder: nn.Module,
    known: Tensor,
    steps: int,
    generator: torch.Generator,
    advance: Callable[[float], None],
) -> None:
    """Raise the evidence's lower bound, with the noise variance that is best at every step (Rybkin et al. 2021)."""
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps + 1)
    entries = math.prod(known.shape[1:])
    for step in range(steps):
        rows = known[torch.randint(len(known), (_BATCH,), generator=generator).to(known.device)]
        mean, log_variance = encoder(rows)
        made = decoder(_code(mean, log_variance, generator))
        error = (made - rows).square().mean()
        hidden = (mean.square() + log_variance.exp() - log_variance - 1).sum(dim=1).mean() / 2
        loss = entries / 2 * torch.log(error + _FLOOR) + hidden
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 100.0)
        optimizer.step()
        schedule.step()
        advance((step + 1) / steps)


def _code(mean: Tensor, log_variance: Tensor, generator: torch.Generator) -> Tensor:
    return mean + (log_variance / 2).exp() * torch.randn(mean.shape, generator=generator).to(mean)


def _learn_codes(
    decoder: _Decoder,
    encoder: nn.Module,
    known: Tensor,
    steps: int,
    generator: torch.Generator,
    advance: Callable[[float], None],
) -> None:
    """Fit the decoder's flow to random codes of the inputs, by maximum likelihood."""
    with torch.no_grad():
        found = [torch.cat(parts) for parts in zip(*(encoder(part) for part in known.split(_ROWS)), strict=True)]
    codes = _code(found[0], found[1], generator)
    decoder.flow.shape_to(codes)
    optimizer = torch.optim.Adam(decoder.flow.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-3, total_steps=steps + 1)
    for step in range(steps):
        rows = torch.randint(len(known), (4 * _BATCH,), generator=generator).to(known.device)
        numbers, log_volume = decoder.flow.numbers(_code(found[0][rows], found[1][rows], generator))
        loss = (numbers.square().sum(dim=1) / 2 - log_volume).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.flow.parameters(), 10.0)
        optimizer.step()
        schedule.step()
        advance((step + 1) / steps)


def _is_image(shape: tuple[int, ...]) -> bool:
    return len(shape) in (2, 3) and min(shape[-2:]) >= 8


class _Encoder(nn.Module):
    """From inputs to the mean and the logarithm of the variance of their codes."""

    def __init__(self, shape: tuple[int, ...], codes: int) -> None:
        super().__init__()
        entries = math.prod(shape)
        body: list[nn.Module] = [nn.Flatten()]
        if _is_image(shape):
            channels, (height, width) = math.prod(shape[:-2]), shape[-2:]
            entries = 64 * -(-height // 4) * -(-width // 4)
            body = [
                nn.Unflatten(1, (channels, height, width)),
                *(nn.Conv2d(channels, 32, 3, stride=2, padding=1), nn.SiLU()),
                *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.SiLU(), nn.Flatten()),
            ]
        self.body = nn.Sequential(*body, *_wide(entries, 2 * codes))

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.body(inputs.flatten(1)).chunk(2, dim=1)
        return mean, log_variance.clamp(-12, 4)


class _Decoder(nn.Module):
    """From standard normal numbers to codes, and from codes to inputs."""

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...], codes: int) -> None:
        super().__init__()
        self.flow = _Flow(codes)
        body: list[nn.Module] = _wide(codes, math.prod(shape))
        if _is_image(shape):
            channels, (height, width) = math.prod(shape[:-2]), shape[-2:]
            small = (-(-height // 4), -(-width // 4))
            body = [
                *(*_wide(codes, 64 * small[0] * small[1]), nn.SiLU(), nn.Unflatten(1, (64, *small))),
                *(nn.Upsample(scale_factor=2), nn.Conv2d(64, 64, 3, padding=1), nn.SiLU()),
                *(nn.Upsample(scale_factor=2), nn.Conv2d(64, 32, 3, padding=1), nn.SiLU()),
                *(nn.Conv2d(32, channels, 3, padding=1), _Cropped(height, width)),
            ]
        self.body = nn.Sequential(*body, nn.Flatten(), nn.Unflatten(1, shape))
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def scaled(self, mean: float, scale: float) -> None:
        """Decode to inputs with this mean and standard deviation from now on."""
        self.mean.fill_(mean)
        self.scale.fill_(scale)

    def forward(self, numbers: Tensor) -> Tensor:
        return self.mean + self.scale * self.body(self.flow(numbers))


class _Cropped(nn.Module):
    """The upper left part of images."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.height, self.width = height, width

    def forward(self, images: Tensor) -> Tensor:
        return images[:, :, : self.height, : self.width]


class _Flow(nn.Module):
    """Standard normal numbers to codes, one to one: affine couplings (Dinh, Sohl-Dickstein and Bengio 2017)."""

    centre: Tensor
    factor: Tensor

    def __init__(self, codes: int) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(nn.Sequential(*_wide(codes, 2 * codes, 128)) for _ in range(_COUPLINGS))
        self.register_buffer("centre", torch.zeros(codes))
        self.register_buffer("factor", torch.eye(codes))
        places = torch.arange(codes)
        for place in range(_COUPLINGS):  # every number is changed by half of the couplings, in varying company
            kept = (places // (1 << (place // 2 % 3)) + place) % 2 == 0
            self.register_buffer(f"kept{place}", kept.float())

    def shape_to(self, codes: Tensor) -> None:
        """Begin with the codes' mean and covariance."""
        covariance = torch.atleast_2d(torch.cov(codes.double().T)) + 1e-6 * torch.eye(codes.shape[1]).to(codes.device)
        self.centre.copy_(codes.mean(dim=0))
        self.factor.copy_(torch.linalg.cholesky(covariance))

    def forward(self, numbers: Tensor) -> Tensor:
        for place in reversed(range(_COUPLINGS)):
            log_size, shift, kept = self._parts(place, numbers)
            numbers = kept * numbers + (1 - kept) * (numbers - shift) * torch.exp(-log_size)
        return self.centre + numbers @ self.factor.T

    def numbers(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of which codes are made, and the logarithm of how much volume that adds, up to a constant."""
        numbers = torch.linalg.solve_triangular(self.factor, (codes - self.centre).T, upper=False).T
        log_volume = torch.zeros_like(numbers[:, 0])
        for place in range(_COUPLINGS):
            log_size, shift, kept = self._parts(place, numbers)
            numbers = kept * numbers + (1 - kept) * (numbers * torch.exp(log_size) + shift)
            log_volume = log_volume + ((1 - kept) * log_size).sum(dim=1)
        return numbers, log_volume

    def _parts(self, place: int, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        kept: Tensor = getattr(self, f"kept{place}")
        log_size, shift = self.couplings[place](kept * numbers).chunk(2, dim=1)
        return 2 * torch.tanh(log_size / 2), shift, kept


def _wide(inputs: int, outputs: int, width: int = 256) -> list[nn.Module]:
    return [nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, outputs)]
