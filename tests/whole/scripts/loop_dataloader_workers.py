# A DataLoader with two worker processes: order, batches and the seeds of the workers are those of python.
# expect: traces>=1
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        phase = torch.arange(5.0) * (1 + index % 4)
        return {"x": torch.sin(phase), "label": index % 4, "noise": torch.rand(1)}


if __name__ == "__main__":
    torch.manual_seed(83)
    model = nn.Linear(5, 4)
    loader = DataLoader(Waves(), batch_size=4, num_workers=2, persistent_workers=True)
    seen = []
    for epoch in range(2):
        noise = 0.0
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["x"]), batch["label"])
            model.zero_grad()
            loss.backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.2 * p.grad
            noise += batch["noise"].sum().item()
            seen.append(batch["label"].tolist())
        print(epoch, f"{loss.item():.4f} {noise:.4f}")
    print(len(seen), seen[:2], seen[-1])
