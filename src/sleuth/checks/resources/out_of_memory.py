"""There was no memory left."""

from collections.abc import Iterator
from dataclasses import dataclass

from sleuth.core.check import Evidence, NotExamined, Seen, check
from sleuth.core.observation import Crash, Ending, Held, OutOfMemory, Role
from sleuth.core.stage import Confidence, Severity, Stage
from sleuth.core.words import size

# Of what is known to be held: a part this large is what to begin with.
MOST = 0.5
# Activations are counted as float32, which is what most models compute in.
FLOAT = 4
TOLD = 3
TRAINING = ("forward", "loss", "backward", "step")


@dataclass(frozen=True)
class Account:
    """What is known of the memory, in bytes."""

    held: tuple[Held, ...]  # parameters, gradients, optimiser state
    activations: dict[str, int]  # by layer, of the last step that was looked at
    variables: tuple[Held, ...]

    @property
    def of_weights(self) -> int:
        return sum(h.bytes for h in self.held)

    @property
    def of_activations(self) -> int:
        return sum(self.activations.values())

    @property
    def known(self) -> int:
        return self.of_weights + self.of_activations + sum(h.bytes for h in self.variables)


@check(
    code="R603",
    stage=Stage.RESOURCES,
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    reads=((OutOfMemory, Ending, Crash),),
    title="The run dies for want of memory",
    why="""A training step holds the weights, their gradients, the optimiser's state, and every layer's output until backward has
    used it. The outputs grow with the batch, the rest does not; what the loop keeps from step to step comes on top.""",
    fix="""Use a smaller batch and accumulate gradients over several, compute in bfloat16 under torch.autocast, or recompute
    activations: torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).""",
    decided_by="the exception, and a count of what was held when it came: weights, gradients, optimiser, activations, variables",
    symptoms=(
        "CUDA out of memory",
        "out of memory",
        "Tried to allocate GiB",
        "torch.OutOfMemoryError",
        "DefaultCPUAllocator: can't allocate memory",
        "MemoryError: Unable to allocate array",
        "Cannot allocate memory",
        "how large may the batch be",
    ),
)
def out_of_memory(seen: Seen, *, most: float = MOST) -> Iterator[Evidence | NotExamined]:
    for found in seen.all(OutOfMemory):
        account = Account(found.held, _activations(seen), found.largest)
        cures = list(_cures(found, account, most))
        yield Evidence(
            where=found.layer,
            location=found.location,
            summary=f"{_asked(found)}{_when(found)}{_holders(account)}",
            fix=" ".join(f"{n}. {cure}." if len(cures) > 1 else f"{cure}." for n, cure in enumerate(cures, 1)),
            numbers={
                "asked": found.asked,
                "free": found.free,
                "total": found.total,
                "batch": found.batch,
                "activations": account.of_activations or None,
                **{h.what: h.bytes for h in found.held},
            },
            strength=2.0,
        )


def _activations(seen: Seen) -> dict[str, int]:
    """By layer, at the last step that was looked at in full."""
    return {t.path: int(t.statistics.count) * FLOAT for t in seen.latest(Role.ACTIVATION)}


def _asked(found: OutOfMemory) -> str:
    what = f"{size(found.asked)} more could not be had" if found.asked else "no more memory could be had"
    if found.total is None:
        return what
    free = f", {size(found.free)} of them free" if found.free is not None else ""
    return f"{what}: {found.device if found.device != 'cpu' else 'the machine'} has {size(found.total)}{free}"


def _when(found: OutOfMemory) -> str:
    place = f" in layer {found.layer}" if found.layer else ""
    batch = f", with a batch of {found.batch:,}" if found.batch else ""
    return f"; it died at step {found.step:,}{place}{batch}" if found.phase or found.batch else ""


def _holders(account: Account) -> str:
    parts = [f"{h.what} {size(h.bytes)}" for h in account.held]
    if account.activations:
        path, most = max(account.activations.items(), key=lambda item: item[1])
        parts.append(f"outputs of the layers about {size(account.of_activations)} a step, most in {path} ({size(most)})")
    parts += [_named(h) for h in account.variables[:TOLD]]
    return f". Held: {', '.join(parts)}" if parts else ""


def _named(held: Held) -> str:
    shape = f" of shape {held.shape}" if held.shape is not None else ""
    if not held.what:
        return f"a tensor{shape} {size(held.bytes)}"
    return (
        f"{held.what} ({held.count:,} tensors{shape}) {size(held.bytes)}"
        if held.count > 1
        else f"{held.what}{shape} {size(held.bytes)}"
    )


def _cures(found: OutOfMemory, account: Account, most: float) -> Iterator[str]:
    """The one that frees most first."""
    alone = list(_one_tensor(found))
    yield from alone
    known = max(account.known, 1)
    for held in account.variables:
        if held.what and held.count > 1 and held.bytes > most * known:
            yield f"Let go of what {held.what} keeps ({size(held.bytes)}): keep numbers, .item(), or bring it to disk"
    if found.phase not in TRAINING and found.batch is None:
        if not alone:
            yield "Read and keep less at once: a Dataset that reads one sample at a time, np.load(path, mmap_mode='r'), float32"
        return
    weights = account.of_weights > most * known
    if weights:
        yield from _lighter_weights(account)
    if found.batch is None or found.batch > 1:
        of = f" of {found.batch:,}" if found.batch else ""
        yield f"Halve the batch{of} until it fits, and accumulate gradients over several: (loss / parts).backward() for each"
    if not weights and not alone:
        yield "Recompute what is large instead of keeping it: torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)"
    yield "Compute in bfloat16: with torch.autocast(x.device.type, torch.bfloat16), which halves most outputs of layers"


def _one_tensor(found: OutOfMemory) -> Iterator[str]:
    """One request that is larger than everything there is: no tidying up elsewhere helps."""
    if found.asked is None or found.total is None or found.asked <= found.total:
        return
    here = f" in {found.location.text}" if found.location is not None and found.location.text else ""
    text = f"Make the tensor{here} smaller: it alone needs {size(found.asked)}"
    if found.batch and found.batch > 1:
        fits = int(found.batch * found.total / found.asked)
        if fits >= 1:
            yield f"{text}; if it grows with the batch, at most {fits:,} samples instead of {found.batch:,} can fit"
        else:
            yield f"{text}, {size(found.asked / found.batch)} for each of {found.batch:,} samples: not even one fits"
        return
    yield text


def _lighter_weights(account: Account) -> Iterator[str]:
    by_name = {h.what: h.bytes for h in account.held}
    if by_name.get("optimiser state", 0) > by_name.get("parameters", 0):
        yield (
            f"Use an optimiser that remembers less: {size(by_name['optimiser state'])} are its state for "
            f"{size(by_name['parameters'])} of parameters (SGD with momentum needs half of Adam's)"
        )
    yield "Train fewer weights: freeze what is pretrained, p.requires_grad_(False), and hand the optimiser the others only"
