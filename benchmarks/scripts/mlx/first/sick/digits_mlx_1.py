import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from sklearn.datasets import load_digits


class MLP(nn.Module):
    def __init__(self, num_layers: int, input_dim: int, hidden_dim: int, output_dim: int):
        super().__init__()
        layer_sizes = [input_dim] + [hidden_dim] * num_layers + [output_dim]
        self.layers = [nn.Linear(idim, odim) for idim, odim in zip(layer_sizes[:-1], layer_sizes[1:])]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return mx.softmax(self.layers[-1](x), axis=0)


def loss_fn(model, X, y):
    probs = mx.take_along_axis(model(X), y[:, None], axis=1)
    return -mx.mean(mx.log(probs + 1e-8))


def eval_fn(model, X, y):
    return mx.mean(mx.argmax(model(X), axis=1) == y)


def batch_iterate(batch_size, X, y):
    perm = mx.array(np.random.permutation(y.size))
    for s in range(0, y.size, batch_size):
        ids = perm[s : s + batch_size]
        yield X[ids], y[ids]


def main(num_layers=2, hidden_dim=32, batch_size=64, num_epochs=15, learning_rate=5e-3):
    np.random.seed(0)
    mx.random.seed(0)
    data = load_digits()
    order = np.random.permutation(len(data.data))
    X = mx.array(data.data[order].astype(np.float32) / 16)
    y = mx.array(data.target[order].astype(np.uint32))
    train_images, train_labels = X[:1472], y[:1472]
    test_images, test_labels = X[1472:], y[1472:]

    model = MLP(num_layers, train_images.shape[-1], hidden_dim, 10)
    mx.eval(model.parameters())
    loss_and_grad_fn = nn.value_and_grad(model, loss_fn)
    optimizer = optim.Adam(learning_rate=learning_rate)

    for e in range(num_epochs):
        losses = []
        for X, y in batch_iterate(batch_size, train_images, train_labels):
            loss, grads = loss_and_grad_fn(model, X, y)
            optimizer.update(model, grads)
            mx.eval(model.parameters(), optimizer.state)
            losses.append(loss.item())
        accuracy = eval_fn(model, test_images, test_labels)
        print(f"Epoch {e}: train loss {np.mean(losses):.3f}, Test accuracy {accuracy.item():.3f}")


if __name__ == "__main__":
    main()
