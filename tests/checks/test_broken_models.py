"""Broken models as people write them: the layer, what it takes, what it gets, the line, and what to type."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from sleuth import examine
from sleuth.adapters.torch.failure import explain
from sleuth.core.errors import UnusableInput
from sleuth.core.finding import Finding
from sleuth.core.subject import Subject
from tests.checks import broken_models
from tests.checks.broken_models import BROKEN, LABELS, TABLE, loader
from tests.checks.looking import BASIS, look_with

HERE = Path(broken_models.__file__)
FORWARD, SHAPES = "forward-fails", "output-target-mismatch"


def found_in(subject: Subject) -> tuple[Finding, ...]:
    return look_with(BASIS, subject, FORWARD, SHAPES, "backward-fails").findings


# name → (check, kind, layer, what it takes, what it gets, a piece of the line, a piece of the fix)
TOLD = {
    "flattened_maps_are_wider_than_the_head": (
        FORWARD, "shape", "fc", "512 features", "1352 features", "m.fc(x.flatten(1))",
        "Linear(512→10) gets 1352 features: make it Linear(1352, 10) or flatten from dim 1.",
    ),
    "a_view_divides_the_samples": (
        SHAPES, None, None, "16 rows for 16 targets", "output (128, 10), target (16,)", "x.view(-1, 676)",
        "write x.reshape(x.shape[0], -1) and give the next layer 5408 inputs",
    ),
    "a_view_does_not_divide": (FORWARD, "shape", None, "(-1, 777)", "86528 values", "x.view(-1, 777)", "x.shape[0], -1)"),
    "colours_where_grey_was_expected": (
        FORWARD, "shape", "1", "784 features", "2352 features", "nn.Linear(784, 131)", "make it Linear(2352, 131)",
    ),
    "channels_stand_last": (FORWARD, "shape", "0", "3 channels", "(16, 28, 28, 3)", None, "x.permute(0, 3, 1, 2)"),
    "no_batch_axis_before_a_convolution": (
        FORWARD, "shape", "2", "5408 features", "676 features", None, "the batch axis is missing: x.unsqueeze(0)",
    ),
    "no_channel_axis": (FORWARD, "shape", "0", "1 channel", "(16, 28, 28)", "nn.Conv2d(1, 23, 3)", "x.unsqueeze(1)"),
    "double_precision_from_numpy": (FORWARD, "dtype", "a", "float32", "float64", "m.a(x)", "x.float(), or make the arrays with"),
    "pixels_as_bytes": (FORWARD, "dtype", "conv", "float32", "uint8", "m.conv(x)", "x.float() / 255"),
    "labels_as_floats": (FORWARD, "dtype", None, "int64 class indices", "float32", "m.fc(x)", "target.long()"),
    "a_layer_was_left_on_another_device": (FORWARD, "device", "b", "meta", "cpu", "m.b(", "x = x.to(device)"),
    "a_plain_tensor_was_left_on_another_device": (
        FORWARD, "device", None, "one device", "cpu and meta", "x * m.mask", "self.register_buffer('mask', …)",
    ),
    "class_weights_on_another_device": (FORWARD, "device", None, "one device", "meta", "m.fc(x)", "loss.to(output.device)"),
    "ids_beyond_the_table": (FORWARD, "index", "words", "ids from 0 to 39", "id 49", "m.words(x)", "Embedding(50, 8) or larger"),
    "positions_beyond_the_table": (FORWARD, "index", "places", "ids from 0 to 7", "id 11", "m.places(", "Embedding(12, 8)"),
    "the_last_batch_has_one_sample": (FORWARD, "batch-of-one", "norm", "two samples", "[1, 8]", "m.norm(", "drop_last=True"),
    "labels_in_a_column": (SHAPES, None, None, "(N,)", "target (16, 1)", "m.fc(x)", "target.squeeze(1)"),
    "the_class_axis_was_squeezed": (SHAPES, None, None, "(N, classes)", "output (16,)", ".squeeze(1)", "do not squeeze it"),
    "the_samples_were_averaged_away": (SHAPES, None, None, "16 rows", "output (10,)", ".mean(0)", "write mean(dim=1)"),
    "a_collate_that_returns_lists": (FORWARD, "type", "fc", "a tensor", "a list of 16: (18,)", "m.fc(x)", "torch.stack(xs)"),
    "an_lstm_of_another_width": (FORWARD, "shape", "rnn", "24 features", "20 features", "m.rnn(x)", "make it LSTM(20, 16)"),
    "both_directions_of_an_lstm": (FORWARD, "shape", "fc", "16 features", "32 features", "h[:, -1]", "make it Linear(32, 10)"),
    "an_lstm_returns_two_things": (FORWARD, "type", "fc", "a tensor", "a tuple of 2", "m.rnn(x)", "out, _ = layer(x)"),
    "a_hidden_state_for_another_batch": (
        FORWARD, "shape", "rnn", "(1, 16, 16)", "(1, 32, 16)", "torch.zeros(1, 32, 16)", "torch.zeros(1, x.shape[0], 16)",
    ),
    "attention_of_another_width": (FORWARD, "shape", "attention", "32 features", "20", "m.attention(", "set embed_dim to 20"),
    "keys_of_another_width": (
        FORWARD, "shape", "attention", "values of 32", "20", "m.attention(", "MultiheadAttention(32, 4, kdim=20, vdim=20)",
    ),
    "a_kernel_larger_than_the_maps": (FORWARD, "shape", "two", "window of 7×7", "(16, 8, 6, 6)", "m.two(x)", "add padding"),
    "forward_wants_a_mask_too": (FORWARD, "arguments", None, "forward(x, mask)", "1 argument", None, "such as ((x, mask), y)"),
    "the_batch_brings_more_than_forward_takes": (
        FORWARD, "arguments", None, "forward(x)", "2 arguments", None, "split=lambda batch: (batch[0], batch[-1])",
    ),
    "a_block_is_called_with_too_little": (
        FORWARD, "arguments", "block", "forward(x, skip)", "1 argument", "m.block(x)", "self.block(x, skip)",
    ),
    "the_output_lacks_the_key": (FORWARD, "key", None, "'scores' in out", "only 'logits'", 'out["scores"]', "out['logits']"),
    "the_output_lacks_the_attribute": (FORWARD, "name", None, "out.logit", "only logits", "out.logit", "Write out.logits"),
    "a_dict_goes_into_the_loss": (FORWARD, "type", None, "a tensor", "a dict", None, "by its key ('logits')"),
    "the_batch_lacks_the_key": (FORWARD, "key", None, "'features' in batch", "only 'x', 'w'", "batch[", "batch['x']"),
    "a_layer_under_another_name": (FORWARD, "name", None, ".fc", "fc1", "m.fc(x)", "fc1"),
    "forward_returns_nothing": (FORWARD, "type", None, "a tensor", "None", None, "is a `return` missing?"),
    "a_weight_the_wrong_way_round": (FORWARD, "shape", None, "(out, 18)", "weight (18, 10)", "fn.linear(", "weight.T"),
    "a_kernel_for_other_channels": (
        FORWARD, "shape", None, "1 channel (kernel", "3 channels", "fn.conv2d(", "Give kernel the shape (8, 3, 3, 3)",
    ),
    "a_product_with_a_parameter": (FORWARD, "shape", None, "18 and 12", "weight (12, 10)", "x @ m.weight", "the shape (18, 10)"),
    "a_shortcut_around_an_unpadded_convolution": (
        FORWARD, "shape", None, "equal sizes", "(16, 8, 24, 24)", "h + m.two(h)", "padding='same'",
    ),
    "maps_of_two_sizes_are_joined": (FORWARD, "shape", None, "outside axis 1", "(16, 8, 24, 24)", "torch.cat", "interpolate("),
    "a_dice_loss_on_class_indices": (SHAPES, None, None, "equal shapes", "p (16, 10), y (16,)", "(p * y)", "one_hot(y, 10)"),
    "a_loss_that_wants_weights": (
        FORWARD, "arguments", None, "loss(output, target)", "'weights'", None, "f(output, target, weights=…)",
    ),
    "the_class_of_a_loss": (FORWARD, "type", None, "CrossEntropyLoss()", "the class", None, "loss=CrossEntropyLoss()"),
    "one_class_too_few": (FORWARD, "index", None, "labels from 0 to 8", "label 9", "m.fc(x)", "the last layer 10 units"),
    "a_sample_of_another_length": (FORWARD, "shape", None, "one shape, [18]", "[17]", None, "pad_sequence("),
    "a_worker_that_raises": (FORWARD, "other", None, None, None, 'raise IndexError("no row 30")', "list(train)"),
    "three_axes_are_unpacked_from_two": (FORWARD, "shape", None, "x with 3 axes", "(16, 18)", "= x.shape", "x.unsqueeze(1)"),
    "letters_of_an_einsum": (FORWARD, "shape", None, "one size for i", "i is 18 and 12", "torch.einsum(", "weight has 12 there"),
    "an_axis_that_does_not_exist": (FORWARD, "shape", None, "an axis 2", "(16, 10)", "log_softmax(2)", "dim=-1"),
    "features_under_inference_mode": (
        FORWARD, "graph", "fc", "may carry a graph", "inference_mode()", "h = m.body(x)", "out of the torch.inference_mode()",
    ),
    "a_variance_below_zero": (FORWARD, "value", None, "above 0", "a negative one", "fn.gaussian_nll_loss(", "softplus(v) + 1e-6"),
    "words_stand_before_classes": (SHAPES, None, None, "classes on axis 1", "(16, 11, 50)", "m.words(x)", "transpose(1, 2)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_told_in_full(name: str) -> None:
    check, kind, layer, takes, gets, line, fix = TOLD[name]
    (finding,) = found_in(BROKEN[name]())
    assert (finding.name, finding.numbers.get("kind"), finding.where) == (check, kind, layer), finding
    assert takes is None or takes in str(finding.numbers["expected"])
    assert gets is None or gets in str(finding.numbers["got"])
    assert fix in finding.fix
    if line is not None:
        assert finding.location is not None
        assert Path(finding.location.file) == HERE
        assert line in finding.location.text


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_a_lazy_layer_is_asked_for_politely() -> None:
    model = nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
    with pytest.raises(UnusableInput, match=r"1\.weight has no shape yet.*model\(x\)"):
        examine(model, loader(TABLE, LABELS), loss=nn.CrossEntropyLoss(), progress=False)


def test_samples_that_never_make_a_batch_are_refused_with_a_cure() -> None:
    samples = [(torch.rand(4 + i % 2), i % 3) for i in range(20)]
    with pytest.raises(UnusableInput, match="pad_sequence"):
        examine(nn.Linear(4, 3), DataLoader(samples, batch_size=4), loss=nn.CrossEntropyLoss(), progress=False)


@pytest.mark.parametrize(
    "message",
    [
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
        "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors on cuda:0 (when "
        "checking argument in method wrapper_CUDA_addmm)",
        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same",
    ],
)
def test_what_torch_says_of_two_devices_is_known(message: str) -> None:
    assert explain(RuntimeError(message), "forward", nn.Linear(2, 2)).kind == "device"
