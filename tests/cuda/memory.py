"""The peak of torch's allocator in a loop on a GPU, in bytes, while iterations at full speed ran: `memory.py training|convolutions|attention|inference|variables|branches|pieces|decoding`. Exit status 77 without a GPU.

One loop a process: what an earlier loop's graphs have reserved would be in it too.
"""

import sys

import torch
import torch.nn as nn

STEPS, STEADY = 260, 200  # behind the compilation of kernels and the capture of graphs, which go on beside the first ones


def peak(step):
    peaks = []
    for _ in range(STEPS):
        torch.cuda.reset_peak_memory_stats()
        result = step()  # noqa: F841: kept, as a script would
        peaks.append(torch.cuda.max_memory_allocated())
    return max(peaks[STEADY:])


def training_step(model, optimizer, x):
    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss
    return step


def training():
    """Activations that live until the gradient of their layer."""
    model = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(1024, 1024), nn.GELU(), nn.LayerNorm(1024))]).cuda()
    return training_step(model, torch.optim.AdamW(model.parameters()), torch.randn(8192, 1024, device="cuda"))


def convolutions():
    """Results that only the library can allocate."""
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())], nn.Conv2d(32, 4, 1)).cuda()
    return training_step(model, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9), torch.randn(32, 32, 64, 64, device="cuda"))


def attention():
    """Stretches that end at the library's random calls, and gradients that one hands to the next."""
    layers = [nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, batch_first=True, dtype=torch.bfloat16) for _ in range(8)]
    model = nn.Sequential(*layers).cuda()
    return training_step(model, torch.optim.AdamW(model.parameters()), torch.randn(16, 256, 512, device="cuda", dtype=torch.bfloat16))


def variables():
    """What a variable was in the iteration before is gone when the next one needs memory."""
    weight, base = torch.randn(2048, 2048, device="cuda"), torch.randn(2048, 2048, device="cuda")

    def step():
        for _ in range(30):
            x = base
            x = x @ weight
            x = torch.relu(x) if x.mean().item() > 0 else torch.tanh(x)
        return x
    return step


def branches():
    """Numbers that are read, and graphs of few operations between them."""
    layers = [nn.Linear(256, 256).cuda() for _ in range(10)]
    x0 = torch.randn(64, 256, device="cuda")

    def step():
        x = x0
        with torch.no_grad():
            for layer in layers:
                x = layer(x)
                x = torch.relu(x) if x.mean().item() > 0 else torch.tanh(x)
        return x
    return step


def pieces():
    """Small tensors that are gone when a large one is made: those that Python had, those between two stretches, and those that only the trace knows."""
    table, head = torch.randn(512, 256, device="cuda"), torch.randn(256, 50000, device="cuda")
    ids = torch.randint(0, 512, (1, 256), device="cuda")

    def embed(tokens):
        positions = torch.arange(tokens.shape[1], device="cuda").unsqueeze(0)
        mask = (tokens >= 0).cumsum(-1) - 1
        if not (mask >= 0).all().item():
            raise ValueError("no token")
        seen = {"positions": positions, "mask": mask}
        return table[tokens[0]] + torch.sin(positions[0].float() + seen["mask"][0]).unsqueeze(1)

    def step():
        with torch.no_grad():
            x = embed(ids)
            for _ in range(4):
                x = torch.softmax(torch.tanh(x @ x.t()), -1) @ x
            return x @ head
    return step


def inference():
    """Few tensors at a time, and a large result."""
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))], nn.Linear(512, 8192)).cuda()
    x = torch.randn(4096, 512, device="cuda")

    def step():
        with torch.no_grad():
            return model(x)
    return step


class Cache:
    def __init__(self):
        self.keys = torch.randn(8, 256, 512, device="cuda")

    def update(self, x):
        self.keys = torch.cat([self.keys, x], 1)
        return self.keys


def decoding():
    """Caches that the script replaces, one after the other."""
    caches = [Cache() for _ in range(12)]
    x0 = torch.randn(8, 1, 512, device="cuda")

    def step():
        x = x0
        with torch.no_grad():
            for cache in caches:
                keys = cache.update(x)
                x = torch.softmax(x @ keys.transpose(1, 2), -1) @ keys
        return x
    return step


LOOPS = {"training": training, "convolutions": convolutions, "attention": attention, "inference": inference, "variables": variables, "branches": branches, "pieces": pieces, "decoding": decoding}


def main():
    if not torch.cuda.is_available():
        sys.exit(77)
    torch.manual_seed(0)
    (peak_of,) = map(lambda make: peak(make()), [LOOPS[sys.argv[1]]])  # called from C, so that the loop is the outermost one
    print(peak_of)


if __name__ == "__main__":
    main()
