import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def initialize_parameters(layer_dims, seed=1):
    rng = np.random.default_rng(seed)
    parameters = {}
    for l in range(1, len(layer_dims)):
        scale = np.sqrt(2.0 / layer_dims[l - 1])
        parameters["W" + str(l)] = rng.standard_normal((layer_dims[l], layer_dims[l - 1])) * scale
        parameters["b" + str(l)] = np.zeros((layer_dims[l], 1))
    return parameters


def linear_forward(A, W, b):
    return W @ A + b, (A, W)


def model_forward(X, parameters):
    """Samples are columns."""
    caches, A = [], X
    L = len(parameters) // 2
    for l in range(1, L):
        Z, cache = linear_forward(A, parameters["W" + str(l)], parameters["b" + str(l)])
        A = np.maximum(0, Z)
        caches.append((cache, Z))
    ZL, cache = linear_forward(A, parameters["W" + str(L)], parameters["b" + str(L)])
    caches.append((cache, ZL))
    ZL = ZL - ZL.max(axis=0, keepdims=True)
    expZ = np.exp(ZL)
    return expZ / expZ.sum(axis=0, keepdims=True), caches


def compute_cost(AL, Y):
    return float(-np.sum(Y * np.log(AL + 1e-12)) / Y.shape[1])


def linear_backward(dZ, cache):
    A_prev, W = cache
    m = A_prev.shape[1]
    return W.T @ dZ, dZ @ A_prev.T / m, dZ.sum(axis=1, keepdims=True) / m


def model_backward(AL, Y, caches):
    grads = {}
    L = len(caches)
    dZ = AL - Y
    for l in range(L, 0, -1):
        linear_cache, _ = caches[l - 1]
        dA, grads["dW" + str(l)], grads["db" + str(l)] = linear_backward(dZ, linear_cache)
        if l > 1:
            dZ = dA * (caches[l - 2][1] > 0)
    return grads


def update_parameters(parameters, grads, learning_rate):
    for l in range(1, len(parameters) // 2 + 1):
        parameters["W" + str(l)] -= learning_rate * grads["dW" + str(l)]
        parameters["b" + str(l)] -= learning_rate * grads["db" + str(l)]


def accuracy(X, y, parameters):
    AL, _ = model_forward(X, parameters)
    return (AL.argmax(axis=0) == y).mean()


def main():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 8.0 - 1.0, y, test_size=0.2, random_state=5, stratify=y)
    X_train, X_test = X_train.T, X_test.T
    Y_train, Y_test = np.eye(10)[y_train].T, np.eye(10)[y_test].T
    parameters = initialize_parameters([64, 48, 24, 10])
    rng = np.random.default_rng(5)
    for epoch in range(1, 31):
        order = rng.permutation(X_train.shape[1])
        costs = []
        for batch in np.array_split(order, len(order) // 40):
            AL, caches = model_forward(X_train[:, batch], parameters)
            costs.append(compute_cost(AL, Y_train[:, batch]))
            grads = model_backward(AL, Y_train[:, batch], caches)
            update_parameters(parameters, grads, learning_rate=0.08)
        if epoch % 5 == 0:
            test_cost = compute_cost(model_forward(X_test, parameters)[0], Y_test)
            print(
                f"epoch {epoch}: cost {np.mean(costs):.4f}  test cost {test_cost:.4f}"
                f"  test accuracy {accuracy(X_test, y_test, parameters):.3f}"
            )


if __name__ == "__main__":
    main()
