"""Linear layers in a row that do the work of one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Architecture
from sleuth.core.reading.flow import LINEAR, WEIGHTY, Chain, chain_to, users
from sleuth.core.stage import Severity, Stage
from sleuth.core.trial import Flow, Operation, ParameterStart

# A code of this few numbers for that many inputs, handed to about as many outputs, is a latent and not a hidden layer.
LATENT_SHARE = 4
LATENT_OUTPUTS = 4
PRODUCTS = ("product", "attention")


@check(
    code="M216",
    stage=Stage.MODEL,
    severity=Severity.WARNING,
    reads=(Flow, Architecture),
    explains=(
        "signal-grows-or-fades", "vanishing-gradients", "exploding-gradients", "cannot-overfit-one-batch", "loss-not-decreasing",
        "learning-rate-too-low", "learning-rate-too-high", "underfitting", "capacity-too-small", "capacity-mismatch",
    ),
    title="Linear layers in a row collapse into one",
    why="""A linear function of a linear function is a linear function: two such layers without an activation between them can do
    no more than one, whatever their width. The depth is there on paper only.""",
    fix="Put an activation between the two layers, such as nn.ReLU(), or keep only one of them.",
    decided_by="the layers between one linear layer and the next",
    symptoms=(
        "forgot the activation function",
        "deep network no better than a linear model",
        "linear layers without relu between them",
        "cannot learn xor",
        "accuracy does not improve",
    ),
)  # fmt: skip
def missing_nonlinearity(seen: Seen) -> Iterator[Evidence | NotExamined]:
    flow, architecture = seen.one(Flow), seen.one(Architecture)
    start = seen.maybe(ParameterStart)
    if start is not None and any(p.trained for p in start.parameters):
        yield NotExamined("the weights come from a checkpoint: how its layers follow each other was settled there")
        return
    learned = {p.path for p in architecture.parameters if p.trainable and p.optimised is not False}
    looked_up = {p for o in flow.operations if o.family == "embedding" for p in o.parameters}
    nowhere = not any(o.family not in (*LINEAR, *WEIGHTY, "input", "loss") for o in _inside(flow))
    used = users(flow)
    found = []
    for index, last in enumerate(flow.operations):
        if last.family not in WEIGHTY or not learned.intersection(last.parameters) or looked_up.intersection(last.parameters):
            continue
        chain = chain_to(flow, index, LINEAR, used)
        if chain is None or chain.first.family not in WEIGHTY or not learned.intersection(chain.first.parameters):
            continue
        if collapses(chain, nowhere) and not _part_of_a_product(flow, chain, index, used):
            found.append(chain)
    if found:
        yield _evidence(found, nowhere)


def _inside(flow: Flow) -> Sequence[Operation]:
    """Without what the loss does behind the model."""
    return flow.operations[: max(flow.outputs) + 1] if flow.outputs else flow.operations


def collapses(chain: Chain, nowhere: bool) -> bool:
    """Would one layer do as much? A middle narrower than both sides says something: a low rank, a code, a bottleneck."""
    first, last = chain.first.settings, chain.last.settings
    reached, widths = chain.features(), _widths(chain)
    if reached is None or widths is None or reached[0] != last.get("axis"):
        return False
    inputs, middle, taken, outputs = widths
    joined = reached[1]
    tied = set(chain.first.parameters) & set(chain.last.parameters)
    if tied or (taken % middle if joined else taken != middle) or not _plain_convolutions(first, last):
        return False
    # A sum over the members of a set, between what is done to each and what is done to all, is a design of its own.
    if any(o.family == "average" for o in chain.between) and chain.first.family != "conv":
        return False
    if middle < inputs and (joined or middle < outputs):
        return False
    latent = middle * LATENT_SHARE <= inputs and middle < LATENT_OUTPUTS * outputs
    return nowhere or joined or not latent


def _widths(chain: Chain) -> tuple[int, int, int, int] | None:
    """What goes in, what comes out of the first, what the last takes, what comes out of it."""
    sizes = [operation.settings.get(side) for operation in (chain.first, chain.last) for side in ("in", "out")]
    known = [size for size in sizes if isinstance(size, int) and size > 0]
    return (known[0], known[1], known[2], known[3]) if len(known) == 4 else None


def _plain_convolutions(first: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    """Convolutions in groups, along one axis each, or that enlarge the image are factors of one another on purpose."""
    if first.get("groups", 1) != 1 or last.get("groups", 1) != 1:
        return False
    if first.get("transposed") or last.get("transposed"):
        return bool(first.get("transposed") and last.get("transposed") and first["out"] != last["out"])
    one, other = first.get("kernel", ()), last.get("kernel", ())
    if len(one) != len(other):
        return True
    along = [(a > 1, b > 1) for a, b in zip(one, other, strict=True)]
    return not ((True, False) in along and (False, True) in along)


def _part_of_a_product(flow: Flow, chain: Chain, index: int, used: Sequence[Sequence[int]]) -> bool:
    """Projections around an attention or a gate: queries, keys, values, and what gathers them. A one-hot input makes a table."""
    behind = [flow.operations[i] for i in chain.first.sources]
    while len(behind) == 1 and behind[0].family == "reshape":
        behind = [flow.operations[i] for i in behind[0].sources]
    if any(o.family in PRODUCTS or o.name == "one_hot" for o in behind):
        return True
    ahead = list(used[index])
    for at in ahead:  # grows while it is walked
        operation = flow.operations[at]
        if operation.family in PRODUCTS:
            return True
        if operation.family in ("reshape", "scale", "dropout"):
            ahead += [i for i in used[at] if i not in ahead]
    return False


def _evidence(found: list[Chain], nowhere: bool) -> Evidence:
    chain = found[0]
    first, last = _name(chain.first), _name(chain.last)
    inputs, outputs = chain.first.settings["in"], chain.last.settings["out"]
    passed = [o.name for o in chain.between if o.family != "reshape"]
    between = f"only {', '.join(dict.fromkeys(passed))}" if passed else "nothing"
    more = f", and {len(found) - 1} more such {'pair' if len(found) == 2 else 'pairs'}" if len(found) > 1 else ""
    whole = "; no operation of the model is anything but linear" if nowhere else ""
    return Evidence(
        where=last.removeprefix("layer "),
        location=chain.last.location,
        summary=f"{first} ({inputs}→{chain.first.settings['out']}) feeds {last} ({chain.last.settings['in']}→{outputs}) with "
        f"{between} between them: together they are one linear layer {inputs}→{outputs}{more}{whole}",
        fix=f"Put an activation between {first} and {last}, such as ReLU (in torch: nn.ReLU() or torch.relu(…)), or keep only "
        "one of them.",
        numbers={"pairs": len(found), "in": inputs, "middle": chain.first.settings["out"], "out": outputs},
        strength=len(found) + (1.0 if nowhere else 0.0),
    )


def _name(operation: Operation) -> str:
    """The layer; for a product that the user wrote out, the parameter."""
    weight = next(iter(operation.parameters), "")
    if operation.layer and weight.startswith(f"{operation.layer}."):
        return f"layer {operation.layer}" if operation.layer.rpartition(".")[2].isdigit() else operation.layer
    return weight or operation.layer or operation.name
