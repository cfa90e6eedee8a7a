"""Trainings that really raise, as people write them; what must be said of each stands in the test."""

from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as fn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from sleuth import Subject

random = torch.Generator().manual_seed(0)
IMAGES = torch.rand(64, 3, 28, 28, generator=random)
LABELS = torch.randint(10, (64,), generator=random)
SEQUENCES = torch.rand(64, 12, 20, generator=random)
IDS = torch.randint(50, (64, 12), generator=random)
TABLE = torch.rand(64, 18, generator=random)

BROKEN: dict[str, Callable[[], Subject]] = {}


def broken(build: Callable[[], Subject]) -> Callable[[], Subject]:
    BROKEN[build.__name__] = build
    return build


class Made(nn.Module):
    """Parts by name, and a forward that is written out where the parts are."""

    def __init__(self, forward, **parts) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._forward = forward

    def forward(self, x):
        return self._forward(self, x)


def loader(*arrays: torch.Tensor, size: int = 16, **options) -> DataLoader:
    return DataLoader(TensorDataset(*arrays), batch_size=size, **options)


def training(model: nn.Module, *arrays: torch.Tensor, loss=None, **options) -> Subject:
    return Subject(model, loader(*arrays), loss or nn.CrossEntropyLoss(), **options)


@broken
def flattened_maps_are_wider_than_the_head() -> Subject:
    def forward(m, x):
        x = fn.max_pool2d(torch.relu(m.conv(x)), 2)
        return m.fc(x.flatten(1))

    return training(Made(forward, conv=nn.Conv2d(3, 8, 3), fc=nn.Linear(512, 10)), IMAGES, LABELS)


@broken
def a_view_divides_the_samples() -> Subject:
    def forward(m, x):
        x = torch.relu(m.conv(x))
        x = x.view(-1, 676)
        return m.fc(x)

    return training(Made(forward, conv=nn.Conv2d(3, 8, 3), fc=nn.Linear(676, 10)), IMAGES, LABELS)


@broken
def a_view_does_not_divide() -> Subject:
    def forward(m, x):
        x = torch.relu(m.conv(x))
        return m.fc(x.view(-1, 777))

    return training(Made(forward, conv=nn.Conv2d(3, 8, 3), fc=nn.Linear(777, 10)), IMAGES, LABELS)


@broken
def colours_where_grey_was_expected() -> Subject:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 131), nn.ReLU(), nn.Linear(131, 10))
    return training(model, IMAGES, LABELS)


@broken
def channels_stand_last() -> Subject:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(5408, 10))
    return training(model, IMAGES.permute(0, 2, 3, 1).contiguous(), LABELS)


@broken
def no_batch_axis_before_a_convolution() -> Subject:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(5408, 10))
    return Subject(model, [(IMAGES[i], LABELS[i]) for i in range(20)], nn.CrossEntropyLoss())


@broken
def no_channel_axis() -> Subject:
    model = nn.Sequential(nn.Conv2d(1, 23, 3), nn.Flatten(), nn.Linear(15548, 10))
    return training(model, IMAGES[:, 0], LABELS)


@broken
def double_precision_from_numpy() -> Subject:
    return training(Made(lambda m, x: m.b(torch.relu(m.a(x))), a=nn.Linear(18, 8), b=nn.Linear(8, 10)), TABLE.double(), LABELS)


@broken
def pixels_as_bytes() -> Subject:
    model = Made(lambda m, x: m.fc(m.conv(x).flatten(1)), conv=nn.Conv2d(3, 8, 3), fc=nn.Linear(5408, 10))
    return training(model, (IMAGES * 255).byte(), LABELS)


@broken
def labels_as_floats() -> Subject:
    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, LABELS.float())


@broken
def a_layer_was_left_on_another_device() -> Subject:
    model = Made(lambda m, x: m.b(torch.relu(m.a(x))), a=nn.Linear(18, 8), b=nn.Linear(8, 10, device="meta"))
    return training(model, TABLE, LABELS)


