"""One mistake each in the networks of `forms`: what is written instead, and what a report must say of it."""

# ruff: noqa: E501 -- lines as people wrote them

import re
from dataclasses import dataclass
from pathlib import Path

FORMS = Path(__file__).parent / "forms"
NAMES = tuple(sorted(path.stem for path in FORMS.glob("*.py") if path.stem != "__init__"))

WRONG = ("gradient-wrong",)
NO_MEAN = r"mean over the batch"
SIGN = r"wrong sign"
ACTIVATION = r"derivative of (an |the )?{}"
AXIS = r"wrong axis|axis=|sum over|over the batch"
LEFT_OUT = r"no gradient|gets none|leaves|left out|zero|does not change|never change|is not updated|stay"


@dataclass(frozen=True)
class Fault:
    form: str
    name: str
    old: str
    new: str
    checks: tuple[str, ...]
    where: str = ""  # a pattern for the parameter, in what is said or in the line that is shown; empty: none is asked for
    words: str = ""  # a pattern in the summary or the cure
    line: str | None = None  # text of the line; None: that of `new`
    by: str = "examine"

    @property
    def id(self) -> str:
        return f"{self.form}-{self.name}" + ("-watched" if self.by == "watch" else "")

    def source(self) -> str:
        text = (FORMS / f"{self.form}.py").read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.id}: {text.count(self.old)} places have {self.old!r}")
        return text.replace(self.old, self.new)

    def wanted_line(self) -> str:
        return self.new.strip().splitlines()[0].strip() if self.line is None else self.line


def told(fault: Fault, finding: object) -> dict[str, bool]:
    """What of it a culprit says: its name, the parameter, the term, the line."""
    place = getattr(finding, "location", None)
    text = " ".join(str(getattr(finding, key) or "") for key in ("where", "summary", "fix"))
    shown = f"{text} {place.text if place is not None else ''}"
    return {
        "name": getattr(finding, "name", None) in fault.checks,
        "parameter": not fault.where or bool(re.search(fault.where, shown)),
        "term": not fault.words or bool(re.search(fault.words, text, re.I)),
        "line": fault.wanted_line() == "" or (place is not None and (place.text or "").strip() == fault.wanted_line()),
    }


def _course() -> list[Fault]:
    form = "course_class"
    return [
        Fault(form, "sign", "dW1 = np.dot(self.X.T, delta2)", "dW1 = -np.dot(self.X.T, delta2)", WRONG, r"\bW1\b", SIGN),
        Fault(form, "no-mean", "        delta3 /= m\n", "", WRONG, r"\bW2|b2", NO_MEAN, "delta3[range(m), y] -= 1"),
        Fault(form, "no-derivative", " * (1 - np.power(self.a1, 2))", "", WRONG, r"\bW1\b|b1",
              ACTIVATION.format("tanh"), "delta2 = np.dot(delta3, self.W2.T)"),
        Fault(form, "wrong-derivative", "(1 - np.power(self.a1, 2))", "(1 - np.power(self.z1, 2))", WRONG, r"\bW1\b|b1",
              "", "delta2 = np.dot(delta3, self.W2.T) * (1 - np.power(self.z1, 2))"),
        Fault(form, "transposed", "dW1 = np.dot(self.X.T, delta2)", "dW1 = np.dot(delta2.T, self.X)", ("backward-fails",),
              r"\bW1\b", "transpose"),
        Fault(form, "wrong-axis", "db2 = np.sum(delta3, axis=0, keepdims=True)", "db2 = np.sum(delta3, axis=1, keepdims=True)",
              ("backward-fails",), r"\bb2\b", AXIS),
        Fault(form, "forgot-layer", "return [dW1, db1, dW2, db2]", "return [np.zeros_like(dW1), np.zeros_like(db1), dW2, db2]",
              ("zero-gradients", "gradient-wrong", "weights-do-not-change", "disconnected-parameters"), r"\bW1\b", LEFT_OUT),
        Fault(form, "integer-rate", "optimizer\": 0.5", "optimizer\": 1 // 2", ("optimiser-setting-odd",), "", r"//", ""),
        Fault(form, "softmax-axis", "np.sum(exp, axis=1, keepdims=True)", "np.sum(exp, axis=0, keepdims=True)",
              ("softmax-wrong-axis",), "", r"ax[ei]s|batch", "self.probs = exp / np.sum(exp, axis=0, keepdims=True)"),
        Fault(form, "integer-rate", "epochs=6, batch_size=32, lr=0.5", "epochs=6, batch_size=32, lr=1 // 2",
              ("optimiser-setting-odd", "weights-do-not-change", "step-changes-nothing"), "", "", "", "watch"),
        Fault(form, "integer-weights", "self.W1 = rng.randn(n_in, n_hidden) * np.sqrt(1.0 / n_in)",
              "self.W1 = rng.randint(-1, 2, (n_in, n_hidden))", ("backward-fails",), r"\bW1\b", r"whole|float", ""),
    ]  # fmt: skip


