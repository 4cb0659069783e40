"""A training loop with accelerate: prepared objects, accumulation, clipping, gathered metrics, states that are kept and loaded, after its cv example."""

import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from digits import Digits


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def main():
    set_seed(42)
    with tempfile.TemporaryDirectory() as folder:
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, project_dir=folder)
        train_loader = DataLoader(Digits(320, size=16, seed=1), batch_size=16, shuffle=True)
        valid_loader = DataLoader(Digits(100, size=16, seed=2), batch_size=32)
        model = Net()
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, epochs=4, steps_per_epoch=len(train_loader))
        model, optimizer, train_loader, valid_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, valid_loader, scheduler)
        for epoch in range(4):
            model.train()
            total = torch.zeros(())
            for step, (images, targets) in enumerate(train_loader):
                with accelerator.accumulate(model):
                    loss = F.cross_entropy(model(images), targets)
                    total += loss.detach()
                    accelerator.backward(loss)
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    scheduler.step()
                    optimizer.zero_grad()
            model.eval()
            right = seen = 0
            for images, targets in valid_loader:
                with torch.inference_mode():
                    predictions = model(images).argmax(dim=-1)
                predictions, references = accelerator.gather_for_metrics((predictions, targets))
                right += (predictions == references).sum().item()
                seen += len(references)
            accelerator.print(f"epoch {epoch}: loss {total.item() / len(train_loader):.4f} accuracy {100 * right / seen:.2f} lr {scheduler.get_last_lr()[0]:.6f}")
            accelerator.save_state(os.path.join(folder, f"epoch_{epoch}"))
        last = accelerator.unwrap_model(model).head.weight.detach().clone()
        accelerator.load_state(os.path.join(folder, "epoch_0"))
        first = accelerator.unwrap_model(model).head.weight.detach()
        accelerator.print(f"epoch 0 was {(first - last).abs().mean().item():.4f} away; steps {optimizer.step_was_skipped}")


if __name__ == "__main__":
    main()
