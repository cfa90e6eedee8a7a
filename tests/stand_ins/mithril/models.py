"""The models of Mithril that sleuth's cases are built of."""

from .logical import TBD, Edge, Model, PrimitiveModel

__all__ = [
    "AbsoluteError", "Add", "BaseKey", "BinaryCrossEntropy", "CrossEntropy", "CustomPrimitiveModel", "Divide", "Embedding",
    "Flatten", "Gelu", "LayerNorm", "Linear", "Log",
    "MatrixMultiply", "Mean", "Model", "Multiply", "Relu", "Reshape", "Sigmoid", "Sine", "Softmax", "Sqrt", "SquaredError",
    "StopGradient", "Subtract", "Tanh", "TrainModel", "Transpose", "Variance",
]  # fmt: skip


def _keys(given, **constants):
    edges = {key: Edge(key) if value is TBD else Edge(key, value) for key, value in given.items()}
    return {**edges, **{key: Edge(key, value) for key, value in constants.items()}}


class Relu(PrimitiveModel):
    def __init__(self, input=TBD, *, name=None):
        super().__init__("relu", _keys({"input": input}), name=name)


class Sigmoid(PrimitiveModel):
    def __init__(self, input=TBD, *, name=None):
        super().__init__("sigmoid", _keys({"input": input}), name=name)


class Tanh(PrimitiveModel):
    def __init__(self, input=TBD, *, name=None):
        super().__init__("tanh", _keys({"input": input}), name=name)


class Gelu(PrimitiveModel):
    def __init__(self, approximate=False, input=TBD, *, name=None):
        super().__init__("gelu", _keys({"input": input}, approximate=approximate), name=name)


class Softmax(PrimitiveModel):
    def __init__(self, input=TBD, axis=-1, *, name=None):
        super().__init__("softmax", _keys({"input": input}, axis=axis), name=name)


class Log(PrimitiveModel):
    def __init__(self, robust=False, input=TBD, *, threshold=TBD, name=None):
        super().__init__("log", _keys({"input": input}), name=name)


class Sine(PrimitiveModel):
    def __init__(self, input=TBD, *, name=None):
        super().__init__("sin", _keys({"input": input}), name=name)


class Sqrt(PrimitiveModel):
    def __init__(self, robust=False, input=TBD, *, threshold=TBD, name=None):
        super().__init__("sqrt", _keys({"input": input}), name=name)


class StopGradient(PrimitiveModel):
    def __init__(self, input=TBD, *, name=None):
        super().__init__("stop_gradient", _keys({"input": input}), name=name)


class Flatten(PrimitiveModel):
    def __init__(self, start_dim=0, end_dim=-1, input=TBD, *, name=None):
        super().__init__("flatten", _keys({"input": input}, start_dim=start_dim, end_dim=end_dim), name=name)


class Reshape(PrimitiveModel):
    def __init__(self, shape=TBD, input=TBD, *, name=None):
        super().__init__("reshape", _keys({"input": input, "shape": shape}), name=name)


class Mean(PrimitiveModel):
    def __init__(self, axis=None, keepdim=False, input=TBD, *, name=None):
        super().__init__("reduce_mean", _keys({"input": input}, axis=axis, keepdim=keepdim), name=name)


class Variance(PrimitiveModel):
    def __init__(self, axis=None, keepdim=False, correction=0, input=TBD, *, name=None):
        super().__init__("variance", _keys({"input": input}, axis=axis, keepdim=keepdim, correction=correction), name=name)


class Transpose(PrimitiveModel):
    def __init__(self, axes=None, input=TBD, *, name=None):
        super().__init__("transpose", _keys({"input": input}, axes=axes), name=name)


class MatrixMultiply(PrimitiveModel):
    def __init__(self, left=TBD, right=TBD, *, name=None):
        super().__init__("matrix_multiplication", _keys({"left": left, "right": right}), name=name)


class Add(PrimitiveModel):
    def __init__(self, left=TBD, right=TBD, *, name=None):
        super().__init__("add", _keys({"left": left, "right": right}), name=name)


class Subtract(PrimitiveModel):
    def __init__(self, left=TBD, right=TBD, *, name=None):
        super().__init__("subtract", _keys({"left": left, "right": right}), name=name)


class Multiply(PrimitiveModel):
    def __init__(self, left=TBD, right=TBD, *, name=None):
        super().__init__("multiplication", _keys({"left": left, "right": right}), name=name)


