# The % operator, str.format with names, indices and attributes, and Template, for messages built in each iteration.
# expect: compiled>=0.75, traces>=1
from string import Template

import torch

torch.manual_seed(39)
template = Template("$name at $step")
x = torch.rand(4)
seen = set()
for step in range(40):
    x = (x * 3.7 * (1 - x)).clamp(0, 1)
    mean, peak = x.mean().item(), x.argmax().item()
    first = "%03d %-6s %6.3f%% %s" % (step, "peak%d" % peak, 100 * mean, list(x.shape))
    second = "{0.dtype} {1:.2f} {name[0]}".format(x, mean, name=["n", "m"])
    third = template.substitute(name="run", step=step)
    seen.add(len(first) + len(second) + len(third))
    if step % 8 == 7:
        print(first, second, third, "{:>8}".format("x" * (peak + 1)), sep=" | ")
print(sorted(seen))
