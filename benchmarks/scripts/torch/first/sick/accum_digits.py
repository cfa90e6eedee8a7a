import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
targets = torch.tensor(digits.target)
tr, va = train_test_split(range(len(targets)), test_size=0.2, random_state=6, stratify=digits.target)
train_loader = DataLoader(TensorDataset(images[tr], targets[tr]), batch_size=8, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(images[va], targets[va]), batch_size=120)

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(24 * 16, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
accum_steps = 16

for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    seen, loss_sum = 0, 0.0
    for step, (x, y) in enumerate(train_loader, start=1):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        loss_sum += loss.item() * len(y)
        seen += len(y)
        if step % accum_steps == 0 or step == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch + 1}: loss {loss_sum / seen:.4f}, val acc {correct / len(va):.4f}")
