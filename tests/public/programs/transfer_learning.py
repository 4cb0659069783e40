"""A pretrained residual net fine-tuned, then used as a fixed feature extractor: phases, groups of parameters, best weights, after PyTorch's tutorial."""

import copy
import os
from tempfile import TemporaryDirectory

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

from synthetic import Digits, Shapes


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False), nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(BasicBlock(8, 8), BasicBlock(8, 8))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2), BasicBlock(16, 16))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def train_model(model, criterion, optimizer, scheduler, dataloaders, num_epochs):
    dataset_sizes = {phase: len(loader.dataset) for phase, loader in dataloaders.items()}
    with TemporaryDirectory() as tempdir:
        best_model_params_path = os.path.join(tempdir, "best_model_params.pt")
        torch.save(model.state_dict(), best_model_params_path)
        best_acc = 0.0
        for epoch in range(num_epochs):
            print(f"Epoch {epoch}/{num_epochs - 1}")
            print("-" * 10)
            for phase in ["train", "val"]:
                if phase == "train":
                    model.train()
                else:
                    model.eval()
                running_loss, running_corrects = 0.0, 0
                for inputs, labels in dataloaders[phase]:
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        outputs = model(inputs)
                        _, preds = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    running_loss += loss.item() * inputs.size(0)
                    running_corrects += torch.sum(preds == labels.data)
                if phase == "train":
                    scheduler.step()
                epoch_loss, epoch_acc = running_loss / dataset_sizes[phase], running_corrects.double() / dataset_sizes[phase]
                print(f"{phase} Loss: {epoch_loss:.4f} Acc: {epoch_acc:.4f}")
                if phase == "val" and epoch_acc > best_acc:
                    best_acc = epoch_acc
                    torch.save(model.state_dict(), best_model_params_path)
        print(f"Best val Acc: {best_acc:4f}")
        model.load_state_dict(torch.load(best_model_params_path, weights_only=True))
    return model


def loaders(train, valid):
    return {"train": DataLoader(train, batch_size=16, shuffle=True), "val": DataLoader(valid, batch_size=16)}


def main():
    torch.manual_seed(19)
    pretrained, shapes = ResNet(6), {}
    for phase, count, seed in (("train", 160, 1), ("val", 48, 2)):
        made = Shapes(count, seed=seed)
        shapes[phase] = TensorDataset(made.images, made.targets)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(pretrained.parameters(), lr=0.05, momentum=0.9)
    train_model(pretrained, criterion, optimizer, lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.3), loaders(shapes["train"], shapes["val"]), 2)
    digits = loaders(Digits(160, size=32, seed=3, channels=3), Digits(48, size=32, seed=4, channels=3))

    model_ft = copy.deepcopy(pretrained)
    model_ft.fc = nn.Linear(model_ft.fc.in_features, 10)
    base = [p for name, p in model_ft.named_parameters() if not name.startswith("fc.")]
    optimizer_ft = optim.SGD([{"params": base, "lr": 0.01}, {"params": model_ft.fc.parameters()}], lr=0.05, momentum=0.9)
    train_model(model_ft, criterion, optimizer_ft, lr_scheduler.ExponentialLR(optimizer_ft, gamma=0.8), digits, 2)

    model_conv = copy.deepcopy(pretrained)
    for param in model_conv.parameters():
        param.requires_grad = False
    model_conv.fc = nn.Linear(model_conv.fc.in_features, 10)
    optimizer_conv = optim.SGD(model_conv.fc.parameters(), lr=0.05, momentum=0.9)
    model_conv = train_model(model_conv, criterion, optimizer_conv, lr_scheduler.StepLR(optimizer_conv, step_size=1, gamma=0.5), digits, 2)
    moved = sum(not torch.equal(a, b) for a, b in zip(pretrained.parameters(), model_conv.parameters()) if a.shape == b.shape)
    print("parameters that fixed layers moved:", moved)


if __name__ == "__main__":
    main()
