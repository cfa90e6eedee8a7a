import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_map
from sklearn.datasets import load_digits

mx.set_default_device(mx.cpu)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 12, 3, padding=1)
        self.n1 = nn.GroupNorm(4, 12)
        self.c2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.n2 = nn.GroupNorm(4, 24)
        self.out = nn.Linear(24 * 16, 10)

    def __call__(self, x):
        x = nn.relu(self.n1(self.c1(x)))
        x = nn.relu(self.n2(self.c2(x)))
        return self.out(x.reshape(len(x), -1))


def soft_cross_entropy(model, x, target):
    return -mx.mean(mx.sum(target * nn.log_softmax(model(x), axis=-1), axis=-1))


def mixup(x, y, rng):
    share = rng.beta(0.3, 0.3, (len(x), 1)).astype(np.float32)
    other = rng.permutation(len(x))
    target = np.eye(10, dtype=np.float32)[y]
    return share[:, :, None, None] * x + (1 - share)[:, :, None, None] * x[other], share * target + (1 - share) * target[other]


def accuracy(model, x, y):
    return mx.mean(model(x).argmax(-1) == y).item()


rng = np.random.default_rng(18)
mx.random.seed(18)
digits = load_digits()
order = rng.permutation(len(digits.target))
x, y = (digits.images[order][..., None] / 16.0).astype(np.float32), digits.target[order]
x_test, y_test = mx.array(x[1400:]), mx.array(y[1400:])

model, average = ConvNet(), ConvNet()
average.update(model.parameters())
average.freeze()
optimizer = optim.AdamW(learning_rate=optim.cosine_decay(4e-3, 12 * 28), weight_decay=0.02)
grad_fn = nn.value_and_grad(model, soft_cross_entropy)

for epoch in range(12):
    rows = rng.permutation(1400)
    losses = []
    for i in range(0, 1400, 50):
        take = rows[i : i + 50]
        xb, tb = mixup(x[take], y[take], rng)
        loss, grads = grad_fn(model, mx.array(xb), mx.array(tb))
        optimizer.update(model, grads)
        average.update(tree_map(lambda a, b: 0.98 * a + 0.02 * b, average.parameters(), model.parameters()))
        mx.eval(model.parameters(), average.parameters(), optimizer.state)
        losses.append(loss.item())
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}  model {accuracy(model, x_test, y_test):.3f}  average {accuracy(average, x_test, y_test):.3f}")