class Divide(PrimitiveModel):
    def __init__(self, numerator=TBD, denominator=TBD, *, name=None):
        super().__init__("divide", _keys({"numerator": numerator, "denominator": denominator}), name=name)


class Embedding(PrimitiveModel):
    def __init__(self, num_embeddings=None, dim=None, input=TBD, weight=TBD, *, name=None):
        keys = _keys({"input": input, "weight": weight})
        keys["weight"] = Edge("weight", differentiable=True, shape=[num_embeddings, dim])
        super().__init__("primitive_embedding", keys, name=name)


class BaseKey:
    def __init__(self, name=None, value=TBD, shape=None, type=None, differentiable=None, interval=None):
        pass


class CustomPrimitiveModel(PrimitiveModel):
    def __init__(self, formula_key, name=None, **kwargs):
        super().__init__(formula_key, {key: Edge(key) for key in kwargs if key != "output"}, name=name)


class SquaredError(PrimitiveModel):
    def __init__(self, input=TBD, target=TBD, *, name=None):
        super().__init__("squared_error", _keys({"input": input, "target": target}), name=name)


class AbsoluteError(PrimitiveModel):
    def __init__(self, input=TBD, target=TBD, *, name=None):
        super().__init__("absolute_error", _keys({"input": input, "target": target}), name=name)


SCORED = {"logits": "cross_entropy_with_logits", "log_probs": "cross_entropy_with_log_probs"}
BINARY = {"logits": "binary_cross_entropy_with_logits", "probs": "binary_cross_entropy"}


class CrossEntropy(PrimitiveModel):
    def __init__(
        self,
        input_type="logits",
        weights=False,
        input=TBD,
        target=TBD,
        robust=False,
        threshold=1e-10,
        categorical=True,
        *,
        name=None,
    ):
        given = _keys({"input": input, "target": target}, weights=weights, categorical=categorical)
        more = {} if input_type == "log_probs" else _keys({}, threshold=threshold, robust=robust)
        super().__init__(SCORED[input_type], {**given, **more}, name=name)


class BinaryCrossEntropy(PrimitiveModel):
    def __init__(self, input_type="logits", pos_weight=1.0, input=TBD, target=TBD, threshold=1e-10, robust=False, *, name=None):
        given = _keys({"input": input, "target": target}, pos_weight=pos_weight, threshold=threshold, robust=robust)
        super().__init__(BINARY[input_type], given, name=name)


class Linear(Model):
    def __init__(self, dimension=None, use_bias=True, input=TBD, weight=TBD, bias=TBD, *, name=None):
        super().__init__(name=name)
        self |= Transpose(name="Transpose").connect(input="weight", output="turned")
        self |= MatrixMultiply(name="MatrixMultiply").connect(
            left="input", right="turned", output="multiplied" if use_bias else "output"
        )
        if use_bias:
            self |= Add(name="Add").connect(left="multiplied", right="bias", output="output")
        self.learns(weight=[dimension, None], **({"bias": [dimension]} if use_bias else {}))


class LayerNorm(Model):
    def __init__(self, use_scale=True, use_bias=True, eps=1e-5, input=TBD, weight=TBD, bias=TBD, *, name=None):
        super().__init__(name=name)
        self |= Mean(axis=-1, keepdim=True).connect(input="input", output="mean")
        self |= Subtract().connect(left="input", right="mean", output="centred")
        self |= Variance(axis=-1, keepdim=True).connect(input="input", output="variance")
        self |= Add().connect(left="variance", right=eps, output="safe")
        self |= Sqrt().connect(input="safe", output="spread")
        self |= Divide().connect(numerator="centred", denominator="spread", output="even")
        self |= Multiply().connect(left="even", right="weight", output="scaled")
        self |= Add().connect(left="scaled", right="bias", output="output")
        self.learns(weight=[None], bias=[None])


class TrainModel(Model):
    def __init__(self, model):
        super().__init__()
        self._model = model
        self.finished = False
        exposed = list(model.exposed)
        names = [edge.root().name for edge in model.flat_edges() if edge.root().name]
        self._extend(model.connect(**{name: name for name in dict.fromkeys(names)}), False)
        self.exposed = exposed
        self.loss_keys = {}

    def add_loss(self, loss_model, reduce_steps=None, key_name=None, coef=None, **kwargs):
        self._extend(loss_model.connect(**kwargs), False)
        for step in reduce_steps or [Mean()]:
            self._extend(step, True)
        self.loss_keys[key_name or "loss"] = self.last

    def finalize(self):
        if not self.finished:
            self.finished = True
            self.final = self.last
