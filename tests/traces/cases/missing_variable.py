# os.getenv raises and catches a KeyError inside; torch's optimizers ask it on machines with a GPU.
# expect: compiled>=0.7
import os

import torch

torch.manual_seed(0)


def main():
    x = torch.randn(16, 16)
    total = 0.0
    for i in range(40):
        if os.getenv("DYNVM_TEST_NO_SUCH_VARIABLE") == "1":
            print("set")
        if i == 30:
            os.environ["DYNVM_TEST_NO_SUCH_VARIABLE"] = "1"
        y = torch.relu(x * 2 + i) - 1
        total += (y + x).sum().item()
    print(f"{total:.4f}")


main()
