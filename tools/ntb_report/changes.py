# SPDX-License-Identifier: BSD-3-Clause
"""Two commits beside each other: what changed by more than the repetitions differ among themselves."""
import dataclasses

from . import model

# Repetitions of a quiet machine still differ by this much; a single one says nothing of its noise.
LEAST_NOISE = 0.03
NOISE_OF_ONE = 0.10


@dataclasses.dataclass(frozen=True)
class Change:
    set_up: tuple
    metric: str
    before: model.Spread
    after: model.Spread
    worse: float  # part by which it became worse; less than 0: better
    noise: float

    @property
    def verdict(self):
        if abs(self.worse) <= self.noise:
            return "within noise"
        return "regression" if self.worse > 0 else "better"


def noise_of(*spreads):
    return max(max(LEAST_NOISE, s.noise) if s.count > 1 else NOISE_OF_ONE for s in spreads)


def metrics(figure):
    """(name, spread, whether smaller is better)"""
    if figure.mode in ("latency", "load"):
        if figure.clock == "on":
            yield from ((name, figure.latency(name), True) for name in ("p50", "p99"))
        else:
            yield "mean", figure.mean_round_trip(), True
    else:
        yield "rate", figure.rate(), False


def between(built, before, after):
    """All changes from one commit to another, the worst first."""
    olds = {(figure.set_up, figure.placement): figure for figure in built.figures
            if figure.commit == before and not figure.disturbed}
    found = []
    for figure in built.figures:
        old = olds.get((figure.set_up, figure.placement))
        if figure.commit != after or figure.disturbed or not old or figure.operation == model.LIMIT:
            continue
        for (name, was, smaller), (_, now, _) in zip(metrics(old), metrics(figure)):
            if was and now and was.median > 0 and now.median > 0:
                worse = now.median / was.median - 1 if smaller else was.median / now.median - 1
                found.append(Change(figure.set_up, name, was, now, worse, noise_of(was, now)))
    return sorted(found, key=lambda c: -c.worse)
