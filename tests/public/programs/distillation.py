"""Knowledge distillation: a large net's soft answers, a cosine of hidden layers, a regressor of feature maps, after PyTorch's tutorial."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader

from synthetic import Digits


class DeepNN(nn.Module):
    def __init__(self, num_classes=10):
        super(DeepNN, self).__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2),
                                      nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2))
        self.classifier = nn.Sequential(nn.Linear(8 * 16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, num_classes))

    def forward(self, x):
        maps = self.features(x)
        flat = torch.flatten(maps, 1)
        return self.classifier(flat), flat, maps


class LightNN(nn.Module):
    def __init__(self, num_classes=10):
        super(LightNN, self).__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2))
        self.classifier = nn.Sequential(nn.Linear(8 * 16, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, num_classes))
        self.regressor = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1))

    def forward(self, x):
        maps = self.features(x)
        flat = torch.flatten(maps, 1)
        return self.classifier(flat), flat, self.regressor(maps)


def train(model, train_loader, epochs, learning_rate):
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=learning_rate)
    model.train()
    for epoch in range(epochs):
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs)[0], labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"Epoch {epoch + 1}/{epochs}, Loss: {running_loss / len(train_loader):.4f}")


def test(model, test_loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for inputs, labels in test_loader:
            _, predicted = torch.max(model(inputs)[0].data, 1)
            total += labels.size(0)
            correct += (predicted == labels).sum().item()
    accuracy = 100 * correct / total
    print(f"Test Accuracy: {accuracy:.2f}%")
    return accuracy


def soft_targets(teacher_out, student_out, T=2):
    teacher, student = nn.functional.softmax(teacher_out[0] / T, dim=-1), nn.functional.log_softmax(student_out[0] / T, dim=-1)
    return torch.sum(teacher * (teacher.log() - student)) / student.size()[0] * (T ** 2)


def cosine(teacher_out, student_out):
    return nn.CosineEmbeddingLoss()(student_out[1], teacher_out[1], target=torch.ones(student_out[1].size(0)))


def maps(teacher_out, student_out):
    return nn.MSELoss()(student_out[2], teacher_out[2])


def train_student(teacher, student, train_loader, epochs, learning_rate, extra, weight):
    ce_loss = nn.CrossEntropyLoss()
    optimizer = optim.Adam(student.parameters(), lr=learning_rate)
    teacher.eval()
    student.train()
    for epoch in range(epochs):
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_out = teacher(inputs)
            student_out = student(inputs)
            loss = weight * extra(teacher_out, student_out) + (1 - weight) * ce_loss(student_out[0], labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"{extra.__name__} {epoch + 1}/{epochs}, Loss: {running_loss / len(train_loader):.4f}")


def main():
    torch.manual_seed(42)
    train_loader = DataLoader(Digits(320, size=16, seed=1), batch_size=32, shuffle=True)
    test_loader = DataLoader(Digits(128, size=16, seed=2), batch_size=32)
    teacher = DeepNN()
    train(teacher, train_loader, 5, 3e-3)
    test(teacher, test_loader)
    students = {}
    for extra, weight in ((None, 0), (soft_targets, 0.25), (cosine, 0.25), (maps, 0.25)):
        torch.manual_seed(42)
        student = LightNN()
        print("Norm of 1st layer: %.4f" % torch.norm(student.features[0].weight).item())
        if extra is None:
            train(student, train_loader, 3, 3e-3)
        else:
            train_student(teacher, student, train_loader, 3, 3e-3, extra, weight)
        students[extra.__name__ if extra else "alone"] = test(student, test_loader)
    print(students)


if __name__ == "__main__":
    main()
