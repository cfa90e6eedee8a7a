"""Two-layer network for digits, as in the course: parameters in a dict, caches for the way back."""

import numpy as np
from sklearn.datasets import load_digits

rng = np.random.default_rng(0)


def init_params(n_x, n_h, n_y):
    return {
        "W1": rng.standard_normal((n_x, n_h)) * np.sqrt(2.0 / n_x),
        "b1": np.zeros((1, n_h)),
        "W2": rng.standard_normal((n_h, n_y)) * np.sqrt(1.0 / n_h),
        "b2": np.zeros((1, n_y)),
    }


def softmax(z):
    e = np.exp(z - z.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


def forward_propagation(X, params):
    Z1 = X @ params["W1"] + params["b1"]
    A1 = np.maximum(Z1, 0)
    Z2 = A1 @ params["W2"] + params["b2"]
    A2 = softmax(Z2)
    return A2, {"Z1": Z1, "A1": A1, "A2": A2}


def compute_cost(A2, Y):
    return -np.mean(np.sum(Y * np.log(A2 + 1e-12), axis=1))


def backward_propagation(params, cache, X, Y):
    m = X.shape[0]
    dZ2 = (cache["A2"] - Y) / m
    dA1 = dZ2 @ params["W2"].T
    dZ1 = dA1 * (cache["Z1"] > 0)
    return {
        "W2": cache["A1"].T @ dZ2,
        "b2": dZ2.sum(axis=0, keepdims=True),
        "W1": X.T @ dZ1,
        "b1": dZ1.sum(axis=0, keepdims=True),
    }


def update_parameters(params, grads, learning_rate):
    for key in params:
        params[key] = params[key] - learning_rate * grads[key]
    return params


def predict(X, params):
    A2, _ = forward_propagation(X, params)
    return A2.argmax(axis=1)


def one_hot(y, k):
    out = np.zeros((len(y), k))
    out[np.arange(len(y)), y] = 1.0
    return out


digits = load_digits()
X = digits.data / 16.0
X = X - X.mean(axis=0)
perm = rng.permutation(len(X))
X, y = X[perm], digits.target[perm]
X_train, y_train, X_test, y_test = X[:1400], y[:1400], X[1400:], y[1400:]
Y_train, Y_test = one_hot(y_train, 10), one_hot(y_test, 10)

params = init_params(64, 48, 10)
learning_rate = 0.3
batch_size = 50
for epoch in range(1, 31):
    order = rng.permutation(len(X_train))
    costs = []
    for i in range(0, len(order), batch_size):
        idx = order[i : i + batch_size]
        A2, cache = forward_propagation(X_train[idx], params)
        costs.append(compute_cost(A2, Y_train[idx]))
        grads = backward_propagation(params, cache, X_train[idx], Y_train[idx])
        params = update_parameters(params, grads, learning_rate)
    if epoch % 5 == 0:
        test_cost = compute_cost(forward_propagation(X_test, params)[0], Y_test)
        acc = np.mean(predict(X_test, params) == y_test)
        print(f"epoch {epoch}: cost {np.mean(costs):.4f}  test cost {test_cost:.4f}  test accuracy {acc:.4f}")
