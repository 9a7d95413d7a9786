"""What a plan says of each mechanism: one sentence, and for one that is hopeless why, and what would help."""

from __future__ import annotations

from dataclasses import replace

from .mechanisms import gate_design
from .mechanisms.constants import RAREST_REFUSAL, TABLES
from .mechanisms.promises import Run, Setting, needed_teachers, promised


def verdict(name: str, run: Run, needed: int | None, expected: tuple[float, float] | None, setting: Setting) -> str:
    """Feasible, an estimate or hopeless; `needed` teachers, and the answers `expected` by the vote model."""
    size, m, wrong = setting.records // run.teachers, setting.queries, f"{100 * run.error:.3g} %"
    if run.hard is not None:
        promise = f"{run.teachers} teachers of {size} records answer at least {m - run.hard} of {m} queries rightly"
        condition = f"if they err on {wrong} on average at most"
        if setting.vc_dimension is not None:
            condition = f"and err on {wrong} at most"
        elif run.error == 0:
            condition = "if they are always right"
        if name == "confirm":
            condition += f" and proposals err on {100 * setting.proposer_error:.3g} % at most"
        if run.constants.estimated:
            return (
                f"An estimate, no promise: about {promise}, {condition}; a table for this budget is not stored but "
                "searched for when it is run, within a minute, and proven then."
            )
        return f"Feasible: {promise}, except with probability {setting.beta:.10g}, {condition}."
    if 3 * run.error >= 1:
        why = f"of teachers with {size} records no error below {wrong} is known, and a third is too much"
    elif name in TABLES and (doubtful := _doubtful(name, setting)):
        why = doubtful
    elif needed is None and setting.teachers is None:
        why = "more teachers have fewer records each and err more, so that no number of them is enough"
        if setting.error(1) == run.error:
            why = f"teachers that err on {wrong} may leave too many queries in doubt, however many they are"
    elif name == "svt-faithful" and needed is not None and needed > run.teachers:
        why = f"the printed constants need {needed} teachers, and {run.teachers} can be had"
    elif run.constants.distance > (run.teachers - 1) // 2:
        most = (run.teachers - 1) // 2
        why = f"an answer needs {run.constants.distance} votes to flip, and {run.teachers} teachers give {most} at most"
    else:
        why = f"{run.teachers} teachers that err on {wrong} may leave too many queries in doubt"
    hopeless = "Hopeless"
    if expected is not None and expected[1] > m / 2:
        hopeless = f"Hopeless to promise, though the vote model expects {expected[1]:.0f} of {m} right answers"
    return f"{hopeless}: {why}; {_help(name, needed, setting)}."


def _doubtful(name: str, setting: Setting) -> str:
    """Why no table can be enough, however many the teachers; empty if that is not why."""
    if setting.share / setting.queries < RAREST_REFUSAL:
        return f"no table refuses as rarely as beta = {setting.beta:.10g} asks for on {setting.queries} queries"
    error = setting.error(setting.teachers or 1)
    teachers = 2 if setting.teachers else 3  # of whom none may be wrong: half at most, a third for `needed_teachers`
    least = setting.hard_queries(name, error, teachers=teachers, outvoted=0)
    most = gate_design.MOST_REFUSALS
    return f"{least} queries may be in doubt, and tables end at {most} refusals" if least >= most else ""


def _help(name: str, needed: int | None, setting: Setting) -> str:
    """What would make it feasible, tried by doubling and halving one thing at a time."""
    rough = replace(setting, rough=True)

    def kept(changed: Setting) -> bool:
        teachers = changed.teachers
        if teachers is None:
            found = needed_teachers(name, changed)
            return found is not None and found <= changed.most
        return promised(name, teachers, changed) is not None

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
