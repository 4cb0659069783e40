"""Settings: what `--vary` makes of names and values, and the choice of some of them at random."""

import difflib
import itertools
import math
import os
import random

import dynvm
from dynvm import _library

POLICY = "policy"


class Wrong(Exception):
    """What the user has to change; its text is all that is printed."""


class Setting:
    """values: {name: value}, those that are not the usual ones; an int for a number, a path for the policy. Equal where the values are."""

    def __init__(self, values=()):
        self.values = dict(values)

    @property
    def name(self):
        words = [f"{name}={os.path.basename(value) if name == POLICY else value}" for name, value in self.values.items()]
        return " ".join(words) or "default"

    def options(self):
        """Options of dynvm."""
        numbers = ",".join(f"{name}={value}" for name, value in self.values.items() if name != POLICY)
        options = [f"--heuristics={numbers}"] if numbers else []
        return options + ([f"--policy={self.values[POLICY]}"] if POLICY in self.values else [])

    def __eq__(self, other):
        return isinstance(other, Setting) and self.values == other.values

    def __hash__(self):
        return hash(frozenset(self.values.items()))

    def __repr__(self):
        return f"<setting {self.name}>"


class Axis:
    """One `--vary`: name, and either values (list) or bounds (two ints, for a search at random)."""

    def __init__(self, name, values=None, bounds=None):
        self.name, self.values, self.bounds = name, values, bounds

    def pick(self, chance):
        """A value at random: of a range each order of magnitude is as likely as another, as such numbers mean factors."""
        if self.values is not None:
            return chance.choice(self.values)
        low, high = self.bounds
        if low < 1:
            return chance.randint(low, high)
        return min(high, max(low, round(math.exp(chance.uniform(math.log(low), math.log(high))))))


def _table():
    """The numbers' rows (dynvm.heuristics); also where dynvm does not run."""
    _library.load()
    return dynvm.heuristics(full=True)


def _number(name, text):
    """The number, where the table allows it for this name."""
    library = _library.load()
    try:
        library.dynvm_check_heuristics(f"{name}={text}".encode())
    except ValueError as error:
        raise Wrong(f"--vary: {error}") from None
    return int(text)


def parse_axis(text):
    """An Axis from `NAME=VALUE,VALUE,...`, `NAME=LOW..HIGH` or `policy=default,FILE,...`. Wrong: anything in it is."""
    name, equals, words = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not words:
        raise Wrong(f"--vary: expected NAME=VALUE,VALUE,... or NAME=LOW..HIGH, got '{text}'")
    if name == POLICY:
        values = words.split(",")
        for value in values:
            if value != "default" and not os.path.isfile(value):
                raise Wrong(f"--vary: {POLICY}: there is no file {value}")
        return Axis(name, ["default" if value == "default" else os.path.abspath(value) for value in values])
    known = _table()
    if name not in known:
        near = difflib.get_close_matches(name, [*known, POLICY], 1)
        raise Wrong(f"--vary: '{name}' is no number of dynvm's" + (f" (is {near[0]} meant?)" if near else "; docs/heuristics.md lists them"))
    if ".." in words:
        low, high = (_number(name, word) for word in words.split("..", 1))
        if low > high:
            raise Wrong(f"--vary: {name}: {low} is greater than {high}")
        return Axis(name, bounds=(low, high))
    return Axis(name, [_number(name, word) for word in words.split(",")])


def _setting(axes, values):
    """Without what is as it is usually."""
    usual = {name: row["default"] for name, row in _table().items()}
    usual[POLICY] = "default"
    return Setting({axis.name: value for axis, value in zip(axes, values) if value != usual[axis.name]})


def _with_default(settings):
    """Each once, the default first."""
    return list(dict.fromkeys([Setting(), *settings]))


def grid(axes):
    """All combinations. Wrong: an axis is a range."""
    for axis in axes:
        if axis.values is None:
            raise Wrong(f"--vary: {axis.name}: a range is for --search random and halving; the grid needs values")
    return _with_default(_setting(axes, values) for values in itertools.product(*(axis.values for axis in axes)))


def sample(axes, count, seed):
    """The default and `count` others at random, fewer where there are no more."""
    chance = random.Random(seed)
    found = [Setting()]
    for _ in range(100 * count):
        if len(found) == count + 1:
            break
        setting = _setting(axes, [axis.pick(chance) for axis in axes])
        if setting not in found:
            found.append(setting)
    return found
