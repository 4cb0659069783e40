# nonzero and argwhere give as many rows as there are spikes; each row is handled, none at times.
# expect: compiled>=0.5, traces>=1
import torch

torch.manual_seed(123)
signal = torch.zeros(24)
events, energy = [], 0.0
for step in range(60):
    signal = 0.8 * signal + torch.randn(24) * 0.4
    spikes = (signal.abs() > 1.1).nonzero()
    energy += signal[spikes.flatten()].sum().item() * 0.1
    for (index,) in spikes.tolist():
        signal[index] = 0.0
    events.append(len(spikes))
    rows, columns = torch.where(signal.view(4, 6) > 0.9)
    energy += float((rows * 6 + columns).sum()) * 0.001
print(sum(events), max(events), events.count(0), f"{energy:.4f} {signal.sum().item():.4f}", tuple(torch.argwhere(signal > 9).shape))
