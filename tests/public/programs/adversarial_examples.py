"""Adversarial images by the fast gradient sign and by projected steps, then adversarial training, after PyTorch's FGSM tutorial."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader

from synthetic import Digits

epsilons = [0, 0.05, 0.1, 0.2]
torch.manual_seed(42)


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, 1), nn.Conv2d(8, 16, 3, 1)
        self.dropout = nn.Dropout(0.25)
        self.fc1, self.fc2 = nn.Linear(16 * 6 * 6, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(self.dropout(x), 1)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def pgd_attack(model, image, target, epsilon, steps=4):
    start = image.clone()
    image = torch.clamp(image + epsilon * (2 * torch.rand_like(image) - 1), 0, 1)
    for _ in range(steps):
        image = image.detach().requires_grad_(True)
        loss = F.nll_loss(model(image), target)
        grad, = torch.autograd.grad(loss, image)
        image = torch.max(torch.min(image.detach() + epsilon / 2 * grad.sign(), start + epsilon), start - epsilon).clamp(0, 1)
    return image


def test(model, test_loader, epsilon):
    correct, adv_examples = 0, []
    for data, target in test_loader:
        data.requires_grad = True
        output = model(data)
        init_pred = output.max(1, keepdim=True)[1]
        if init_pred.item() != target.item():
            continue
        loss = F.nll_loss(output, target)
        model.zero_grad()
        loss.backward()
        perturbed_data = fgsm_attack(data, epsilon, data.grad.data)
        final_pred = model(perturbed_data).max(1, keepdim=True)[1]
        if final_pred.item() == target.item():
            correct += 1
        elif len(adv_examples) < 5:
            adv_examples.append((init_pred.item(), final_pred.item()))
    print(f"Epsilon: {epsilon}\tTest Accuracy = {correct} / {len(test_loader)}", adv_examples)


model = Net()
train_loader = DataLoader(Digits(320, size=16, seed=1), batch_size=32, shuffle=True)
test_loader = DataLoader(Digits(60, size=16, seed=2), batch_size=1)
optimizer = optim.Adam(model.parameters(), lr=3e-3)
for adversarial in (False, True):
    model.train()
    for epoch in range(3):
        total = 0.0
        for data, target in train_loader:
            if adversarial:
                data = torch.cat([data, pgd_attack(model, data, target, 0.05)])
                target = target.repeat(2)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"{'adversarial' if adversarial else 'plain'} epoch {epoch}: {total / len(train_loader):.4f}")
    model.eval()
    for eps in epsilons[:4 if not adversarial else 2]:
        test(model, test_loader, eps)
