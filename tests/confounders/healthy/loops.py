"""Loops with more in them than a forward, a backward and a step."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import Factors, ResidualNet, Tagger, cnn, mlp, per_position
from tests.confounders.material import colours, facts, plane, ratings, table, tagged, waves
from tests.material import cancer, digit_images, digits
from tests.zoo.data import loader, split_loaders


def accumulation_scaled_as_it_should_be() -> Loop:
    """Four parts make a step, also where an epoch ends with fewer."""
    model = cnn(channels=3)
    batches = loader(*colours(), batch_size=16)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    parts = 4

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for number, (images, labels) in enumerate(batches, start=1):
                (nn.functional.cross_entropy(model(images), labels) / parts).backward()
                if number % parts == 0 or number == len(batches):
                    optimiser.step()
                    optimiser.zero_grad()

    return Loop(model, [optimiser], run)


def tagger_clipped_at_every_step() -> Loop:
    """The limit is so low that no step goes unclipped, and the rate makes up for it."""
    model = Tagger(tags=3)
    ids, tags = tagged()
    batches = loader(ids, tags - 1)
    optimiser = optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
    norms: list[float] = []

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            for x, y in batches:
                optimiser.zero_grad()
                per_position(model(x), y).backward()
                norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.05).item())
                optimiser.step()

    return Loop(model, [optimiser], run)


def cancer_by_lbfgs() -> Loop:
    """Each step calls the closure several times."""
    x, y = cancer()
    inputs, targets = torch.as_tensor(x), torch.as_tensor(y[:, None].astype("float32"))
    model = mlp(30, 12, 1, activation=nn.Tanh)
    optimiser = optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=6)

    def closure() -> Tensor:
        optimiser.zero_grad()
        fit = nn.functional.binary_cross_entropy_with_logits(model(inputs), targets)
        loss = fit + 1e-3 * sum(p.square().sum() for p in model.parameters())
        loss.backward()
        return loss

    def run(w: object) -> None:
        model.train()
        for _ in range(120):
            optimiser.step(closure)

    return Loop(model, [optimiser], run)


def half_precision_whose_first_steps_are_skipped() -> Loop:
    """The scale starts much too high; the scaler leaves out steps until it fits."""
    model = mlp(64, 64, 10)
    batches = loader(*digits(), batch_size=64)
    optimiser = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=200)

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for x, y in batches:
                optimiser.zero_grad()
                with torch.autocast("cpu", dtype=torch.float16):
                    scores = model(x)
                loss = nn.functional.cross_entropy(scores.float(), y)
                scaler.scale(loss).backward()
                scaler.unscale_(optimiser)
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                scaler.step(optimiser)
                scaler.update()

    return Loop(model, [optimiser], run)


def bfloat16_without_a_scaler() -> Loop:
    model = mlp(20, 64, 4)
    batches = loader(*table(), batch_size=64)
    optimiser = optim.AdamW(model.parameters(), lr=5e-3)

    def run(w: object) -> None:
        model.train()
        for _ in range(28):
            for x, y in batches:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = nn.functional.cross_entropy(model(x), y)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class Fitting:
    """Validates every fifty steps in the middle of an epoch, with the mode set and set back."""

    def __init__(self, model: nn.Module, train: object, validation: object) -> None:
        self.model, self.train, self.validation = model, train, validation
        self.optimiser = optim.Adam(model.parameters(), lr=5e-3)
        self.curve: list[float] = []

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        self.model.eval()
        losses, right = [], []
        for images, labels in self.validation:
            scores = self.model(images)
            losses.append(nn.functional.cross_entropy(scores, labels).item())
            right.append((scores.argmax(1) == labels).float())
        self.model.train()
        return {"val_loss": sum(losses) / len(losses), "val_accuracy": torch.cat(right).mean().item()}

    def fit(self, w: object, epochs: int) -> None:
        self.model.train()
        for _ in range(epochs):
            for images, labels in self.train:
                self.optimiser.zero_grad()
                loss = nn.functional.cross_entropy(self.model(images), labels)
                loss.backward()
                self.optimiser.step()
                self.curve.append(loss.item())
                if len(self.curve) % 50 == 0:
                    w.log(loss=sum(self.curve[-50:]) / 50, **self.validate())


def validation_every_fifty_steps() -> Loop:
    fitting = Fitting(ResidualNet(width=8, blocks=1), *split_loaders(*digit_images(), batch_size=64))
    return Loop(fitting.model, [fitting.optimiser], lambda w: fitting.fit(w, epochs=14))


def batches_from_two_workers() -> Loop:
    x, y = (torch.as_tensor(a) for a in facts())
    data = torch.utils.data.TensorDataset(x, y)
    model = mlp(64, 48, 4)
    optimiser = optim.Adam(model.parameters(), lr=3e-3)

    def run(w: object) -> None:
        batches = torch.utils.data.DataLoader(data, 64, shuffle=True, num_workers=2, persistent_workers=True)
        model.train()
        for _ in range(16):
            for images, told in batches:
                optimiser.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(model(images), told).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)


class TwoTasks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.GRU(1, 32, batch_first=True)
        self.kind, self.energy = nn.Linear(32, 3), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        state = self.trunk(x)[0][:, -1]
        return self.kind(state), self.energy(state).squeeze(1)


def two_tasks_with_a_backward_each() -> Loop:
    """The first backward keeps the graph for the second; both add to the gradients of the trunk, and one step uses them."""
    model = TwoTasks()
    x, y = waves()
    energy = (x[:, 12:, 0] ** 2).mean(1)
    batches = loader(x, y, (energy - energy.mean()) / energy.std())
    optimiser = optim.Adam(model.parameters(), lr=5e-3)

    def run(w: object) -> None:
        model.train()
        for _ in range(12):
            for signal, kind, strength in batches:
                scores, guess = model(signal)
                optimiser.zero_grad()
                nn.functional.cross_entropy(scores, kind).backward(retain_graph=True)
                (0.3 * nn.functional.mse_loss(guess, strength)).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 2.0)
                optimiser.step()

    return Loop(model, [optimiser], run)


def gradients_with_noise_added() -> Loop:
    """Annealed noise on every gradient, as for very deep nets."""
    model = mlp(12, 48, 3, activation=nn.Tanh)
    batches = loader(*plane(), batch_size=32)
    optimiser = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def run(w: object) -> None:
        model.train()
        step = 0
        for _ in range(24):
            for x, y in batches:
                step += 1
                optimiser.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                for parameter in model.parameters():
                    parameter.grad.add_(torch.randn_like(parameter.grad), alpha=0.05 / (1 + step) ** 0.55)
                optimiser.step()

    return Loop(model, [optimiser], run)


class SparseFactors(Factors):
    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(50, 8, sparse=True)
        self.items = nn.Embedding(40, 8, sparse=True)


def ratings_with_sparse_gradients() -> Loop:
    """Rows that are not in the batch have no gradient; two optimisers share one backward."""
    model = SparseFactors()
    of_rows = optim.SparseAdam([*model.users.parameters(), *model.items.parameters()], lr=5e-3)
    of_body = optim.Adam(model.body.parameters(), lr=5e-3)
    batches = loader(*ratings())

    def run(w: object) -> None:
        model.train()
        for _ in range(16):
            for pairs, stars in batches:
                of_rows.zero_grad()
                of_body.zero_grad()
                nn.functional.mse_loss(model(pairs), stars).backward()
                of_rows.step()
                of_body.step()

    return Loop(model, [of_rows, of_body], run)
