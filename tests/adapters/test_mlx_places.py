"""Lines of the user's that findings in MLX name."""

import mlx.core as mx
import mlx.nn as nn

from sleuth import Subject
from sleuth.core.finding import Finding
from tests.checks.looking import BASIS, look_with
from tests.kits.mlx_kit import MlxKit
from tests.twins.mlx.future_leaks import LETTERS, windows


class Reader(nn.Module):
    def __init__(self, smooth: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 16)
        self.attention = nn.MultiHeadAttention(16, 2)
        self.smooth = nn.Conv1d(16, 16, 3, padding=1) if smooth else None
        self.out = nn.Linear(16, len(LETTERS))

    def __call__(self, ids: mx.array) -> mx.array:
        x = self.embedding(ids)
        x = x + self.attention(x, x, x)  # sees everything
        return self.out(nn.gelu(x if self.smooth is None else self.smooth(x)))


def leak(model: nn.Module) -> Finding:
    kit = MlxKit()
    subject = Subject(model, kit.loader(*windows()), kit.loss("cross-entropy"))
    (found,) = look_with({*BASIS, "causality", "flowing"}, subject, "future-leaks").findings
    return found


def test_a_leak_has_the_line_of_the_only_layer_where_positions_meet() -> None:
    found = leak(Reader())
    assert found.location is not None
    assert found.location.text.endswith("# sees everything")


def test_of_two_places_where_positions_meet_none_is_blamed() -> None:
    assert leak(Reader(smooth=True)).location is None
