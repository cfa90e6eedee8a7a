import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, kernel_size=3, padding=1)
        self.bn1 = nn.BatchNorm(12)
        self.conv2 = nn.Conv2d(12, 16, kernel_size=3, stride=2, padding=1)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(4 * 4 * 16, 10)

    def __call__(self, x):
        x = nn.relu(self.bn1(self.conv1(x)))
        x = nn.relu(self.conv2(x)).flatten(1)
        return self.fc(self.drop(x))


mx.random.seed(60)
rng = np.random.default_rng(60)
digits = load_digits()
images = (digits.images[..., None] / 16.0).astype(np.float32)
x_train, x_test, y_train, y_test = train_test_split(
    images, digits.target.astype(np.int32), test_size=0.2, random_state=60
)

model = ConvNet()
optimizer = optim.Adam(learning_rate=1e-3)


def loss_fn(model, x, y):
    return nn.losses.cross_entropy(model(x), y, reduction="mean")


loss_and_grad = nn.value_and_grad(model, loss_fn)

for epoch in range(8):
    model.train()
    losses = []
    order = rng.permutation(len(x_train))
    for i in range(0, 1408, 44):
        idx = order[i : i + 44]
        loss, grads = loss_and_grad(model, mx.array(x_train[idx]), mx.array(y_train[idx]))
        optimizer.update(model, grads)
        mx.eval(model.state, optimizer.state)
        losses.append(loss.item())
    model.eval()
    logits = model(mx.array(x_test))
    test_loss = nn.losses.cross_entropy(logits, mx.array(y_test), reduction="mean").item()
    acc = mx.mean(mx.argmax(logits, axis=1) == mx.array(y_test)).item()
    print(f"epoch {epoch} train {np.mean(losses):.4f} test {test_loss:.4f} acc {acc:.4f}")
