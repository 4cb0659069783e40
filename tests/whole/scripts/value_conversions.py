# float(), int(), complex(), round(), __index__, divmod and format of one-element tensors as numbers of the loop.
# expect: compiled>=0.55, traces>=1
import math

import torch

torch.manual_seed(81)
x = torch.rand(5) + 0.5
numbers = {"floor": 0, "round": 0, "index": 0, "bits": 0}
sequence = list("abcdefgh")
for step in range(50):
    scalar = x.sum()
    numbers["floor"] += math.floor(scalar)
    numbers["round"] += round(float(scalar), 1) > 3
    numbers["index"] += ord(sequence[(scalar * 2).long() % 8]) - ord("a")
    numbers["bits"] += int(scalar * 10).bit_length()
    quotient, rest = divmod(int(scalar * 100), 7)
    x = (x + rest * 0.01).fmod(1.5) + complex(scalar.double()).real * 0.01
    text = f"{scalar:.1f}" + "{:d}".format(int(quotient))
print(numbers, len(text) > 3, [f"{v:.4f}" for v in x.tolist()], math.isclose(scalar, float(scalar)))