def _layers() -> list[Fault]:
    form = "layer_list"
    return [
        Fault(form, "sign", "return dvalues @ self.weights.T", "return -dvalues @ self.weights.T", WRONG, r"2\.", SIGN),
        Fault(form, "no-mean", "        grad = grad / len(self.y_true)\n", "", WRONG, r"4\.", NO_MEAN, ""),
        Fault(form, "no-derivative", "        dinputs[self.inputs <= 0] = 0\n", "", WRONG, r"2\.",
              ACTIVATION.format("relu"), ""),
        Fault(form, "transposed", "return dvalues @ self.weights.T", "return dvalues @ self.weights", ("backward-fails",),
              "4", r"shape|\.T|transpose"),
        Fault(form, "wrong-axis", "self.dbias = np.sum(dvalues, axis=0)", "self.dbias = np.sum(dvalues, axis=1)",
              ("backward-fails",), r"bias", AXIS),
        Fault(form, "no-sum", "self.dbias = np.sum(dvalues, axis=0)", "self.dbias = dvalues.mean(axis=0)", WRONG, r"bias",
              "too small"),
        Fault(form, "forgot-layer", "self.dweights = self.inputs.T @ dvalues", "dweights = self.inputs.T @ dvalues",
              ("zero-gradients", "gradient-wrong", "weights-do-not-change", "disconnected-parameters"), r"weights", "",
              ),
        Fault(form, "accumulators", "self.dweights = self.inputs.T @ dvalues", "self.dweights += self.inputs.T @ dvalues", WRONG,
              "", "grow from step to step"),
        Fault(form, "accumulators", "self.dweights = self.inputs.T @ dvalues", "self.dweights += self.inputs.T @ dvalues",
              ("missing-zero-grad",), "", "", "", "watch"),
        Fault(form, "integer-rate", '"optimizer": SGD(layers, 0.2)', '"optimizer": SGD(layers, 2 // 10)',
              ("optimiser-setting-odd",), "", r"//", ""),
        Fault(form, "integer-rate", "optimizer = SGD(layers, 0.2)", "optimizer = SGD(layers, 2 // 10)",
              ("optimiser-setting-odd", "weights-do-not-change"), "", "", "", "watch"),
        Fault(form, "softmax-axis", "self.p = exps / exps.sum(axis=1, keepdims=True)",
              "self.p = exps / exps.sum(axis=0, keepdims=True)", ("softmax-wrong-axis", "gradient-wrong"), "", ""),
        Fault(form, "sign-of-step", "layer.weights -= self", "layer.weights += self",
              ("step-changes-nothing", "loss-diverges", "loss-not-decreasing", "gradient-wrong", "cannot-overfit-one-batch"),
              "", "sign|rise|grow|up|ascen", "", "watch"),
    ]  # fmt: skip


