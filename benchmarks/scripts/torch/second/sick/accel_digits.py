import argparse

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset
from transformers import get_linear_schedule_with_warmup


class ConvNet(nn.Module):
    def __init__(self, width=24, classes=10):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, stride=2),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(2 * width * 4, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def get_dataloaders(batch_size):
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8.0 - 1.0
    labels = torch.tensor(digits.target)
    train_idx, eval_idx = train_test_split(range(len(labels)), test_size=0.25, random_state=0, stratify=labels)
    train_set = TensorDataset(images[train_idx], labels[train_idx])
    eval_set = TensorDataset(images[eval_idx], labels[eval_idx])
    return DataLoader(train_set, batch_size=batch_size, shuffle=True), DataLoader(eval_set, batch_size=128)


def training_function(args):
    accelerator = Accelerator(cpu=True)
    set_seed(args.seed)
    train_dataloader, eval_dataloader = get_dataloaders(args.batch_size)
    model = ConvNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    lr_scheduler = get_linear_schedule_with_warmup(
        optimizer=optimizer,
        num_warmup_steps=2,
        num_training_steps=args.num_epochs,
    )
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
    )
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.num_epochs):
        model.train()
        total_loss = 0.0
        for x, y in train_dataloader:
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
            total_loss += loss.item()

        model.eval()
        correct = seen = 0
        for x, y in eval_dataloader:
            with torch.no_grad():
                predictions = model(x).argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, y))
            correct += (predictions == references).sum().item()
            seen += references.numel()
        accelerator.print(
            f"epoch {epoch}: train loss {total_loss / len(train_dataloader):.4f}, accuracy {correct / seen:.4f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--num_epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=3)
    torch.set_num_threads(1)
    training_function(parser.parse_args())
