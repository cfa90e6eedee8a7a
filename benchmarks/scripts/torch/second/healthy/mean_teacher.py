"""Few labels, many pictures: a student learns from labels and from its own slowly moving average."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class ConvNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.2),
        )
        self.head = nn.Linear(8 * width, 10)

    def forward(self, x):
        return self.head(self.body(x))


def augment(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, shifts=shift, dims=(2, 3)) + 0.15 * torch.randn_like(x)


@torch.no_grad()
def follow(teacher, student, decay):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)
    for t, s in zip(teacher.buffers(), student.buffers()):
        t.copy_(s)


@torch.no_grad()
def accuracy(model, x, y):
    was_training = model.training
    model.eval()
    hits = (model(x).argmax(1) == y).float().mean().item()
    model.train(was_training)
    return hits


def main(steps=400, n_labelled=150):
    torch.manual_seed(9)
    torch.set_num_threads(1)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    x_test, y_test = x[:400], y[:400]
    x_lab, y_lab, x_unl = x[400 : 400 + n_labelled], y[400 : 400 + n_labelled], x[400 + n_labelled :]

    student = ConvNet()
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad = False
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    sums = [0.0, 0.0]
    for step in range(1, steps + 1):
        i = torch.randint(0, len(x_lab), (32,))
        j = torch.randint(0, len(x_unl), (64,))
        weight = 3.0 * min(1.0, step / 150)
        logits = student(augment(torch.cat([x_lab[i], x_unl[j]])))
        with torch.no_grad():
            goal = teacher(augment(x_unl[j])).softmax(dim=1)
        supervised = F.cross_entropy(logits[:32], y_lab[i])
        consistency = F.mse_loss(logits[32:].softmax(dim=1), goal)
        loss = supervised + weight * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        follow(teacher, student, min(0.98, 1 - 1 / (step + 1)))
        sums[0] += supervised.item()
        sums[1] += consistency.item()
        if step % 80 == 0:
            print(
                f"step {step}: supervised {sums[0] / 80:.4f}  consistency {sums[1] / 80:.4f}"
                f"  student {accuracy(student, x_test, y_test):.3f}  teacher {accuracy(teacher, x_test, y_test):.3f}"
            )
            sums = [0.0, 0.0]


if __name__ == "__main__":
    main()
