"""Which settings are run how often: all equally often, or the better half of them twice as often, and so on (successive halving).

Source of the latter: K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016. What a setting gets more of
in each round is repetitions. The default is in all rounds: it is what is compared with.
"""

import math

from dynvm.lab import noise
from dynvm.lab.settings import Setting


class Laboratory:
    """Runs of settings, and their results: results[setting] is the list of its runs."""

    def __init__(self, run, tell, by, higher=False):
        """run(setting): a Run; tell(text): shows what goes on; by: the measure that settings are compared by; higher: more of it is better."""
        self._run, self._tell, self.by, self.higher = run, tell, by, higher
        self.results, self.rounds = {}, 0

    def repeat(self, settings, times):
        """Each setting `times` times, in turns, each round in the other order than the one before: what drifts while they run meets all alike."""
        for _ in range(times):
            self.rounds += 1
            for setting in settings if self.rounds % 2 == 1 else reversed(settings):
                self._tell(f"run {self.rounds}: {setting.name}")
                self.results.setdefault(setting, []).append(self._run(setting))

    def values(self, setting, measure=None):
        """What its runs measured; those without a value left out."""
        found = [run.measures.get(measure or self.by) for run in self.results.get(setting, [])]
        return [value for value in found if value is not None]

    def failure(self, setting):
        return next((run.failure for run in self.results.get(setting, []) if run.failure), "")

    def cost(self, setting):
        """The median of `by`, as a number that is better where it is less; infinite for a setting that failed or has none."""
        values = self.values(setting)
        if not values or self.failure(setting):
            return math.inf
        return -noise.median(values) if self.higher else noise.median(values)

    def ordered(self):
        return sorted(self.results, key=self.cost)

    def halve(self, settings, repeat):
        """Successive halving of `settings`, until those that are left have been run `repeat` times or two are left."""
        left, times = list(settings), 1
        while True:
            done = len(self.results.get(left[0], []))
            self.repeat(left, max(1, times - done))
            if len(left) <= 2 or times >= repeat:
                return
            others = sorted((setting for setting in left if setting != Setting()), key=self.cost)
            left = [Setting(), *others[:max(1, len(others) // 2)]]
            times = min(repeat, times * 2)


class Verdict:
    """best: the Setting; differs (bool): from the default beyond noise; p, change (a part: -0.2 is 20 % less) and runs: of the confirmation; None without one."""

    def __init__(self, best, differs=False, p=None, change=None, runs=0):
        self.best, self.differs, self.p, self.change, self.runs = best, differs, p, change, runs

    def text(self, by):
        if self.best == Setting():
            return "best: the default"
        if self.p is None:
            return f"best: {self.best.name}; not confirmed: {by} could not be measured again"
        words = f"{abs(self.change):.1%} {'less' if self.change < 0 else 'more'} {by} than the default in {self.runs} further runs each"
        if self.differs:
            return f"best: {self.best.name}: {words}, which is beyond noise (Mann-Whitney p = {self.p:.3f})"
        few = noise.least_p_value(self.runs, self.runs) >= noise.SIGNIFICANT
        why = f"{self.runs} runs can show no difference; --repeat 4 is the least that can" if few else f"Mann-Whitney p = {self.p:.3f}"
        return f"best: {self.best.name}: {words}, but the difference is not beyond noise ({why})"


def confirm(laboratory, fresh, repeat):
    """A Verdict. The best of many is so by luck too, so it and the default are run `repeat` times more, and only these runs (of `fresh`, a Laboratory) count."""
    candidates = [setting for setting in laboratory.ordered() if math.isfinite(laboratory.cost(setting))]
    if not candidates or candidates[0] == Setting():
        return Verdict(Setting())
    best = candidates[0]
    fresh.repeat([Setting(), best], repeat)
    usual, found = fresh.values(Setting()), fresh.values(best)
    if not usual or not found or noise.median(usual) == 0:
        return Verdict(best)
    p = noise.p_value(found, usual)
    change = noise.median(found) / noise.median(usual) - 1
    better = change > 0 if laboratory.higher else change < 0
    return Verdict(best, p < noise.SIGNIFICANT and better, p, change, min(len(usual), len(found)))
