# From some iteration on the loop takes another way at its end, with no tensor operation on it: its trace does its work until the next one is there, which has the new way in it.
# expect: compiled>=0.98, recordings<=9, side_exits<=700
import torch

layer = torch.nn.Linear(16, 16)
x = torch.randn(4, 16, generator=torch.Generator().manual_seed(0))
taken = []


def loop(limit):
    with torch.no_grad():
        while len(taken) < 40 or (limit > 0 and len(taken) < 2000):
            result = torch.relu(layer(x)) + 1
            taken.append(len(taken))
    return result


torch.manual_seed(0)
layer.reset_parameters()
print(f"{loop(1.0).sum().item():.4f}", len(taken))
