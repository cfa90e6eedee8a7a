"""Logical models: operators joined by edges. An edge that is connected to another becomes the same edge."""

from types import SimpleNamespace


class NOT_GIVEN:  # noqa: N801
    """A class, and not an object: it is the same one in a copy."""


class TBD:
    """To be determined."""


class Tensor:
    """Only a type to name."""


class Edge:
    """What flows between operators. `origin` is the name that the operator has for it."""

    def __init__(self, origin, value=NOT_GIVEN, differentiable=None, shape=None):
        self.origin, self.value, self.differentiable, self.shape = origin, value, differentiable, shape
        self.name = None
        self.bare = False  # named before an operator was connected to it
        self._same = None

    def root(self):
        return self if self._same is None else self._same.root()

    def merge(self, other):
        one, other = self.root(), other.root()
        if one is other:
            return
        one.name = one.name or other.name
        one.origin = other.origin if one.bare else one.origin
        one.bare = one.bare and other.bare
        one.value = other.value if one.value is NOT_GIVEN else one.value
        one.differentiable = one.differentiable or other.differentiable
        one.shape = one.shape or other.shape
        other._same = one


class ExtendInfo:
    def __init__(self, model, connections):
        self.model, self.connections = model, connections


class BaseModel:
    def __init__(self, *, name=None):
        self.name = name
        self.parent = None
        self.edges = {}  # key → edge: what can be connected
        self.dag = {}  # submodel → its keys and edges
        self.exposed = []
        self.first, self.last = "input", None

    @property
    def conns(self):
        keys = {edge.root().name: edge for edge in self.flat_edges() if edge.root().name}
        return SimpleNamespace(all=keys, input_keys=self.input_keys, output_keys=self.exposed)

    def flat_edges(self):
        return [edge for child in self.dag for edge in child.flat_edges()]

    def operators(self):
        return [operator for child in self.dag for operator in child.operators()]

    def made(self):
        return {id(operator.edges["output"].root()) for operator in self.operators()}

    @property
    def input_keys(self):
        made, known = self.made(), {id(edge.root()): key for key, edge in self.edges.items()}
        free = {}
        for number, edge in enumerate(e.root() for op in self.operators() for k, e in op.edges.items() if k != "output"):
            if id(edge) not in made and edge.value is NOT_GIVEN:
                free.setdefault(id(edge), known.get(id(edge)) or edge.name or f"${number}")
        return {key: None for key in free.values()}.keys()

    @property
    def output_keys(self):
        return sorted(self.exposed)

    @property
    def cin(self):
        return SimpleNamespace(key=self.first)

    @property
    def cout(self):
        return self.last

    def set_cin(self, *connections, safe=True):
        (self.first,) = connections

    def set_cout(self, *connections, safe=True):
        self.last = self.edge_named(*connections)

    def connect(self, **kwargs):
        return ExtendInfo(self, {key: value for key, value in kwargs.items() if value is not NOT_GIVEN})

    def edge_named(self, name):
        for edge in self.flat_edges():
            if edge.root().name == name:
                self.edges.setdefault(name, edge.root())
                return edge.root()
        made = self.edges.get(name) or Edge(name)
        made.name, made.bare = name, name not in self.edges
        self.edges[name] = made
        return made

    def _extend(self, info, sequential):
        if isinstance(info, BaseModel):
            info = ExtendInfo(info, {})
        child, given = info.model, dict(info.connections)
        if child.parent is not None:
            raise AttributeError("Submodel of a model could not be extended!")
        made = child.made()
        for edge in (e.root() for e in child.flat_edges()):  # names of a part are its own
            edge.origin = edge.name if edge.name and id(edge) not in made else edge.origin
            edge.name = None
        if sequential and self.last is not None and child.cin.key not in given:
            given[child.cin.key] = self.last
        for key, value in given.items():
            if key not in child.edges:
                raise KeyError(f"Key '{key}' is not a valid key for the model!")
            if isinstance(value, str):
                self.edge_named(value).merge(child.edges[key])
            elif isinstance(value, Edge):
                value.root().merge(child.edges[key])
            else:
                child.edges[key].root().value = value
        child.parent = self
        self.dag[child] = child.edges
        self.last = child.edges.get("output", child.last)
        return self

    def __iadd__(self, info):
        return self._extend(info, True)

    def __ior__(self, info):
        return self._extend(info, False)

    def expose_keys(self, *args, **kwargs):
        if self.parent is not None:
            raise Exception("Child model's outputs cannot be set.")
        for name, key in [*((None, a) for a in args), *kwargs.items()]:
            edge = self.edge_named(key) if isinstance(key, str) else key.root()
            edge.name = name or edge.name
            self.exposed.append(edge.name)

    def set_shapes(self, shapes=None, **kwargs):
        for key, shape in {**(shapes or {}), **kwargs}.items():
            self.edge_named(key).root().shape = list(shape)

    @property
    def shapes(self):
        return {edge.root().name: edge.root().shape for edge in self.flat_edges() if edge.root().name}

    def get_unique_submodel_names(self):
        kinds = [type(child).__name__ for child in self.dag]
        names, seen = {}, {}
        for child, kind in zip(self.dag, kinds, strict=True):
            number = seen[kind] = seen.get(kind, -1) + 1
            names[child] = child.name or (kind if kinds.count(kind) == 1 else f"{kind}_{number}")
        return names

    def summary(
        self,
        shapes=True,
        types=False,
        symbolic=False,
        name=None,
        alternative_shapes=False,
        uni_cache=None,
        var_cache=None,
        depth=0,
    ):
        print(name or type(self).__name__, *self.get_unique_submodel_names().values())


class Operator(BaseModel):
    """A single function. `keys`: its arguments in order, with constants where they have a value."""

    def __init__(self, formula_key, keys, name=None):
        super().__init__(name=name)
        self.formula_key = formula_key
        self.edges = {**keys, "output": Edge("output")}

    @property
    def input_keys(self):
        return {key: edge for key, edge in self.edges.items() if key != "output"}.keys()

    def operators(self):
        return [self]

    def flat_edges(self):
        return list(self.edges.values())


class Model(BaseModel):
    def __init__(self, *, name=None, formula_key=None, enforce_jit=True):
        super().__init__(name=name)

    def learns(self, **shapes):
        """These keys are to be trained."""
        for key, shape in shapes.items():
            edge = self.edge_named(key).root()
            edge.differentiable, edge.shape = True, shape


class PrimitiveModel(Model):
    """A model of one operator."""

    def __init__(self, formula_key, keys, *, name=None):
        super().__init__(name=name)
        operator = Operator(formula_key, keys, name=type(self).__name__)
        operator.parent = self
        self.dag = {operator: operator.edges}
        self.edges = dict(operator.edges)
        self.last = self.edges["output"]
        self.first = "input" if "input" in keys else next(iter(keys))
