# Training a TransformerEncoderLayer: Tensor.unflatten asks super() for its method, and attention's projections are views of one product.
# expect: compiled>=0.7
import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(40, 4, 8, 32), torch.randint(0, 32, (40, 32))
    for i in range(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[i]).reshape(-1, 32), y[i])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if i % 8 == 7:
            print(f"{loss.item():.4f} {norm.item():.3f}")


main()
