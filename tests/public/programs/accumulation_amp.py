"""Gradient accumulation, clipping, autocast to bfloat16 on the CPU, a scaler and checkpointed layers, as training recipes write them."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from synthetic import Shapes


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(4, channels), nn.GELU(), nn.Conv2d(channels, channels, 1))

    def forward(self, x):
        return x + self.body(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 4, stride=4)
        self.blocks = nn.ModuleList([Residual(16) for _ in range(2)])
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 6))
        self.save_memory = False

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.save_memory and self.training else block(x)
        return self.head(x)


def accuracy(model, loader):
    model.eval()
    right = seen = 0
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        for images, _, targets in loader:
            right += (model(images).float().argmax(-1) == targets).sum().item()
            seen += len(targets)
    return right / seen


def main(accumulation_steps=4, epochs=3):
    torch.manual_seed(33)
    train_loader = DataLoader(Shapes(256, seed=4), batch_size=8, shuffle=True)
    valid_loader = DataLoader(Shapes(64, seed=5), batch_size=32)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=6)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    for epoch in range(epochs):
        model.train()
        model.save_memory = epoch == 2
        running = 0.0
        optimizer.zero_grad(set_to_none=True)
        for step, (images, _, targets) in enumerate(train_loader):
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                logits = model(images)
                loss = criterion(logits.float(), targets) / accumulation_steps
            scaler.scale(loss).backward()
            running += loss.item()
            if (step + 1) % accumulation_steps == 0 or step + 1 == len(train_loader):
                scaler.unscale_(optimizer)
                norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                if (step + 1) % 16 == 0:
                    print(f"epoch {epoch} step {step + 1} loss {running * accumulation_steps / (step + 1):.3f} scale {scaler.get_scale():.0f} logits {logits.dtype}")
        scheduler.step(running)
        print(f"epoch {epoch} accuracy {accuracy(model, valid_loader):.2f} lr {optimizer.param_groups[0]['lr']:.5f} norm below 100: {norm.item() < 100}")
    plain = Net()
    plain.load_state_dict(model.state_dict())
    print(f"in float32 {accuracy(plain, valid_loader):.2f}")


if __name__ == "__main__":
    main()
