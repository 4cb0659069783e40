# OrderedDicts in the loop: their order is not the one of their table.
# expect: compiled>=0.5, traces>=1
import torch
from collections import OrderedDict
od = OrderedDict(a=1.0); od2 = OrderedDict(a=1.0, b=2.0)
def main():
    x = torch.ones(3); out = []
    for i in range(50):
        for v in od.values(): x = x + v
        for k, v in od2.items(): x = x * (1 + 0.01 * v)
        for k in od: x = x + len(k)
        if i == 20: od["b"] = 0.5
        if i == 30: od.move_to_end("a"); od2.move_to_end("a")
        out.append("".join(od) + "".join(k for k, v in od2.items()))
    print(x.tolist(), out[::7], list(od.values()))
main()
