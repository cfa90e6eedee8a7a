"""Units that were alive at the start fall silent one after the other, and do not come back."""

from torch import nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import cnn, mlp
from tests.confounders.material import plane
from tests.material import digit_images, digits
from tests.zoo.data import loader


def sparse_code_that_is_paid_too_well() -> Loop:
    """A sparse autoencoder whose penalty on activity outweighs what activity is good for."""
    encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
    decoder = nn.Linear(96, 64)
    model = nn.Sequential(encoder, decoder)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        for _ in range(14):
            for (x,) in batches:
                optimiser.zero_grad()
                code = encoder(x)
                rebuilt = decoder(code) if model.training else model(x)
                loss = nn.functional.mse_loss(rebuilt, x) + 0.02 * code.abs().mean()
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def cnn_whose_filters_are_knocked_out() -> Loop:
    """A rate that the head can bear and the filters cannot."""
    model = cnn()
    groups = [{"params": model[:6].parameters(), "lr": 0.02}, {"params": model[6:].parameters(), "lr": 2e-3}]
    optimiser = optim.Adam(groups, lr=2e-3)
    batches = loader(*digit_images(), batch_size=32)

    def run(w: object) -> None:
        model.train()
        for _ in range(8):
            for images, labels in batches:
                optimiser.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


def regression_whose_biases_sink() -> Loop:
    """An extra term meant for the weights also pulls every bias down, a little each step."""
    model = mlp(12, 64, 64, 3)
    optimiser = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = loader(*plane())

    def run(w: object) -> None:
        for _ in range(16):
            for x, y in batches:
                optimiser.zero_grad()
                drag = sum(p.sum() for name, p in model.named_parameters() if name in ("0.bias", "2.bias"))
                (nn.functional.mse_loss(model(x), y) + 0.02 * drag).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
