"""Parameters that should learn have been told not to."""

from torch import nn, optim

from sleuth import Subject
from tests.confounders.bodies import Attentive, ResidualNet, Tagger, per_position
from tests.confounders.material import colours, tagged
from tests.material import digits
from tests.zoo.data import split_loaders


def tagger_frozen_altogether() -> Subject:
    """Frozen for a pretrained start that never came, and never thawed."""
    model = Tagger()
    for parameter in model.parameters():
        parameter.requires_grad = False
    train, validation = split_loaders(*tagged())
    return Subject(model, train, per_position, optim.Adam(model.parameters(), lr=3e-3), validation)


def residual_net_with_the_wrong_half_frozen() -> Subject:
    """The blocks were to be frozen; the condition is inverted and freezes the new stem and head."""
    model = ResidualNet(channels=3)
    for name, parameter in model.named_parameters():
        if "blocks" not in name:
            parameter.requires_grad_(False)
    trainable = [p for p in model.parameters() if p.requires_grad]
    train, validation = split_loaders(*colours())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(trainable, lr=0.05, momentum=0.9), validation)


def transformer_with_a_frozen_new_trunk() -> Subject:
    """The trunk was frozen as if it had been trained before; its weights are as random as on the first day."""
    model = Attentive(features=8, length=8, outputs=10)
    model.embed.requires_grad_(False)
    model.encoder.requires_grad_(False)
    model.positions.requires_grad = False
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    optimiser = optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
    return Subject(model, train, nn.CrossEntropyLoss(), optimiser, validation)
