# A server whose batches have 1 to 12 rows in no fixed order; answers are split again for each client.
# expect: compiled>=0.35, traces>=1
import torch
from torch import nn

torch.manual_seed(118)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
answers = {}
with torch.inference_mode(False), torch.no_grad():
    for tick in range(70):
        clients = [f"c{k}" for k in range(1 + (tick * 7) % 12)]
        batch = torch.stack([torch.full((5,), 0.1 * k + 0.01 * tick) for k in range(len(clients))])
        for client, scores in zip(clients, model(batch).softmax(-1).unbind(0)):
            answers[client] = answers.get(client, 0.0) + scores.max().item()
print(len(answers), {c: f"{answers[c]:.4f}" for c in ("c0", "c5", "c11")})
