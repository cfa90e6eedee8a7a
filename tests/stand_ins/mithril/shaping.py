"""Shapes of keys, as far as the operators tell them. Like the real one, a clash is told without the keys that clash."""

BROADCASTS = ("add", "subtract", "multiplication", "divide")


def infer(rows, known, given, declared):
    for key, shape in given.items():
        _agree(declared.get(key), list(shape))
    known = {key: None if shape is None else list(shape) for key, shape in known.items()}
    turned = {}
    for key, (op, sources) in rows.items():
        known[key] = _made(op.formula_key, [known.get(s) for s in sources], turned.get(sources[-1]), known) or known.get(key)
        if op.formula_key == "transpose":
            turned[key] = sources[0]
    return known


def _made(formula, shapes, weight, known):
    first = shapes[0]
    if formula == "matrix_multiplication" and first and shapes[1]:
        features = shapes[1][-2]
        _agree([features], first[-1:])
        if weight is not None and known[weight] is not None and known[weight][-1] is None:
            known[weight][-1] = first[-1]
        return [*first[:-1], shapes[1][-1]]
    if formula == "transpose" and first:
        return first[::-1]
    if formula.startswith("cross_entropy") and first and shapes[1]:
        _agree(first[:1], shapes[1][:1])
        return first[:1]
    if formula in BROADCASTS or formula in ("squared_error", "absolute_error"):
        return max((s for s in shapes if s), key=len, default=None)
    if formula == "reduce_mean":
        return []
    return first if formula in ("relu", "sigmoid", "tanh", "gelu", "softmax", "log", "sin", "sqrt") else None


def _agree(one, other):
    if one is None or other is None:
        return
    if len(one) != len(other) or any(None not in (a, b) and a != b for a, b in zip(one, other, strict=True)):
        raise ValueError("Possible values mismatch!")
