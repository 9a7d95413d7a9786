"""The verdict of a plan on each mechanism, in one sentence; for a hopeless one, why, and what would help."""

from __future__ import annotations

from dataclasses import replace

from ..core.wording import counted
from .mechanisms.kind import PlannedKind
from .mechanisms.setting import Run, Setting

_MOST_EPSILON = 20.0
"""The largest ε that is proposed: beyond it, one record changes probabilities by any factor."""


def verdict(
    kind: PlannedKind, run: Run, needed: int | None, expected: tuple[float, float] | None, setting: Setting
) -> str:
    """The verdict in one sentence. `expected` are the answers, and the right answers, by the model of votes."""
    size, m, wrong = setting.records // run.teachers, setting.queries, f"{100 * run.error:.3g} %"
    if run.hard is not None:
        promise = (
            f"{counted(run.teachers, 'teacher')} with {counted(size, 'record')} each answer at least {m - run.hard} of "
            f"{counted(m, 'query')} correctly"
        )
        condition = f"if they err on at most {wrong} on average"
        if setting.vc_dimension is not None:
            condition = f"and err on at most {wrong}"
        elif run.error == 0:
            condition = "if they are always right"
        condition += kind.condition(setting)
        if run.constants.estimated:
            return (
                f"An estimate, no promise: about {promise}, {condition}. {kind.later}, within a minute, and proven "
                "when the mechanism is run."
            )
        return f"Feasible: {promise}, except with probability {setting.failure_probability:.10g}, {condition}."
    if kind.unpromised:
        return f"No promise: {kind.unpromised}{_expectation(expected, m)}."
    if 3 * run.error >= 1:
        why = f"teachers with {counted(size, 'record')} may err on {wrong}, and nothing is proven for a third or more"
    elif obstacle := kind.obstacle(run, needed, setting):
        why = obstacle
    elif needed is None and setting.teachers is None:
        why = "more teachers have fewer records each and err more, so no number of teachers is enough"
        if setting.error(1) == run.error:
            why = f"teachers that err on {wrong} may be wrong together on too many queries, however many there are"
    elif run.constants.distance > (run.teachers - 1) // 2:
        most = (run.teachers - 1) // 2
        why = (
            f"an answer needs a winner that {run.constants.distance} changed votes do not change, and "
            f"{counted(run.teachers, 'teacher')} give at most {most}"
        )
    else:
        why = f"{counted(run.teachers, 'teacher')} that err on {wrong} may be wrong together on too many queries"
    hopeless = f"Hopeless to promise{_expectation(expected, m)}" if _likely(expected, m) else "Hopeless"
    return f"{hopeless}: {why}; {_help(kind, needed, setting)}."


def _likely(expected: tuple[float, float] | None, queries: int) -> bool:
    """Whether more right answers than not are expected."""
    return expected is not None and expected[1] > queries / 2


def _expectation(expected: tuple[float, float] | None, queries: int) -> str:
    if expected is None:
        return ""
    words = f"the model of votes expects {expected[1]:.0f} of {queries} right answers"
    return f", though {words}" if _likely(expected, queries) else f"; {words}"


def helping(kind: PlannedKind, needed: int | None, setting: Setting) -> dict[str, float]:
    """What would make the plan feasible, by the input to change; found by doubling or halving one at a time."""
    rough = replace(setting, rough=True)

    def kept(changed: Setting) -> bool:
        teachers = changed.teachers
        if teachers is None:
            found = kind.needed_teachers(changed)
            return found is not None and found <= changed.most
        return kind.promised(teachers, changed) is not None

    ways: dict[str, float | None] = {}
    if setting.teachers is not None and needed is not None and needed <= setting.most:
        ways["teachers"] = needed
    ways["queries"] = next((m for m in _halves(setting.queries) if kept(replace(rough, queries=m))), None)
    epsilons = (setting.epsilon * 2**power for power in range(1, 8))
    ways["epsilon"] = next(
        (value for value in epsilons if value <= _MOST_EPSILON and kept(replace(rough, epsilon=value))), None
    )
    if setting.teachers is None:
        sizes = (setting.records * 2**power for power in range(1, 21))
        ways["records"] = next((n for n in sizes if n < 2**50 and kept(replace(rough, records=n))), None)
    return {name: value for name, value in ways.items() if value is not None}


def _help(kind: PlannedKind, needed: int | None, setting: Setting) -> str:
    words = {"teachers": "more", "queries": "fewer", "epsilon": "a larger", "records": "more"}
    found = helping(kind, needed, setting)
    ways = [
        f"{words[name]} {name} (e.g. {value if isinstance(value, int) else f'{value:.3g}'})"
        for name, value in found.items()
    ]
    if not ways:
        return "a better learner or another mechanism would help"
    return f"{' or '.join([', '.join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)} would help"


def _halves(queries: int) -> list[int]:
    found = []
    while queries > 1:
        queries //= 2
        found.append(queries)
    return found
