"""Linear layers follow each other with nothing between them: together they are one linear layer."""

from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import friedman, moons
from tests.material import digit_images
from tests.zoo.data import split_loaders


class Regressor(nn.Module):
    """The activation is there, but forward never calls it; dropout bends nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(10, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 1)
        self.relu = nn.ReLU()
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.drop(self.fc1(x))
        x = self.drop(self.fc2(x))
        return self.fc3(x)


def moons_without_activation() -> Subject:
    model = nn.Sequential(nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 2))
    train, validation = split_loaders(*moons())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1, momentum=0.9), validation)


def regression_with_the_activation_forgotten() -> Subject:
    model = Regressor()
    train, validation = split_loaders(*friedman())
    return Subject(model, train, nn.MSELoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)


def convolutions_in_a_row() -> Subject:
    """Mean pooling is linear too."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.AvgPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)
