"""Noise for tests: seeded, scripted, or every value there is."""

import itertools
from functools import cache

import numpy as np


class SeededNoise:
    """Discrete Laplace and Gaussian noise and coins from a seed, drawn in blocks."""

    def __init__(self, seed):
        self.rng, self.stock = np.random.default_rng(seed), {}

    def laplace(self, scale):
        stock = self.stock.setdefault(("laplace", scale), [])
        if not stock:
            p = -np.expm1(-1 / scale)
            stock.extend((self.rng.geometric(p, 2**16) - self.rng.geometric(p, 2**16)).tolist())
        return stock.pop()

    def gaussian(self, scale, *, size):
        stock = self.stock.setdefault(("gaussian", scale), [])
        if len(stock) < size:
            x = np.arange(-int(12 * scale) - 2, int(12 * scale) + 3)
            weights = np.exp(-(x**2) / (2 * scale**2))
            stock.extend(self.rng.choice(x, p=weights / weights.sum(), size=2**16).tolist())
        return [stock.pop() for _ in range(size)]

    def coin(self, chance, *, of=2**63):
        stock = self.stock.setdefault("coin", [])
        if not stock:
            stock.extend(self.rng.integers(0, 2**63, 2**16).tolist())
        return stock.pop() < chance * 2**63 // of


class ScriptedNoise:
    """The values given, in order; it remembers what was asked for."""

    def __init__(self, *values):
        self.values, self.asked = list(values), []

    def laplace(self, scale):
        self.asked.append(scale)
        return self.values.pop(0)

    def gaussian(self, scale, *, size):
        self.asked += [scale] * size
        return [self.values.pop(0) for _ in range(size)]

    def coin(self, chance, *, of=2**63):
        self.asked.append(chance if of == 2**63 else chance / of)
        return self.values.pop(0)


class _Everything:
    """Replays a list of choices and then takes the first value of each further one."""

    def __init__(self, choices):
        self.choices, self.used, self.weight = choices, [], 1.0

    def pick(self, kind, scale):
        values, weights = _support(kind, scale)
        place = self.choices[len(self.used)] if len(self.used) < len(self.choices) else 0
        self.used.append((place, len(values)))
        self.weight *= weights[place]
        return values[place]

    def laplace(self, scale):
        return self.pick("laplace", scale)

    def gaussian(self, scale, *, size):
        return [self.pick("gaussian", scale) for _ in range(size)]

    def coin(self, chance, *, of=2**63):
        return bool(self.pick("coin", chance / of))


@cache
def _support(kind, scale):
    if kind == "coin":
        return [0, 1], [1 - scale, scale]
    reach = int((14 if kind == "laplace" else 5) * scale) + 2
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(x) / scale) if kind == "laplace" else np.exp(-(x**2) / (2 * scale**2))
    return x.tolist(), (weights / weights.sum()).tolist()


def exact_law(mechanism, rows):
    """The law of the transcript of a session, from every value of all its noise (but tails of about 1e-6)."""

    rows = [np.array(row) for row in rows]

    def play(noise):
        session, transcript = mechanism.session(noise), []
        for row in rows:
            if session.stopped:
                break
            transcript.append(session.answer(row))
        return tuple(transcript)

    return law_of(play)


def law_of(play):
    """The law of what `play(noise)` returns."""
    law, choices = {}, []
    while True:
        noise = _Everything(choices)
        transcript = play(noise)
        law[transcript] = law.get(transcript, 0.0) + noise.weight
        used = noise.used
        while used and used[-1][0] == used[-1][1] - 1:
            used.pop()
        if not used:
            return law
        choices = [place for place, _ in used]
        choices[-1] += 1


def hockey_stick(first, second, epsilon):
    """δ(ε) between two laws, the larger of both directions."""
    keys = set(first) | set(second)
    ways = itertools.permutations((first, second))
    return max(sum(max(0.0, p.get(key, 0) - np.exp(epsilon) * q.get(key, 0)) for key in keys) for p, q in ways)
