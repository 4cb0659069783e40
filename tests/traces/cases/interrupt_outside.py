# Ctrl-C while a hot loop runs for ever ends it with KeyboardInterrupt, which the script catches.
# interrupt-after: ready
import torch

x = torch.ones(8)
count = 0
try:
    while True:
        x = torch.cos(x) * 0.9
        count += 1
        if count == 500:
            print("ready", flush=True)
except KeyboardInterrupt:
    print("interrupted", count >= 500, f"{x[0].item():.4f}")
