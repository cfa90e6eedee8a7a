"""Draws the pictures of the pages: python docs/pictures.py [NAME …] writes docs/pictures/NAME.png or .svg from real trainings."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import sleuth

FOLDER = Path(__file__).parent / "pictures"
PICTURES: dict[str, Callable[[], Any]] = {}


def picture(draw: Callable[[], Any]) -> Callable[[], Any]:
    """The function's name is the picture's. It returns what an instrument returned."""
    PICTURES[draw.__name__] = draw
    return draw


def digits() -> DataLoader[Any]:
    data = load_digits()
    images = torch.as_tensor(data.images / 16, dtype=torch.float32)[:, None]
    labels = torch.as_tensor(data.target)
    return DataLoader(TensorDataset(images, labels), 64, shuffle=True, generator=torch.Generator().manual_seed(0))


def convnet() -> nn.Sequential:
    torch.manual_seed(0)
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))


def trained(model: nn.Module, passes: int = 3) -> dict[str, Any]:
    """What an instrument is given beside the model and its data."""
    criterion, optimiser = nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(passes):
        for x, y in digits():
            optimiser.zero_grad()
            criterion(model(x), y).backward()
            optimiser.step()
    return {"loss": criterion, "optimizer": optimiser}


@picture
def gradients() -> Any:
    """Ten sigmoid layers: the first ones hear nothing of the loss."""
    torch.manual_seed(0)
    hidden = [layer for _ in range(9) for layer in (nn.Linear(64, 64), nn.Sigmoid())]
    model = nn.Sequential(nn.Flatten(), *hidden, nn.Linear(64, 10))
    return sleuth.gradients(model, digits(), loss=nn.CrossEntropyLoss())


@picture
def gradcheck() -> Any:
    model = convnet()
    return sleuth.gradcheck(model, digits(), loss=nn.CrossEntropyLoss())


@picture
def weights() -> Any:
    model = convnet()
    trained(model)
    return sleuth.weights(model)


@picture
def activations() -> Any:
    model = convnet()
    return sleuth.activations(model, digits(), **trained(model))


@picture
def dead_units() -> Any:
    """A step that was far too large."""
    model = convnet()
    given = trained(model, passes=1)
    for group in given["optimizer"].param_groups:
        group["lr"] = 0.3
    x, y = next(iter(digits()))
    given["loss"](model(x), y).backward()
    given["optimizer"].step()
    return sleuth.dead_units(model, digits())


@picture
def find_lr() -> Any:
    model = convnet()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    return sleuth.find_lr(model, digits(), loss=nn.CrossEntropyLoss(), optimizer=optimiser)


@picture
def landscape() -> Any:
    model = convnet()
    return sleuth.landscape(model, digits(), **trained(model), points=25, batches=2)


@picture
def overfit_batch() -> Any:
    model = convnet()
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)
    return sleuth.overfit_batch(model, digits(), loss=nn.CrossEntropyLoss(), optimizer=optimiser)


@picture
def profile() -> Any:
    model = convnet()
    return sleuth.profile(model, digits(), **trained(model, passes=1))


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(x + self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x))))))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.body = nn.Sequential(*[Block(16) for _ in range(4)])
        self.head = nn.Linear(16, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(image)).mean(dim=(2, 3)))


class Rows(nn.Module):
    """Reads a digit row by row, with attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, 32)
        self.places = nn.Parameter(torch.randn(8, 32) * 0.1)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
        self.head = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(image[:, 0]) + self.places).mean(dim=1))


@picture
def summary() -> Any:
    torch.manual_seed(0)
    return sleuth.summary(Residual(), digits(), time=True)


@picture
def graph() -> Any:
    return sleuth.graph(Residual(), digits())


@picture
def graph_of_a_transformer() -> Any:
    return sleuth.graph(nn.Transformer(32, 4, 6, 6, 64, batch_first=True), ((2, 9, 32), (2, 7, 32)))


@picture
def trace() -> Any:
    """The linear layer was built for another image size."""
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
    return sleuth.trace(model, digits())


@picture
def health() -> Any:
    """Gradients of a deep network in half precision: most of them are lost."""
    torch.manual_seed(0)
    return sleuth.health((torch.randn(20_000) * 2e-7).half(), "gradient in float16")


@picture
def show_batch() -> Any:
    return sleuth.show_batch(digits())


@picture
def filters() -> Any:
    model = convnet()
    trained(model)
    return sleuth.filters(model)


@picture
def feature_maps() -> Any:
    model = convnet()
    trained(model)
    return sleuth.feature_maps(model, digits())


@picture
def gradcam() -> Any:
    torch.manual_seed(0)
    model = Residual()
    trained(model)
    x, _ = next(iter(digits()))
    return sleuth.gradcam(model, x[:3], "body.0")


@picture
def attention() -> Any:
    torch.manual_seed(0)
    model = Rows()
    trained(model, passes=8)
    x, _ = next(iter(digits()))
    return sleuth.attention(model, x[:1], tokens=[f"row {i}" for i in range(8)])


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in names or PICTURES:
        print(_write(name, PICTURES[name]()))


def _write(name: str, result: Any) -> Path:
    """A graph is lines and letters: SVG; anything else a picture of points."""
    file = FOLDER / f"{name}.{'svg' if hasattr(result, 'svg') else 'png'}"
    if hasattr(result, "svg"):
        result.save(file)
    else:
        result.plot().savefig(file, dpi=90)
    return file


if __name__ == "__main__":
    main(sys.argv[1:])