@broken
def a_plain_tensor_was_left_on_another_device() -> Subject:
    model = Made(lambda m, x: m.fc(x * m.mask), fc=nn.Linear(18, 10), mask=torch.ones(18, device="meta"))
    return training(model, TABLE, LABELS)


@broken
def class_weights_on_another_device() -> Subject:
    loss = nn.CrossEntropyLoss(weight=torch.ones(10, device="meta"))
    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, LABELS, loss=loss)


@broken
def ids_beyond_the_table() -> Subject:
    return training(Made(lambda m, x: m.fc(m.words(x).mean(1)), words=nn.Embedding(40, 8), fc=nn.Linear(8, 10)), IDS, LABELS)


@broken
def positions_beyond_the_table() -> Subject:
    def forward(m, x):
        h = m.words(x) + m.places(torch.arange(x.shape[1]))
        return m.fc(h.mean(1))

    return training(
        Made(forward, words=nn.Embedding(50, 8), places=nn.Embedding(8, 8), fc=nn.Linear(8, 10)), IDS, LABELS
    )  # fmt: skip


@broken
def the_last_batch_has_one_sample() -> Subject:
    model = Made(lambda m, x: m.fc(torch.relu(m.norm(m.a(x)))), a=nn.Linear(18, 8), norm=nn.BatchNorm1d(8), fc=nn.Linear(8, 10))
    return training(model, TABLE[:49], LABELS[:49])


@broken
def labels_in_a_column() -> Subject:
    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, LABELS[:, None])


@broken
def the_class_axis_was_squeezed() -> Subject:
    return training(Made(lambda m, x: m.fc(x).squeeze(1), fc=nn.Linear(18, 1)), TABLE, LABELS)


@broken
def the_samples_were_averaged_away() -> Subject:
    return training(Made(lambda m, x: m.fc(x).mean(0), fc=nn.Linear(18, 10)), TABLE, LABELS)


@broken
def a_collate_that_returns_lists() -> Subject:
    def collate(samples):
        return [x for x, _ in samples], torch.stack([y for _, y in samples])

    model = Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10))
    return Subject(model, loader(TABLE, LABELS, collate_fn=collate), nn.CrossEntropyLoss())


@broken
def an_lstm_of_another_width() -> Subject:
    def forward(m, x):
        h, _ = m.rnn(x)
        return m.fc(h[:, -1])

    return training(Made(forward, rnn=nn.LSTM(24, 16, batch_first=True), fc=nn.Linear(16, 10)), SEQUENCES, LABELS)


@broken
def both_directions_of_an_lstm() -> Subject:
    def forward(m, x):
        h, _ = m.rnn(x)
        return m.fc(h[:, -1])

    rnn = nn.LSTM(20, 16, batch_first=True, bidirectional=True)
    return training(Made(forward, rnn=rnn, fc=nn.Linear(16, 10)), SEQUENCES, LABELS)


@broken
def an_lstm_returns_two_things() -> Subject:
    model = Made(lambda m, x: m.fc(m.rnn(x)), rnn=nn.LSTM(20, 16, batch_first=True), fc=nn.Linear(16, 10))
    return training(model, SEQUENCES, LABELS)


@broken
def a_hidden_state_for_another_batch() -> Subject:
    def forward(m, x):
        h, _ = m.rnn(x, torch.zeros(1, 32, 16))
        return m.fc(h[:, -1])

    return training(Made(forward, rnn=nn.GRU(20, 16, batch_first=True), fc=nn.Linear(16, 10)), SEQUENCES, LABELS)


@broken
def attention_of_another_width() -> Subject:
    def forward(m, x):
        h, _ = m.attention(x, x, x)
        return m.fc(h.mean(1))

    return training(
        Made(forward, attention=nn.MultiheadAttention(32, 4, batch_first=True), fc=nn.Linear(32, 10)), SEQUENCES, LABELS
    )