def _cached() -> list[Fault]:
    form = "cached_functions"
    return [
        Fault(form, "sign", "dZ3 = A3 - Y", "dZ3 = Y - A3", WRONG, "W3|b3|W1", SIGN),
        Fault(form, "no-mean", "dW3 = 1.0 / m * np.dot(dZ3, A2.T)", "dW3 = np.dot(dZ3, A2.T)", WRONG, r"\bW3\b", NO_MEAN),
        Fault(form, "no-derivative", "dZ2 = np.multiply(dA2, np.int64(A2 > 0))", "dZ2 = dA2", WRONG, r"\bW2|b2",
              ACTIVATION.format("relu")),
        Fault(form, "wrong-activation", "dZ2 = np.multiply(dA2, np.int64(A2 > 0))", "dZ2 = np.multiply(dA2, A2 * (1 - A2))",
              WRONG, r"\bW2|b2", ""),
        Fault(form, "transposed", "dW2 = 1.0 / m * np.dot(dZ2, A1.T)", "dW2 = 1.0 / m * np.dot(A1, dZ2.T)", WRONG, r"\bW2\b",
              "transpose"),
        Fault(form, "transposed-upstream", "dA1 = np.dot(W2.T, dZ2)", "dA1 = np.dot(W2, dZ2)", WRONG, r"\bW1|b1",
              "transpose", ),
        Fault(form, "wrong-axis", "db2 = 1.0 / m * np.sum(dZ2, axis=1, keepdims=True)",
              "db2 = 1.0 / m * np.sum(dZ2, axis=0, keepdims=True)", ("backward-fails",), r"\bb2\b", AXIS),
        Fault(form, "no-axis", "db2 = 1.0 / m * np.sum(dZ2, axis=1, keepdims=True)", "db2 = 1.0 / m * np.sum(dZ2)",
              ("backward-fails",), r"\bb2\b", AXIS),
        Fault(form, "forgot-layer", '"dW2": dW2, "db2": db2, ', '"dW2": np.zeros_like(W2), "db2": db2, ',
              ("zero-gradients", "gradient-wrong", "weights-do-not-change", "disconnected-parameters"), r"\bW2\b", "", ""),
        Fault(form, "forgot-update", "for l in range(1, L + 1):\n        parameters[\"W\"", "for l in range(1, L):\n        parameters[\"W\"",
              ("weights-do-not-change", "parameters-not-optimised", "step-changes-nothing", "frozen-parameters"), r"W3|b3", "", "",
              ),
        Fault(form, "forgot-update", "for l in range(1, L + 1):\n        parameters[\"W\"", "for l in range(1, L):\n        parameters[\"W\"",
              ("weights-do-not-change", "parameters-not-optimised", "step-changes-nothing", "frozen-parameters"), r"W3|b3", "", "", "watch"),
        Fault(form, "integer-rate", "learning_rate=0.3, num", "learning_rate=3 // 10, num",
              ("optimiser-setting-odd", "weights-do-not-change"), "", "", "", "watch"),
    ]  # fmt: skip


def _step() -> list[Fault]:
    form = "train_step"
    return [
        Fault(form, "sign", "gW1 = x.T @ d1", "gW1 = -x.T @ d1", WRONG, r"\bW1\b", SIGN),
        Fault(form, "no-mean", "d3 = (p - np.eye(p.shape[1])[y]) / n", "d3 = p - np.eye(p.shape[1])[y]", WRONG, "W3|b3|W1",
              NO_MEAN),
        Fault(form, "no-derivative", "d2 = (d3 @ params[\"W3\"].T) * (1 - h2 * h2)", "d2 = d3 @ params[\"W3\"].T", WRONG,
              r"\bW2|b2", ACTIVATION.format("tanh")),
        Fault(form, "transposed", "gW2 = h1.T @ d2", "gW2 = d2.T @ h1", WRONG, r"\bW2\b", "transpose"),
        Fault(form, "transposed-upstream", "d1 = (d2 @ params[\"W2\"].T)", "d1 = (d2 @ params[\"W2\"])", WRONG, r"\bW1|b1",
              "transpose", 'd1 = (d2 @ params["W2"]) * (1 - h1 * h1)'),
        Fault(form, "no-axis", "gb2 = d2.sum(0)", "gb2 = d2.sum()", WRONG, r"\bb2\b", AXIS),
        Fault(form, "forgot-layer", '    params["W2"] -= lr * gW2\n', "",
              ("weights-do-not-change", "zero-gradients", "gradient-wrong", "step-changes-nothing", "frozen-parameters"),
              r"\bW2\b", "", ""),
        Fault(form, "forgot-layer", '    params["W2"] -= lr * gW2\n', "",
              ("weights-do-not-change", "zero-gradients", "parameters-not-optimised", "frozen-parameters"), r"\bW2\b", "", "",
              "watch"),
        Fault(form, "integer-rate", "lr=0.3", "lr=3 // 10", ("optimiser-setting-odd", "weights-do-not-change"), "", "//", ""),
        Fault(form, "integer-rate", "lr=0.3", "lr=3 // 10", ("optimiser-setting-odd", "weights-do-not-change"), "", "", "",
              "watch"),
        Fault(form, "softmax-axis", "return e / e.sum(axis=1, keepdims=True)", "return e / e.sum(axis=0, keepdims=True)",
              ("softmax-wrong-axis",), "", "ax[ei]s|batch"),
        Fault(form, "integer-weights", "W2=rng.normal(0, 1 / np.sqrt(h), size=(h, h))", "W2=rng.integers(-1, 2, size=(h, h))",
              ("backward-fails", "forward-fails"), r"\bW2\b", "whole|float", ""),
    ]  # fmt: skip


