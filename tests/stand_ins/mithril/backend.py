"""The NumPy backend: random numbers from a generator of its own that seeds NumPy's, as the real one draws them."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from . import ops

float32 = SimpleNamespace(name="float32")
float64 = SimpleNamespace(name="float64")


class NumpyBackend:
    backend_type = "numpy"
    registered_primitives: ClassVar = {}
    registered_primitives_grad_fn: ClassVar = {}

    def __init__(self, device="cpu", dtype=float32):
        self.device = device
        self.default_dtype = dtype
        self.precision = 64 if dtype is float64 else 32
        self.op_function_dict = ops.primitive_func_dict
        self.array_creation_funcs = []
        self.seed = 10
        self._seed_generator = np.random.default_rng(self.seed)

    @property
    def is_manualgrad(self):
        return True

    @staticmethod
    def register_primitive(fn, fn_grad):
        NumpyBackend.registered_primitives[fn.__name__] = fn
        NumpyBackend.registered_primitives_grad_fn[fn.__name__ + "_grad"] = fn_grad

    def set_seed(self, seed):
        self.seed = seed
        self._seed_generator = np.random.default_rng(seed)

    def array(self, data, *, dtype=None):
        kind = (dtype or self.default_dtype).name
        return np.array(data, dtype=kind if np.asarray(data).dtype.kind == "f" else None)

    def ones(self, *shape, dtype=None):
        return np.ones(shape, (dtype or self.default_dtype).name)

    def zeros(self, *shape, dtype=None):
        return np.zeros(shape, (dtype or self.default_dtype).name)

    def zeros_like(self, input, *, dtype=None):
        return np.zeros_like(input)

    def randn(self, *shape, dtype=None, key=None):
        np.random.seed(self._seed_generator.integers(0, 2**14) if key is None else key)
        return np.array(np.random.randn(*shape), dtype=(dtype or self.default_dtype).name)
