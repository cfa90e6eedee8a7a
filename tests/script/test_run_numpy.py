"""`sleuth run` on scripts that train by hand in NumPy: heard as they stand, in whatever form they are written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.script.ways import plain, report_of, watched

DATA = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(96, 6))
Y = np.eye(3)[(X @ rng.normal(size=(6, 3))).argmax(1)]
def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""
GLOBALS = (
    DATA
    + """
W1, b1 = rng.normal(size=(6, 8)) * 0.4, np.zeros(8)
W2, b2 = rng.normal(size=(8, 3)) * 0.4, np.zeros(3)
lr = 0.5
for i in range(120):
    h = np.tanh(X @ W1 + b1)
    p = softmax(h @ W2 + b2)
    loss = -np.log(p[Y == 1]).mean()
    d = (p - Y) / len(X)
    dW2, db2 = h.T @ d, d.sum(0)
    dh = (d @ W2.T) * (1 - h * h)
    dW1, db1 = X.T @ dh, dh.sum(0)
    W1 -= lr * dW1; b1 -= lr * db1
    W2 -= lr * dW2; b2 -= lr * db2
print(repr(float(loss)), W1.sum())
"""
)
DICT = (
    DATA
    + """
def initialise():
    return {"W1": rng.normal(size=(6, 8)) * 0.4, "b1": np.zeros(8), "W2": rng.normal(size=(8, 3)) * 0.4, "b2": np.zeros(3)}
def forward(x, params):
    h = np.tanh(x @ params["W1"] + params["b1"])
    return softmax(h @ params["W2"] + params["b2"]), (x, h)
def compute_cost(p, y):
    cost = -np.sum(y * np.log(p)) / len(y)
    return cost
def backward(p, y, params, cache):
    x, h = cache
    d = (p - y) / len(y)
    dh = (d @ params["W2"].T) * (1 - h * h)
    return {"dW1": x.T @ dh, "db1": dh.sum(0), "dW2": h.T @ d, "db2": d.sum(0)}
def update_parameters(params, grads, learning_rate):
    for name in ("W1", "b1", "W2", "b2"):
        params[name] = params[name] - learning_rate * grads["d" + name]
    return params
def model(x, y, rounds):
    params = initialise()
    for i in range(rounds):
        p, cache = forward(x, params)
        cost = compute_cost(p, y)
        params = update_parameters(params, backward(p, y, params, cache), 0.5)
    return params, cost
params, cost = model(X, Y, 120)
print(repr(float(cost)), params["W1"].sum())
"""
)
LISTS = (
    DATA
    + """
class Network:
    def __init__(self, sizes):
        self.weights = [rng.normal(size=(a, b)) * 0.4 for a, b in zip(sizes[:-1], sizes[1:])]
        self.biases = [np.zeros(b) for b in sizes[1:]]
    def fit(self, x, y, epochs, eta):
        for _ in range(epochs):
            for i in range(0, len(x), 32):
                self.update_mini_batch(x[i:i + 32], y[i:i + 32], eta)
    def update_mini_batch(self, x, y, eta):
        nabla_w, nabla_b = self.backprop(x, y)
        self.weights = [w - eta * nw for w, nw in zip(self.weights, nabla_w)]
        self.biases = [b - eta * nb for b, nb in zip(self.biases, nabla_b)]
    def backprop(self, x, y):
        h = np.tanh(x @ self.weights[0] + self.biases[0])
        p = softmax(h @ self.weights[1] + self.biases[1])
        self.loss = float(-np.sum(y * np.log(p)) / len(y))
        d = (p - y) / len(x)
        dh = (d @ self.weights[1].T) * (1 - h * h)
        return [x.T @ dh, h.T @ d], [dh.sum(0), d.sum(0)]
net = Network([6, 8, 3])
net.fit(X, Y, 40, 0.5)
print(repr(net.loss), net.weights[0].sum())
"""
)
LAYERS = (
    DATA
    + """
class Momentum:
    def __init__(self, learning_rate=0.05, momentum=0.9):
        self.learning_rate, self.momentum, self.v = learning_rate, momentum, None
    def update(self, w, grad):
        if self.v is None:
            self.v = np.zeros_like(w)
        self.v = self.momentum * self.v + grad
        return w - self.learning_rate * self.v
class Dense:
    def __init__(self, a, b):
        self.W, self.w0 = rng.normal(size=(a, b)) * 0.4, np.zeros((1, b))
        self.W_opt, self.w0_opt = Momentum(), Momentum()
    def forward_pass(self, x, training=True):
        self.x = x
        return x @ self.W + self.w0
    def backward_pass(self, grad):
        W = self.W
        self.W = self.W_opt.update(self.W, self.x.T @ grad)
        self.w0 = self.w0_opt.update(self.w0, grad.sum(axis=0, keepdims=True))
        return grad @ W.T