def _moving() -> list[Fault]:
    form = "moving_class"
    return [
        Fault(form, "sign", "error = (self.output - y) / m", "error = (y - self.output) / m", WRONG, "weights|bias", SIGN),
        Fault(form, "no-mean", "error = (self.output - y) / m", "error = self.output - y", WRONG, "weights|bias", NO_MEAN),
        Fault(form, "no-derivative", "hidden_delta = hidden_error * self.hidden * (1 - self.hidden)",
              "hidden_delta = hidden_error", WRONG, "weights1|bias1", ACTIVATION.format("sigmoid")),
        Fault(form, "transposed", "self.weights1 -= learning_rate * np.dot(x.T, hidden_delta)",
              "self.weights1 -= learning_rate * np.dot(hidden_delta.T, x)", ("backward-fails",), "weights1", r"shape|transpose"),
        Fault(form, "wrong-axis", "self.bias1 -= learning_rate * np.sum(hidden_delta, axis=0)",
              "self.bias1 -= learning_rate * np.sum(hidden_delta, axis=1)", ("backward-fails", "gradient-wrong"), "bias1", ""),
        Fault(form, "no-axis", "self.bias1 -= learning_rate * np.sum(hidden_delta, axis=0)",
              "self.bias1 -= learning_rate * np.sum(hidden_delta)", WRONG, "bias1", AXIS),
        Fault(form, "forgot-layer", "        self.weights1 -= learning_rate * np.dot(x.T, hidden_delta)\n", "",
              ("weights-do-not-change", "zero-gradients", "gradient-wrong", "disconnected-parameters"), "weights1", "", ""),
        Fault(form, "stale-weights", "        hidden_error = np.dot(error, self.weights2.T)\n", "        self.weights2 -= "
              "learning_rate * np.dot(self.hidden.T, error)\n        hidden_error = np.dot(error, self.weights2.T)\n",
              WRONG, "weights1|bias1", "", ""),
        Fault(form, "integer-rate", "learning_rate=1.0)\n", "learning_rate=9 // 10)\n",
              ("optimiser-setting-odd", "weights-do-not-change", "step-changes-nothing"), "", "", "", "watch"),
        Fault(form, "softmax-axis", "return e / e.sum(axis=1, keepdims=True)", "return e / e.sum(axis=0, keepdims=True)",
              ("softmax-wrong-axis",), "", "ax[ei]s|batch"),
        Fault(form, "sign", "error = (self.output - y) / m", "error = (y - self.output) / m",
              ("loss-diverges", "loss-not-decreasing", "gradient-wrong", "loss-not-finite"), "", "", "", "watch"),
    ]  # fmt: skip


