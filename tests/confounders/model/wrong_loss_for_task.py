"""The loss belongs to another kind of task than the targets do."""

import torch.nn.functional as F  # noqa: N812
from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive, autoencoder, cnn
from tests.confounders.material import windows
from tests.material import digit_images, wine
from tests.zoo.data import split_loaders


def cnn_regressing_class_numbers() -> Subject:
    """Which digit it is, learned as if a seven were more than a six."""
    model = cnn(classes=1)
    x, y = digit_images()
    train, validation = split_loaders(x, y[:, None].astype("float32"))
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def transformer_with_cross_entropy_on_a_curve() -> Subject:
    """Five future values, real and of both signs, taken for the probabilities of five classes."""
    model = Attentive(features=5, length=3, outputs=5)
    x, _ = windows()
    train, validation = split_loaders(x[:, :15].reshape(-1, 3, 5), x[:, 15:, 0])
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=1e-3), validation)


def autoencoder_with_binary_loss() -> Subject:
    """Standardised columns are no probabilities: binary cross-entropy has no floor on them."""
    model = autoencoder(width=13, code=6)
    x, _ = wine()
    train, validation = split_loaders(x, x)
    return Subject(model, train, F.binary_cross_entropy_with_logits, optim.SGD(model.parameters(), lr=0.05), validation)
