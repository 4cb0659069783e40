"""Says whether what a program showed under dynvm is what it showed under python.

Inputs: the two outputs; where they differ by more than `close`, outputs of python under noise (noise.py). Outputs: a Difference or None.
Rule: line by line all text and all integers are equal: types, sizes, strides, version counters, random states, exceptions with their frames. Floats
  of a line differ by at most RELATIVE times the largest of the line (a line is a tensor or a list of losses), or by FACTOR times what python's own
  results of that line differ by when each operation's rounding is another one. Where such noise alone changes the text (another branch is taken, a
  loss becomes nan), the program decides by rounding from that line on and says nothing more.
Tests: test_judge.py.
"""

import math
import os
import re
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from compare import no_addresses  # noqa: E402

RELATIVE = {"float32": 2e-5, "float64": 1e-11}
ABSOLUTE = {"float32": 2e-7, "float64": 1e-13}
FACTOR = 40
UNMEASURED = 10  # times ABSOLUTE, where noise says nothing
RUNS = 3  # under noise


class Difference:
    """kind: "crash", "time", "raises", "random", "warning", "text", "numbers" or, where nothing else differs, "version" (a version counter); line: the
    first one that differs."""

    def __init__(self, kind, line, expected, got):
        self.kind, self.line, self.expected, self.got = kind, line, expected, got

    def __str__(self):
        left, right = self.expected.split(" "), self.got.split(" ")
        place = next((k for k, (a, b) in enumerate(zip(left, right)) if a != b), 0)
        if self.kind == "numbers":  # the one that is furthest apart
            floats = [(distance(float(a), float(b)), k) for k, (a, b) in enumerate(zip(left, right)) if FLOAT.fullmatch(a) and FLOAT.fullmatch(b)]
            place = max(floats, default=(0, place))[1]
        texts = [self.got[:1500] if self.kind in ("crash", "time") else " ".join([*words[:3], "...", *words[place - 1:place + 8]] if place > 8 else words[:14]) for words in (left, right)]
        return f"{self.kind}, line {self.line + 1}\n  python {texts[0] if self.kind not in ('crash', 'time') else self.expected}\n  dynvm  {texts[1]}"


# A number with a point or an exponent, nan or inf; a sign belongs to it only where no name or number stands before.
FLOAT = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|nan\b|inf\b)")
VERSION = re.compile(r" v\d+ ")


def split(line):
    """(the text around the floats, the floats)."""
    return FLOAT.split(line), [float(word) for word in FLOAT.findall(line)]


def noisy_split(line):
    """The same for lines of runs under noise: the mode leaves version counters of some lists of tensors as they are."""
    return split(VERSION.sub(" v ", line))


def last_digits(line):
    """For each float of the line, half of what its text may be rounded by."""
    result = []
    for word in FLOAT.findall(line):
        mantissa, _, exponent = word.lower().partition("e")
        places = len(mantissa.partition(".")[2])
        result.append(1.01 * 10.0 ** (int(exponent or 0) - places) if 2 <= places <= 8 and not exponent else 0.0)
    return result


def distance(first, second):
    """How far two floats are apart; infinite when only one is a number."""
    if first == second or (math.isnan(first) and math.isnan(second)):
        return 0.0
    apart = abs(first - second)
    return apart if math.isfinite(apart) else math.inf


def precision(text):
    """The type that a program computes in."""
    return "float64" if "torch.set_default_dtype(torch.float64)" in text else "float32"


def kind_of(expected, got):
    for word, kind in (("ended by", "raises"), ("  at ", "raises"), ("random state", "random"), ("warning ", "warning")):
        if expected.startswith(word) or got.startswith(word):
            return kind
    return "text"


class Judge:
    """expected: python's output. noise: a function that gives python's output under noise of a number."""

    def __init__(self, expected, text, noise):
        self.expected, self.noise = no_addresses(expected).splitlines(), lambda k: no_addresses(noise(k))
        self.relative, self.absolute = RELATIVE[precision(text)], ABSOLUTE[precision(text)]
        self.noisy = None
        self.by_noise = False  # whether a difference was accepted because of noise

    def runs(self):
        """Outputs under noise; none when the mode alone changes what is shown."""
        if self.noisy is None:
            self.noisy = []
            if [VERSION.sub(" v ", line) for line in self.noise(0).splitlines()] == [VERSION.sub(" v ", line) for line in self.expected]:
                self.noisy = [[(line, *noisy_split(line)) for line in self.noise(k).splitlines()] for k in range(1, RUNS + 1)]
        return self.noisy

    def decided_by_rounding(self, upto):
        """Whether noise changes the text of one of the lines before `upto` or of that one."""
        for run in self.runs():
            for number in range(upto + 1):
                if number >= len(run) or number >= len(self.expected):
                    return len(run) != len(self.expected)
                if run[number][1] != noisy_split(self.expected[number])[0]:
                    return True
                if any(math.isfinite(a) != math.isfinite(b) for a, b in zip(run[number][2], split(self.expected[number])[1])):
                    return True
        return False

    def difference(self, got):
        got = no_addresses(got).splitlines()
        if got == self.expected:
            return None
        version = None
        for number in range(max(len(got), len(self.expected))):
            left = self.expected[number] if number < len(self.expected) else "(ended)"
            right = got[number] if number < len(got) else "(ended)"
            if left == right:
                continue
            (texts, floats), (other_texts, other_floats) = split(left), split(right)
            if texts != other_texts:
                if VERSION.sub(" v ", left) == VERSION.sub(" v ", right) or noisy_split(left)[0] == noisy_split(right)[0] and self.close(left, floats, other_floats, number):
                    version = version or Difference("version", number, left, right)
                    continue
                if noisy_split(left)[0] == noisy_split(right)[0]:
                    return Difference("numbers", number, left, right)
                if self.decided_by_rounding(number):
                    self.by_noise = True
                    return None
                return Difference(kind_of(left, right), number, left, right)
            if not self.close(left, floats, other_floats, number):
                return Difference("numbers", number, left, right)
        return version

    def close(self, line, floats, others, number):
        scale = max((abs(f) for f in floats if math.isfinite(f)), default=0.0)
        allowed = [max(self.relative * scale, self.absolute, unit) for unit in last_digits(line)]
        apart = [distance(a, b) for a, b in zip(floats, others)]
        if all(d <= limit for d, limit in zip(apart, allowed)):
            return True
        if self.decided_by_rounding(number):
            self.by_noise = True
            return True
        runs = self.runs()
        if not runs and all(d <= UNMEASURED * self.absolute for d in apart):  # noise cannot tell what sums that cancel leave
            return True
        spread = max((distance(a, b) for run in runs for a, b in zip(floats, run[number][2])), default=0.0)
        if all(d <= max(limit, FACTOR * spread) for d, limit in zip(apart, allowed)):
            self.by_noise = True
            return True
        return False
