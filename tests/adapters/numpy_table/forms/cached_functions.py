# ruff: noqa
"""Functions with caches over a dict of weights; samples are columns, as in the well-known deep-learning course."""

import numpy as np
import sleuth
from sklearn.datasets import load_breast_cancer


def initialize_parameters(layer_dims, seed=3):
    np.random.seed(seed)
    parameters = {}
    for l in range(1, len(layer_dims)):
        parameters["W" + str(l)] = np.random.randn(layer_dims[l], layer_dims[l - 1]) * np.sqrt(2.0 / layer_dims[l - 1])
        parameters["b" + str(l)] = np.zeros((layer_dims[l], 1))
    return parameters


def sigmoid(Z):
    return 1 / (1 + np.exp(-Z))


def relu(Z):
    return np.maximum(0, Z)


def forward_propagation(X, parameters):
    W1, b1 = parameters["W1"], parameters["b1"]
    W2, b2 = parameters["W2"], parameters["b2"]
    W3, b3 = parameters["W3"], parameters["b3"]
    Z1 = np.dot(W1, X) + b1
    A1 = relu(Z1)
    Z2 = np.dot(W2, A1) + b2
    A2 = relu(Z2)
    Z3 = np.dot(W3, A2) + b3
    A3 = sigmoid(Z3)
    cache = (Z1, A1, W1, b1, Z2, A2, W2, b2, Z3, A3, W3, b3)
    return A3, cache


def compute_cost(A3, Y):
    m = Y.shape[1]
    logprobs = np.multiply(-np.log(A3 + 1e-12), Y) + np.multiply(-np.log(1 - A3 + 1e-12), 1 - Y)
    return 1.0 / m * np.sum(logprobs)


def backward_propagation(X, Y, cache):
    m = X.shape[1]
    (Z1, A1, W1, b1, Z2, A2, W2, b2, Z3, A3, W3, b3) = cache
    dZ3 = A3 - Y
    dW3 = 1.0 / m * np.dot(dZ3, A2.T)
    db3 = 1.0 / m * np.sum(dZ3, axis=1, keepdims=True)
    dA2 = np.dot(W3.T, dZ3)
    dZ2 = np.multiply(dA2, np.int64(A2 > 0))
    dW2 = 1.0 / m * np.dot(dZ2, A1.T)
    db2 = 1.0 / m * np.sum(dZ2, axis=1, keepdims=True)
    dA1 = np.dot(W2.T, dZ2)
    dZ1 = np.multiply(dA1, np.int64(A1 > 0))
    dW1 = 1.0 / m * np.dot(dZ1, X.T)
    db1 = 1.0 / m * np.sum(dZ1, axis=1, keepdims=True)
    gradients = {"dW3": dW3, "db3": db3, "dW2": dW2, "db2": db2, "dW1": dW1, "db1": db1}
    return gradients


def update_parameters(parameters, grads, learning_rate):
    L = len(parameters) // 2
    for l in range(1, L + 1):
        parameters["W" + str(l)] = parameters["W" + str(l)] - learning_rate * grads["dW" + str(l)]
        parameters["b" + str(l)] = parameters["b" + str(l)] - learning_rate * grads["db" + str(l)]
    return parameters


def load():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X.T, y.reshape(1, -1)


def model(parameters, X, Y, learning_rate=0.3, num_iterations=300):
    rng = np.random.default_rng(0)
    for i in range(num_iterations):
        columns = rng.choice(X.shape[1], 64, replace=False)
        A3, cache = forward_propagation(X[:, columns], parameters)
        cost = compute_cost(A3, Y[:, columns])
        grads = backward_propagation(X[:, columns], Y[:, columns], cache)
        parameters = update_parameters(parameters, grads, learning_rate)
    return parameters


def examined():
    X, Y = load()
    return {
        "model": initialize_parameters([30, 16, 16, 1]),
        "train": (X.T, Y.T),
        "forward": lambda params, x: columns_forward(params, x),
        "backward": columns_backward,
        "update": update_parameters,
        "loss": lambda output, target: compute_cost(output.T, target.T),
        "optimizer": 0.3,
    }


def columns_forward(params, x):
    A3, cache = forward_propagation(x.T, params)
    return A3.T, (x, cache)


def columns_backward(cache, y):
    x, cache = cache
    return backward_propagation(x.T, y.T, cache)


def watched(watch):
    X, Y = load()
    parameters = initialize_parameters([30, 16, 16, 1])
    net = sleuth.ByHand(parameters, forward=forward_propagation, backward=backward_propagation, update=update_parameters)
    with watch(net, 0.3) as w:
        model(parameters, X, Y)
    return w