def _grads() -> list[Fault]:
    form = "grads_dict"
    return [
        Fault(form, "sign", 'self.grads["W2"] = self.h1.T @ dh2', 'self.grads["W2"] = -self.h1.T @ dh2', WRONG, r"\bW2\b", SIGN),
        Fault(form, "no-mean", "2 * diff / diff.size", "2 * diff", WRONG, "", NO_MEAN + "|gradient of the loss",
              "return (diff**2).mean(), 2 * diff"),
        Fault(form, "half", "2 * diff / diff.size", "diff / diff.size", WRONG, "", "0.5 times|half|factor of 2",
              "return (diff**2).mean(), diff / diff.size"),
        Fault(form, "no-derivative", 'dh1 = (dh2 @ p["W2"].T) * (self.h1 > 0)', 'dh1 = dh2 @ p["W2"].T', WRONG, r"\bW1|b1",
              ACTIVATION.format("relu")),
        Fault(form, "transposed", 'self.grads["W2"] = self.h1.T @ dh2', 'self.grads["W2"] = dh2.T @ self.h1', WRONG, r"\bW2\b",
              "transpose"),
        Fault(form, "transposed-upstream", 'dh1 = (dh2 @ p["W2"].T)', 'dh1 = (dh2 @ p["W2"])', WRONG, r"\bW1|b1", "transpose",
              'dh1 = (dh2 @ p["W2"]) * (self.h1 > 0)'),
        Fault(form, "wrong-axis", 'self.grads["b2"] = dh2.sum(axis=0)', 'self.grads["b2"] = dh2.sum(axis=1)', ("backward-fails",),
              r"\bb2\b", AXIS),
        Fault(form, "forgot-layer", '        self.grads["W1"] = self.x.T @ dh1\n', "",
              ("zero-gradients", "gradient-wrong", "weights-do-not-change", "disconnected-parameters"), r"\bW1\b", "", ""),
        Fault(form, "forgot-layer", '        self.grads["W1"] = self.x.T @ dh1\n', "",
              ("zero-gradients", "weights-do-not-change"), r"\bW1\b", "", "", "watch"),
        Fault(form, "accumulators", 'self.grads["W1"] = self.x.T @ dh1', 'self.grads["W1"] += self.x.T @ dh1', WRONG, "", "grow"),
        Fault(form, "accumulators", 'self.grads["W1"] = self.x.T @ dh1', 'self.grads["W1"] += self.x.T @ dh1',
              ("missing-zero-grad",), "", "", "", "watch"),
        Fault(form, "integer-rate", "lr=0.02", "lr=2 // 100", ("optimiser-setting-odd",), "", "//", ""),
    ]  # fmt: skip


def _lists() -> list[Fault]:
    form = "weight_lists"
    return [
        Fault(form, "sign", "delta = (self.activations[-1] - y) / n", "delta = (y - self.activations[-1]) / n", WRONG, "weights|bias",
              SIGN),
        Fault(form, "no-mean", "delta = (self.activations[-1] - y) / n", "delta = self.activations[-1] - y", WRONG,
              "weights|bias", NO_MEAN),
        Fault(form, "no-derivative", "delta = (delta @ self.weights[-l + 1].T) * sigmoid_prime(self.zs[-l])",
              "delta = delta @ self.weights[-l + 1].T", WRONG, r"weights\.[01]|biases\.[01]", ACTIVATION.format("sigmoid|every")),
        Fault(form, "wrong-derivative", "sigmoid_prime(self.zs[-l])", "sigmoid_prime(self.activations[-l])", WRONG,
              r"weights\.[01]|biases\.[01]", "",
              "delta = (delta @ self.weights[-l + 1].T) * sigmoid_prime(self.activations[-l])"),
        Fault(form, "no-axis", "nabla_b[-l] = delta.sum(axis=0)", "nabla_b[-l] = delta.sum()", ("backward-fails",), "biases", AXIS),
        Fault(form, "wrong-layer", "self.activations[-l - 1].T @ delta", "self.activations[-l].T @ delta",
              ("backward-fails", "gradient-wrong"), r"weights", "", "nabla_w[-l] = self.activations[-l].T @ delta"),
        Fault(form, "forgot-layer", "for l in range(2, self.num_layers):", "for l in range(2, self.num_layers - 1):",
              ("zero-gradients", "gradient-wrong", "weights-do-not-change", "disconnected-parameters"), r"weights\.0|biases\.0",
              "", ""),
        Fault(form, "forgot-layer", "for l in range(2, self.num_layers):", "for l in range(2, self.num_layers - 1):",
              ("zero-gradients", "weights-do-not-change"), r"weights\.0|biases\.0", "", "", "watch"),
        Fault(form, "integer-rate", "SGD(net, X, Y, 6, 32, 1.0)", "SGD(net, X, Y, 6, 32, 9 // 10)",
              ("optimiser-setting-odd", "weights-do-not-change", "step-changes-nothing"), "", "", "", "watch"),
    ]  # fmt: skip


