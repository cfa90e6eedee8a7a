"""A loss that wants log-probabilities (or probabilities) is given raw scores, or probabilities without their logarithm."""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Tagger, cnn
from tests.confounders.material import facts, tagged
from tests.material import digit_images
from tests.zoo.data import split_loaders


class ProbableTagger(Tagger):
    """Gives plain probabilities."""

    def forward(self, ids: Tensor) -> Tensor:
        return F.softmax(super().forward(ids), dim=-1)


def tag_loss(output: Tensor, tags: Tensor) -> Tensor:
    return F.nll_loss(output.transpose(1, 2), tags)


def cnn_scores_into_nll() -> Subject:
    model = cnn()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.NLLLoss(), optim.SGD(model.parameters(), lr=0.02, momentum=0.9), validation)


def tagger_probabilities_into_nll() -> Subject:
    model = ProbableTagger()
    x, y = tagged()
    train, validation = split_loaders(x, y)
    return Subject(model, train, tag_loss, optim.Adam(model.parameters(), lr=3e-3), validation)


def multi_label_scores_into_bce() -> Subject:
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4))
    train, validation = split_loaders(*facts())
    return Subject(model, train, nn.BCELoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
