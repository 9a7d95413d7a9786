"""The verdict of a plan on each mechanism, in one sentence; for a hopeless one, why, and what would help."""

from __future__ import annotations

from dataclasses import replace

from .mechanisms.kind import Kind
from .mechanisms.setting import Run, Setting


def verdict(kind: Kind, run: Run, needed: int | None, expected: tuple[float, float] | None, setting: Setting) -> str:
    """The sentence, from the teachers `needed` and the answers `expected` by the model of votes."""
    size, m, wrong = setting.records // run.teachers, setting.queries, f"{100 * run.error:.3g} %"
    if run.hard is not None:
        promise = f"{run.teachers} teachers of {size} records answer at least {m - run.hard} of {m} queries rightly"
        condition = f"if they err on {wrong} on average at most"
        if setting.vc_dimension is not None:
            condition = f"and err on {wrong} at most"
        elif run.error == 0:
            condition = "if they are always right"
        condition += kind.condition(setting)
        if run.constants.estimated:
            return (
                f"An estimate, no promise: about {promise}, {condition}; a table for this budget is not stored but "
                "searched for when it is run, within a minute, and proven then."
            )
        return f"Feasible: {promise}, except with probability {setting.failure_probability:.10g}, {condition}."
    if 3 * run.error >= 1:
        why = f"of teachers with {size} records no error below {wrong} is known, and a third is too much"
    elif obstacle := kind.obstacle(run, needed, setting):
        why = obstacle
    elif needed is None and setting.teachers is None:
        why = "more teachers have fewer records each and err more, so that no number of them is enough"
        if setting.error(1) == run.error:
            why = f"teachers that err on {wrong} may leave too many queries in doubt, however many they are"
    elif run.constants.distance > (run.teachers - 1) // 2:
        most = (run.teachers - 1) // 2
        why = f"an answer needs {run.constants.distance} votes to flip, and {run.teachers} teachers give {most} at most"
    else:
        why = f"{run.teachers} teachers that err on {wrong} may leave too many queries in doubt"
    hopeless = "Hopeless"
    if expected is not None and expected[1] > m / 2:
        hopeless = f"Hopeless to promise, though the vote model expects {expected[1]:.0f} of {m} right answers"
    return f"{hopeless}: {why}; {_help(kind, needed, setting)}."


def _help(kind: Kind, needed: int | None, setting: Setting) -> str:
    """What would make the plan feasible, found by doubling or halving one input at a time."""
    rough = replace(setting, rough=True)

    def kept(changed: Setting) -> bool:
        teachers = changed.teachers
        if teachers is None:
            found = kind.needed_teachers(changed)
            return found is not None and found <= changed.most
        return kind.promised(teachers, changed) is not None

    ways = []
    if setting.teachers is not None and needed is not None and needed <= setting.most:
        ways.append(f"more teachers (e.g. {needed})")
    queries = next((m for m in _halves(setting.queries) if kept(replace(rough, queries=m))), None)
    if queries is not None:
        ways.append(f"fewer queries (e.g. {queries})")
    epsilons = (setting.epsilon * 2**power for power in range(1, 8))
    epsilon = next((value for value in epsilons if value <= 100 and kept(replace(rough, epsilon=value))), None)
    if epsilon is not None:
        ways.append(f"a larger epsilon (e.g. {epsilon:.3g})")
    if setting.teachers is None:
        sizes = (setting.records * 2**power for power in range(1, 21))
        records = next((n for n in sizes if n < 2**50 and kept(replace(rough, records=n))), None)
        if records is not None:
            ways.append(f"more records (e.g. {records})")
    if not ways:
        return "a better learner would help, or another mechanism"
    return f"{' or '.join([', '.join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)} would help"


def _halves(queries: int) -> list[int]:
    found = []
    while queries > 1:
        queries //= 2
        found.append(queries)
    return found