@broken
def keys_of_another_width() -> Subject:
    def forward(m, x):
        h, _ = m.attention(m.query(x), x, x)
        return m.fc(h.mean(1))

    attention = nn.MultiheadAttention(32, 4, batch_first=True)
    return training(Made(forward, query=nn.Linear(20, 32), attention=attention, fc=nn.Linear(32, 10)), SEQUENCES, LABELS)


@broken
def a_kernel_larger_than_the_maps() -> Subject:
    def forward(m, x):
        x = fn.max_pool2d(m.one(x), 4)
        return m.fc(m.two(x).mean((2, 3)))

    return training(Made(forward, one=nn.Conv2d(3, 8, 3), two=nn.Conv2d(8, 8, 7), fc=nn.Linear(8, 10)), IMAGES, LABELS)


@broken
def forward_wants_a_mask_too() -> Subject:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(18, 10)

        def forward(self, x, mask):
            return self.fc(x * mask)

    return training(Masked(), TABLE, LABELS)


@broken
def the_batch_brings_more_than_forward_takes() -> Subject:
    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, TABLE, LABELS)


@broken
def a_block_is_called_with_too_little() -> Subject:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(18, 18)

        def forward(self, x, skip):
            return self.fc(x) + skip

    return training(Made(lambda m, x: m.fc(m.block(x)), block=Block(), fc=nn.Linear(18, 10)), TABLE, LABELS)


@broken
def the_output_lacks_the_key() -> Subject:
    def loss(out, y):
        return fn.cross_entropy(out["scores"], y)

    return training(Made(lambda m, x: {"logits": m.fc(x)}, fc=nn.Linear(18, 10)), TABLE, LABELS, loss=loss)


@broken
def the_output_lacks_the_attribute() -> Subject:
    def loss(out, y):
        return fn.cross_entropy(out.logit, y)

    return training(Made(lambda m, x: SimpleNamespace(logits=m.fc(x)), fc=nn.Linear(18, 10)), TABLE, LABELS, loss=loss)


@broken
def a_dict_goes_into_the_loss() -> Subject:
    return training(Made(lambda m, x: {"logits": m.fc(x)}, fc=nn.Linear(18, 10)), TABLE, LABELS)


@broken
def the_batch_lacks_the_key() -> Subject:
    model = Made(lambda m, batch: m.fc(batch["features"]), fc=nn.Linear(18, 10))
    rows = range(0, 64, 16)
    batches = [{"x": TABLE[i : i + 16], "w": TABLE[i : i + 16], "labels": LABELS[i : i + 16]} for i in rows]
    return Subject(model, batches, nn.CrossEntropyLoss())


@broken
def a_layer_under_another_name() -> Subject:
    return training(Made(lambda m, x: m.fc(x), fc1=nn.Linear(18, 10)), TABLE, LABELS)


@broken
def forward_returns_nothing() -> Subject:
    def forward(m, x):
        m.fc(x)

    return training(Made(forward, fc=nn.Linear(18, 10)), TABLE, LABELS)


@broken
def a_weight_the_wrong_way_round() -> Subject:
    model = Made(
        lambda m, x: fn.linear(x, m.weight, m.bias), weight=nn.Parameter(torch.rand(18, 10)), bias=nn.Parameter(torch.zeros(10))
    )
    return training(model, TABLE, LABELS)  # fmt: skip


@broken
def a_kernel_for_other_channels() -> Subject:
    def forward(m, x):
        return m.fc(fn.conv2d(x, m.kernel).mean((2, 3)))

    return training(Made(forward, kernel=nn.Parameter(torch.rand(8, 1, 3, 3)), fc=nn.Linear(8, 10)), IMAGES, LABELS)


@broken
def a_product_with_a_parameter() -> Subject:
    return training(Made(lambda m, x: x @ m.weight, weight=nn.Parameter(torch.rand(12, 10))), TABLE, LABELS)


