"""Physical models: the operators in one row, keys by short names, and their values and gradients by NumPy."""

from types import SimpleNamespace

import numpy as np

from . import ops
from .logical import NOT_GIVEN
from .shaping import infer


class FlatGraph:
    def __init__(self, rows, output_dict, constants, run_time):
        self._rows = rows  # output key → (operator, source keys)
        self.output_dict = output_dict
        self._constants = constants
        self._run_time = run_time

    @property
    def topological_order(self):
        return list(self._rows)

    @property
    def cached_data(self):
        return self._constants

    @property
    def runtime_static_keys(self):
        return set(self._run_time)

    @property
    def all_static_keys(self):
        return set(self._run_time) | set(self._constants)

    @property
    def unused_keys(self):
        return set()

    def get_op(self, key):
        if key not in self._rows:
            raise ValueError(f"Model with key {key} not found")
        return self._rows[key][0]

    def get_source_keys(self, key, include_outputs=False):
        return [*self._rows[key][1], f"{key}_cache"]


class PhysicalModel:
    def __init__(self, model, backend, *, constant_keys, data_keys, trainable_keys, shapes, inference):
        self.backend, self.inference = backend, inference
        self.state_keys, self.initial_state_dict = [], {}
        operators = model.operators()
        names = _names(model, operators)
        edges = {names[id(e.root())]: e.root() for op in operators for e in op.edges.values()}
        rows = {}
        for op in operators:
            sources = [names[id(op.edges[key].root())] for key in op.input_keys]
            rows[names[id(op.edges["output"].root())]] = (op, sources)
        constants = {key: e.value for key, e in edges.items() if e.value is not NOT_GIVEN} | constant_keys
        constants |= {f"{key}_cache": {} for key in rows}
        self._input_keys = {key for key in edges if (key not in rows and key not in constants) or key in constant_keys}
        free = self._input_keys - set(constant_keys)
        learnt = {k for k in free if (edges[k].differentiable or k in trainable_keys) and k not in data_keys}
        outputs = {key: key for key in model.exposed if key in rows} or {
            names[id(model.last.root())]: names[id(model.last.root())]
        }
        if hasattr(model, "final"):
            last = names[id(model.final.root())]
            outputs = {k: v for k, v in outputs.items() if v != last} if not model.exposed else outputs
            outputs = {"final_cost": last, **outputs}
        self.flat_graph = FlatGraph(rows, outputs, constants, free - learnt)
        declared = {key: edge.shape for key, edge in edges.items()}
        self._shapes = infer(rows, {**declared, **{k: list(v) for k, v in shapes.items()}}, shapes, declared)

    @property
    def shapes(self):
        return self.get_shapes()

    def get_shapes(self, model=None, uni_keys=None, var_keys=None, symbolic=False, verbose=False):
        return dict(self._shapes)

    @property
    def input_keys(self):
        return self._input_keys

    @property
    def output_keys(self):
        return sorted(self.flat_graph.output_dict)

    @property
    def cotangent_keys(self):
        if self.inference:
            return set()
        return {"final_cost"} if "final_cost" in self.output_keys else set(self.output_keys)

    def randomize_params(self, excluded_keys=None, shards=None):
        found = {}
        for key in sorted(self._input_keys - self.flat_graph.all_static_keys - (excluded_keys or set())):
            shape = self._shapes[key]
            if shape is None or None in shape:
                raise Exception(f"One or more dimensions of shape of '{key}' key is None!")
            found[key] = self.backend.randn(*shape)
        return found

    def summary(
        self,
        model=None,
        depth=0,
        shapes=True,
        types=False,
        symbolic=False,
        verbose=False,
        alternative_shapes=False,
        print_info=True,
        name=None,
    ):
        print(SimpleNamespace(inputs=sorted(self._input_keys), outputs=self.output_keys))

    def evaluate(self, params=None, data=None, *, output_gradients=False, state=None):
        if output_gradients is not False and self.inference:
            raise NotImplementedError("Inference mode does not support gradients calculation")
        graph = self.flat_graph
        values = {**{k: v for k, v in graph.cached_data.items() if not k.endswith("_cache")}, **(params or {}), **(data or {})}
        for key in graph.topological_order:
            op, sources = graph.get_op(key), graph.get_source_keys(key)[:-1]
            function = self.backend.op_function_dict.get(op.formula_key) or self.backend.registered_primitives[op.formula_key]
            cache = graph.cached_data[f"{key}_cache"]
            given = {name: values[source] for name, source in zip(op.input_keys, sources, strict=True)}
            values[key] = cache["output"] = self._adjusted(function(**given, cache=cache), given.values())
        outputs = {name: values[key] for name, key in graph.output_dict.items()}
        if output_gradients is False:
            return outputs
        return outputs, self._differentiated(values, self._cotangents(outputs, output_gradients), params or {})

    def _adjusted(self, made, given):
        """Numbers, and what is made of whole numbers and floats, are brought to the backend's precision."""
        kinds = {value.dtype.kind for value in given if isinstance(value, np.ndarray)}
        if np.ndim(made) == 0 or kinds >= {"i", "f"}:
            return np.asarray(made, self.backend.default_dtype.name)
        return made

    def _cotangents(self, outputs, given):
        if given is True and len(outputs) > 1 and "final_cost" not in outputs:
            raise ValueError("Requires output gradients if final loss is not attached!")
        found = {} if given is True else dict(given)
        if "final_cost" in outputs:
            found.setdefault("final_cost", np.array(1.0))
        elif given is True:
            found = {key: np.array(1.0) for key, value in outputs.items() if np.ndim(value) == 0}
        return {self.flat_graph.output_dict[key]: value for key, value in found.items()}

    def _differentiated(self, values, cotangents, params):
        graph = self.flat_graph
        found = {key: np.zeros_like(values[key]) for key in params}
        found |= {key: np.zeros_like(values[key]) for key in graph.topological_order}
        for key, value in cotangents.items():
            found[key] = found[key] + value
        for key in reversed(graph.topological_order):
            op, sources = graph.get_op(key), graph.get_source_keys(key)[:-1]
            given = dict(zip(op.input_keys, (values[s] for s in sources), strict=True))
            own = self.backend.registered_primitives_grad_fn.get(f"{op.formula_key}_grad")
            if own is None:
                grads = ops.gradients[op.formula_key](found[key], values[key], **given)
            else:
                cache = graph.cached_data[f"{key}_cache"]
                grads = {name: own(found[key], cache, i, *given.values()) for i, name in enumerate(given)}
            for name, source in zip(op.input_keys, sources, strict=True):
                if source in found and name in grads:
                    found[source] = (found[source] + grads[name]).astype(found[source].dtype)
        return {key: found[key] for key in params}


def _names(model, operators):
    """Given names stay; the rest are called after what the operator calls them, with a number where there are several."""
    edges = list({id(e.root()): e.root() for op in operators for e in op.edges.values()}.values())
    final = model.last.root() if not model.exposed and not hasattr(model, "final") else None
    taken = {e.name for e in edges if e.name} | ({"output"} if final is not None and final.name is None else set())
    names, seen = {}, {}
    for edge in edges:
        many = sum(e.origin == edge.origin and not e.name and e is not final for e in edges) > 1 or edge.origin in taken
        if edge.name or edge is final:
            names[id(edge)] = edge.name or "output"
            continue
        while True:
            number = seen[edge.origin] = seen.get(edge.origin, -1) + 1
            name = f"{edge.origin}_{number}" if many else edge.origin
            if name not in taken:
                break
        names[id(edge)] = name
    return names