def _conv() -> list[Fault]:
    form = "conv_by_hand"
    return [
        Fault(form, "sign", "self.filters -= learn_rate * d_filters", "self.filters += learn_rate * d_filters", WRONG, "filters",
              SIGN),
        Fault(form, "no-mean", "return loss, p / len(label)", "return loss, p", WRONG, "", NO_MEAN,
              "p[np.arange(len(label)), label] -= 1"),
        Fault(form, "no-derivative", "return d_out * self.mask", "return d_out", WRONG, "filters", ACTIVATION.format("relu")),
        Fault(form, "last-place", "d_filters += np.tensordot", "d_filters = np.tensordot", WRONG, "filters", "",
              "d_filters = np.tensordot(d_out[:, i, j], region, axes=([0], [0]))"),
        Fault(form, "wrong-axis", "d_biases = d_out.sum(axis=0)", "d_biases = d_out.sum(axis=1)", ("backward-fails",), "bias",
              ""),
        Fault(form, "no-axis", "d_biases = d_out.sum(axis=0)", "d_biases = d_out.sum()", WRONG, "bias", AXIS),
        Fault(form, "forgot-layer", "        self.conv.backprop(gradient, learn_rate)\n", "",
              ("zero-gradients", "gradient-wrong", "weights-do-not-change", "disconnected-parameters"), "filters", "", ""),
        Fault(form, "forgot-layer", "        self.conv.backprop(gradient, learn_rate)\n", "",
              ("zero-gradients", "weights-do-not-change"), "filters", "", "", "watch"),
        Fault(form, "integer-rate", "batch=32, lr=0.1", "batch=32, lr=1 // 10",
              ("optimiser-setting-odd", "weights-do-not-change"), "", "", "", "watch"),
        Fault(form, "softmax-axis", "return exp / np.sum(exp, axis=1, keepdims=True)",
              "return exp / np.sum(exp, axis=0, keepdims=True)", ("softmax-wrong-axis", "gradient-wrong"), "", ""),
    ]  # fmt: skip


def _module() -> list[Fault]:
    form = "accumulating_module"
    return [
        Fault(form, "sign", "self.w.grad += self.x.T @ d", "self.w.grad -= self.x.T @ d", WRONG, r"\bw\b", SIGN),
        Fault(form, "no-mean", "return d / len(d)", "return d", WRONG, "", NO_MEAN, "d[range(len(d)), self.labels] -= 1.0"),
        Fault(form, "no-derivative", "return d * (1 - self.y**2)", "return d", WRONG, r"modules\.2", ACTIVATION.format("tanh")),
        Fault(form, "transposed", "self.w.grad += self.x.T @ d\n", "self.w.grad += (self.x.T @ d).T\n", ("backward-fails",),
              r"", "transpose|shape"),
        Fault(form, "no-axis", "self.b.grad += d.sum(axis=0)", "self.b.grad += d.sum()", WRONG, r"\bb\b", AXIS),
        Fault(form, "accumulators", "            model.zero_grad()\n", "", ("missing-zero-grad",), "", "", "", "watch"),
        Fault(form, "wrong-place", "            model.zero_grad()\n            scores = model.forward(X[rows])\n            loss = "
              "criterion(scores, y[rows])\n            model.backward(criterion.backward())\n",
              "            scores = model.forward(X[rows])\n            loss = criterion(scores, y[rows])\n            "
              "model.backward(criterion.backward())\n            model.zero_grad()\n", ("gradients-erased",), "", "",
              "", "watch"),
        Fault(form, "integer-rate", "optimizer = Optimizer(model.parameters(), 0.3)",
              "optimizer = Optimizer(model.parameters(), 3 // 10)", ("optimiser-setting-odd", "weights-do-not-change"), "", "", "",
              "watch"),
        Fault(form, "softmax-axis", "np.log(np.exp(z).sum(axis=-1, keepdims=True))", "np.log(np.exp(z).sum(axis=0, keepdims=True))",
              ("softmax-wrong-axis", "gradient-wrong"), "", ""),
        Fault(form, "reset-lost", "p.grad = np.zeros_like(p.data)", "grad = np.zeros_like(p.data)", ("missing-zero-grad",), "", "",
              "", "watch"),
    ]  # fmt: skip


FAULTS = [*_course(), *_layers(), *_cached(), *_step(), *_moving(), *_grads(), *_lists(), *_conv(), *_module()]