@broken
def a_shortcut_around_an_unpadded_convolution() -> Subject:
    def forward(m, x):
        h = m.one(x)
        h = h + m.two(h)
        return m.fc(h.mean((2, 3)))

    return training(Made(forward, one=nn.Conv2d(3, 8, 3), two=nn.Conv2d(8, 8, 3), fc=nn.Linear(8, 10)), IMAGES, LABELS)


@broken
def maps_of_two_sizes_are_joined() -> Subject:
    def forward(m, x):
        h = m.one(x)
        h = torch.cat([h, m.two(h)], 1)
        return m.fc(h.mean((2, 3)))

    return training(Made(forward, one=nn.Conv2d(3, 8, 3), two=nn.Conv2d(8, 8, 3), fc=nn.Linear(16, 10)), IMAGES, LABELS)


@broken
def a_dice_loss_on_class_indices() -> Subject:
    def dice(out, y):
        p = out.softmax(1)
        return 1 - (p * y).sum() / (p + y).sum()

    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, LABELS, loss=dice)


@broken
def a_loss_that_wants_weights() -> Subject:
    def weighted(out, y, weights):
        return (fn.cross_entropy(out, y, reduction="none") * weights).mean()

    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, LABELS, loss=weighted)


@broken
def the_class_of_a_loss() -> Subject:
    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), TABLE, LABELS, loss=nn.CrossEntropyLoss)


@broken
def one_class_too_few() -> Subject:
    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 9)), TABLE, LABELS)


@broken
def a_sample_of_another_length() -> Subject:
    class Ragged(Dataset):
        def __len__(self) -> int:
            return 40

        def __getitem__(self, i):
            return torch.rand(17 if i == 30 else 18), int(LABELS[i])

    return Subject(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10)), DataLoader(Ragged(), batch_size=4), nn.CrossEntropyLoss())


class Failing(Dataset):
    """At module level, so that a worker process finds it."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i):
        if i == 30:
            raise IndexError("no row 30")
        return torch.rand(18), int(LABELS[i])


@broken
def a_worker_that_raises() -> Subject:
    model = Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 10))
    return Subject(model, DataLoader(Failing(), batch_size=4, num_workers=1), nn.CrossEntropyLoss())


@broken
def three_axes_are_unpacked_from_two() -> Subject:
    def forward(m, x):
        rows, length, width = x.shape
        return m.fc(x.reshape(rows, length * width))

    return training(Made(forward, fc=nn.Linear(18, 10)), TABLE, LABELS)


@broken
def letters_of_an_einsum() -> Subject:
    def forward(m, x):
        return torch.einsum("ni,io->no", x, m.weight)

    return training(Made(forward, weight=nn.Parameter(torch.rand(12, 10))), TABLE, LABELS)


@broken
def an_axis_that_does_not_exist() -> Subject:
    return training(Made(lambda m, x: m.fc(x).log_softmax(2), fc=nn.Linear(18, 10)), TABLE, LABELS, loss=nn.NLLLoss())


@broken
def words_stand_before_classes() -> Subject:
    return training(Made(lambda m, x: m.fc(m.words(x)), words=nn.Embedding(50, 8), fc=nn.Linear(8, 50)), IDS[:, :-1], IDS[:, 1:])


@broken
def features_under_inference_mode() -> Subject:
    def forward(m, x):
        with torch.inference_mode():
            h = m.body(x)
        return m.fc(h)

    return training(Made(forward, body=nn.Linear(18, 8), fc=nn.Linear(8, 10)), TABLE, LABELS)


@broken
def a_variance_below_zero() -> Subject:
    def loss(out, y):
        return fn.gaussian_nll_loss(out[:, :1], y, out[:, 1:])

    return training(Made(lambda m, x: m.fc(x), fc=nn.Linear(18, 2)), TABLE, TABLE[:, :1], loss=loss)