class Tanh:
    def forward_pass(self, x, training=True):
        self.y = np.tanh(x)
        return self.y
    def backward_pass(self, grad):
        return grad * (1 - self.y ** 2)
layers = [Dense(6, 8), Tanh(), Dense(8, 8), Tanh(), Dense(8, 3)]
for i in range(120):
    out = X
    for layer in layers:
        out = layer.forward_pass(out, training=True)
    p = softmax(out)
    loss = -np.log(p[Y == 1]).mean()
    grad = (p - Y) / len(X)
    for layer in reversed(layers):
        grad = layer.backward_pass(grad)
print(repr(float(loss)), layers[0].W.sum())
"""
)
FORMS = {"globals": GLOBALS, "dict": DICT, "lists": LISTS, "layers": LAYERS}


def told(text: str, folder: Path, budget: str = "10") -> dict[str, Any]:
    """The report; the script's output and files are those of plain Python."""
    (folder / "train.py").write_text(text)
    told = watched("--json", "report.json", "--budget", budget, "train.py", folder=folder, runs=folder / "runs")
    report_of(told, plain("train.py", folder=folder))
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_network_by_hand_is_heard_in_any_form_and_stays_as_it_is(text: str, tmp_path: Path) -> None:
    report = told(text, tmp_path)
    assert report["framework"] == "numpy"
    assert report["steps"] == 120
    assert report["status"] == "healthy"
    assert {"loss-diverges", "weights-do-not-change", "zero-gradients", "gradient-wrong"} <= set(report["clear"])


# What is written instead, and the line that is told for it.
FAULTS = {
    "sign": (DICT, "d = (p - y) / len(y)", "d = (y - p) / len(y)", ""),
    "factor": (DICT, '"dW2": h.T @ d', '"dW2": 96 * (h.T @ d)', '"dW2": 96 * (h.T @ d)'),
    "derivative": (GLOBALS, "* (1 - h * h)", "* (1 - h)", "dh = (d @ W2.T) * (1 - h)"),
    "update": (LISTS, "w - eta * nw", "w + eta * nw", ""),
}


@pytest.mark.parametrize(("text", "right", "wrong", "line"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_gradient_is_the_culprit(text: str, right: str, wrong: str, line: str, tmp_path: Path) -> None:
    assert right in text
    report = told(text.replace(right, wrong), tmp_path)
    assert report["culprits"][0]["name"] == "gradient-wrong"
    if line:
        assert line in report["culprits"][0]["location"]["text"]


def test_a_loss_that_is_told_as_a_multiple_of_the_one_descended_is_no_wrong_gradient(tmp_path: Path) -> None:
    report = told(GLOBALS.replace(".mean()", ".sum()"), tmp_path)
    assert report["status"] == "healthy"
    assert "gradient-wrong" in report["clear"]


def test_a_rate_that_is_far_too_high_is_named(tmp_path: Path) -> None:
    report = told(DICT.replace("cache), 0.5)", "cache), 500.0)"), tmp_path)
    assert {f["name"] for f in report["culprits"]} & {"learning-rate-too-high", "update-too-large"}


NO_TRAINING = (
    DATA
    + """
centres = X[:3].copy()
for _ in range(30):
    near = ((X[:, None] - centres[None]) ** 2).sum(-1).argmin(1)
    for k in range(3):
        if (near == k).any():
            centres[k] = X[near == k].mean(0)
total, field, position, speed = np.zeros(6), np.zeros((20, 20)), np.zeros((9, 3)), rng.normal(size=(9, 3))
field[0] = 1.0
for row in X:
    total += row
for _ in range(100):
    field[1:-1, 1:-1] = field[1:-1, 1:-1] + 0.1 * (field[2:, 1:-1] + field[:-2, 1:-1] - 2 * field[1:-1, 1:-1])
    speed += -0.01 * position
    position += 0.01 * speed
print(centres.sum(), total.sum(), field.sum(), position.sum())
"""
)


def test_a_script_that_trains_nothing_is_left_alone(tmp_path: Path) -> None:
    report = told(NO_TRAINING, tmp_path)
    assert (report["status"], report["steps"], report["findings"]) == ("unknown", 0, [])
    assert "no weights were heard" in report["notes"][0]


def test_a_step_that_is_done_again_writes_no_file_and_prints_nothing(tmp_path: Path) -> None:
    """`told` compares the output and the files with those of plain Python."""
    writes = "    open('log.txt', 'a').write(f'{i} ')\n    print(i)\n    loss ="
    report = told(GLOBALS.replace("    loss =", writes), tmp_path)
    assert report["steps"] == 120
    assert "gradient-wrong" not in report["clear"]
