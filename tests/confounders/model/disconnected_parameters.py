"""Some parameters have no path to the loss: the graph is cut on the way, or a branch is computed and dropped."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import waves
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


class Detached(nn.Module):
    """The features were detached for a plot, and stayed so."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.classifier = nn.Linear(16 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.conv1(x))
        h = h + torch.relu(self.conv2(h))
        features = h.detach()
        return self.classifier(nn.functional.adaptive_avg_pool2d(features, 2).flatten(1))


class TwoReaders(nn.Module):
    """The backward reader runs, but a slip of the index gives the head the forward reader's answer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.forwards = nn.GRU(1, 24, batch_first=True)
        self.backwards = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(48, 3)

    def forward(self, x: Tensor) -> Tensor:
        last = [self.forwards(x)[1][-1], self.backwards(x.flip(1))[1][-1]]
        return self.head(torch.cat([last[0], last[0]], dim=1))


class Quantised(nn.Module):
    """A code book chosen by argmax, without a straight-through path: the encoder never hears of the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 8 * 16))
        self.codes = nn.Embedding(16, 4)
        self.decoder = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.encoder(x).view(-1, 8, 16).argmax(dim=-1)
        return self.decoder(self.codes(chosen).flatten(1))


def cnn_with_detached_features() -> Subject:
    model = Detached()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def gru_with_a_branch_left_out() -> Subject:
    model = TwoReaders()
    train, validation = split_loaders(*waves())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def autoencoder_cut_by_argmax() -> Subject:
    model = Quantised()
    x, _ = digits()
    train, validation = split_loaders(x, x)
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
