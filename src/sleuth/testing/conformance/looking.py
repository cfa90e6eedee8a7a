"""What is told of a model that is only looked at equals what it is made of."""

from math import prod

import numpy as np

from sleuth.core.contract.adapter import Adapter, Attends, Credits, Inspects, Routes, Shows
from sleuth.core.errors import UnusableInput
from sleuth.testing.conformance.rule import (
    CLASSES,
    FEATURES,
    HIDDEN,
    SAMPLES,
    close,
    first_batch,
    known_network,
    native,
    rule,
    same,
)
from sleuth.testing.kit import CannotBuild, Kit

PARAMETERS = FEATURES * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES
OUT, IN, KERNEL, SIDE = 4, 3, 3, 8


@rule(Inspects)
def parts_add_up_to_the_model(adapter: Adapter, kit: Kit) -> None:
    model = kit.mlp(FEATURES, HIDDEN, CLASSES)
    parts = adapter.parts(model)  # type: ignore[attr-defined]
    assert parts[0].path == ""
    assert len({part.path for part in parts}) == len(parts)
    assert (sum(p.count for p in parts), sum(p.trainable for p in parts)) == (PARAMETERS, PARAMETERS)
    linear = [part for part in parts if part.family == "linear"]
    assert len(linear) == 2
    assert sorted(max(map(prod, part.parameters.values())) for part in linear) == sorted((FEATURES * HIDDEN, HIDDEN * CLASSES))


@rule(Inspects)
def a_passage_tells_shapes_and_operations(adapter: Adapter, kit: Kit) -> None:
    network = known_network(kit)
    inputs = first_batch(network.subject).inputs
    passage = adapter.passage(network.subject.model, inputs)  # type: ignore[attr-defined]
    assert passage.failure is None
    whole = passage.visits[0]
    assert (whole.path, whole.parent, whole.finished) == ("", None, True)
    assert [door.shape for door in whole.outputs] == [(SAMPLES, CLASSES)]
    shapes = {door.shape for visit in passage.visits for door in visit.outputs}
    assert (SAMPLES, HIDDEN) in shapes
    if passage.flops_counted:
        assert whole.flops == 2 * SAMPLES * (FEATURES * HIDDEN + HIDDEN * CLASSES)


@rule(Inspects)
def a_passage_that_fails_says_where(adapter: Adapter, kit: Kit) -> None:
    model = kit.mlp(FEATURES, HIDDEN, CLASSES)
    passage = adapter.passage(model, native(kit, np.zeros((SAMPLES, FEATURES - 5), np.float32)))  # type: ignore[attr-defined]
    assert passage.failure is not None
    assert passage.failure.kind == "shape"
    assert not all(visit.finished for visit in passage.visits)


@rule(Inspects)
def arrays_are_made_to_try_a_model_with(adapter: Adapter, kit: Kit) -> None:
    model = kit.mlp(FEATURES, HIDDEN, CLASSES)
    made, again = (adapter.made(model, (5, FEATURES), None) for _ in range(2))  # type: ignore[attr-defined]
    assert (tuple(made.shape), adapter.dtype(made)) == ((5, FEATURES), "float32")
    assert np.array_equal(adapter.values(made), adapter.values(again))
    assert not adapter.values(adapter.made(model, (2, 3), "int32")).any()  # type: ignore[attr-defined]


@rule(Routes)
def a_route_leads_to_the_output(adapter: Adapter, kit: Kit) -> None:
    network = known_network(kit)
    route = adapter.route(network.subject.model, first_batch(network.subject).inputs)  # type: ignore[attr-defined]
    assert route.outputs
    assert all(route.nodes[node].shape == (SAMPLES, CLASSES) for node in route.outputs)
    assert all(source < place for place, node in enumerate(route.nodes) for source in node.sources)
    assert any(node.family == "activation" or "relu" in node.name.lower() or "max" in node.name.lower() for node in route.nodes)


@rule(Shows)
def filters_and_maps_are_those_of_numpy(adapter: Adapter, kit: Kit) -> None:
    try:
        convolution = kit.layer("conv2d", IN, OUT, KERNEL)
        model = kit.sequential(
            convolution, kit.activation("relu"), kit.layer("flatten"), kit.linear(OUT * (SIDE - KERNEL + 1) ** 2, CLASSES)
        )
    except CannotBuild:
        return
    images = np.random.default_rng(3).normal(size=(2, IN, SIDE, SIDE)).astype(np.float32)
    weight = np.random.default_rng(4).normal(size=(OUT, IN, KERNEL, KERNEL)).astype(np.float32)
    inputs = native(kit, images)
    adapter.passage(model, inputs)  # type: ignore[attr-defined]  # some frameworks make their weights at the first call
    kit.set_weights(convolution, weight, np.zeros(OUT, np.float32))
    kernels = adapter.kernels(model, None)  # type: ignore[attr-defined]
    assert close(kernels.values, weight)
    (maps,) = adapter.maps(model, inputs, ())  # type: ignore[attr-defined]
    windows = np.lib.stride_tricks.sliding_window_view(images, (KERNEL, KERNEL), (2, 3))
    assert close(maps.values, np.einsum("ncyxhw,ochw->noyx", windows, weight))


@rule(Credits)
def a_class_activation_is_not_below_zero(adapter: Adapter, kit: Kit) -> None:
    try:
        model = kit.sequential(
            kit.layer("conv2d", IN, OUT, KERNEL),
            kit.activation("relu"),
            kit.layer("flatten"),
            kit.linear(OUT * (SIDE - KERNEL + 1) ** 2, CLASSES),
        )
    except CannotBuild:
        return
    images = np.random.default_rng(3).normal(size=(2, IN, SIDE, SIDE)).astype(np.float32)
    found = adapter.class_activation(model, native(kit, images), None, [1, 0])  # type: ignore[attr-defined]
    assert found.targets == (1, 0)
    assert found.maps.shape == (2, SIDE - KERNEL + 1, SIDE - KERNEL + 1)
    # Where a framework has its channels last, that is how an adapter reads the images of a kit that turns them inside.
    assert found.enlarged.shape == (2, *found.image.shape[2:])
    assert np.array_equal(np.sort(found.image, axis=None), np.sort(images, axis=None))
    assert (found.maps >= 0).all()
    assert found.maps.any()


@rule(Attends)
def a_model_without_attention_is_told_so(adapter: Adapter, kit: Kit) -> None:
    network = known_network(kit)
    refused = ""
    try:
        adapter.attention(network.subject.model, first_batch(network.subject).inputs)  # type: ignore[attr-defined]
    except UnusableInput as refusal:
        refused = str(refusal)
    assert refused.startswith("no attention was seen in "), "an attention was seen in two linear layers and a ReLU"


@rule(Inspects)
def a_look_leaves_the_model_as_it_was(adapter: Adapter, kit: Kit) -> None:
    network = known_network(kit)
    with adapter.bench(network.subject) as bench:  # type: ignore[attr-defined]
        before = {path: np.array(adapter.values(bench.parameter(path))) for path in bench.paths()}
    adapter.passage(network.subject.model, first_batch(network.subject).inputs, time=True)  # type: ignore[attr-defined]
    with adapter.bench(network.subject) as bench:  # type: ignore[attr-defined]
        assert same({path: np.array(adapter.values(bench.parameter(path))) for path in bench.paths()}, before)
