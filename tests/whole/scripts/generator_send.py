# A coroutine-like generator keeps a running average across iterations; the loop sends values in and closes it.
# expect: compiled>=0.55, traces>=1
import torch


def averager(decay):
    average, seen = None, 0
    try:
        while True:
            value = yield average
            if value is None:
                average = None
                continue
            seen += 1
            average = value if average is None else decay * average + (1 - decay) * value
    finally:
        print("closed after", seen)


torch.manual_seed(25)
weights = torch.zeros(5)
tracker = averager(0.8)
next(tracker)
for step in range(60):
    gradient = torch.sin(weights + torch.arange(5.0)) * 0.1
    smoothed = tracker.send(gradient)
    weights = weights - smoothed
    if step == 40:
        print(tracker.send(None))
tracker.close()
print([f"{w:.4f}" for w in weights.tolist()])
