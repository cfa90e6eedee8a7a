import torch
from torch import nn

N_CATEGORIES = 8
PROTOTYPES = torch.randn(N_CATEGORIES + 1, 16, generator=torch.Generator().manual_seed(0))


class Categoriser(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, 48), nn.ReLU())
        self.head = nn.Linear(48, n_out)

    def forward(self, x):
        return self.head(self.trunk(x))


def shop_stream(n_batches, batch_size, seed):
    g = torch.Generator().manual_seed(seed)
    for b in range(n_batches):
        categories = N_CATEGORIES + (b >= 2600)
        y = torch.randint(0, categories, (batch_size,), generator=g)
        x = PROTOTYPES[y] + torch.randn(batch_size, 16, generator=g)
        yield x / 1.4, y


class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.val = list(shop_stream(10, 100, seed=77))

    def learn(self, stream):
        for step, (x, y) in enumerate(stream, start=1):
            self.model.train()
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            if step % 200 == 0:
                print(f"step {step}: loss {loss.item():.3f} val acc {self.accuracy():.3f}", flush=True)

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        return sum((self.model(x).argmax(1) == y).float().mean().item() for x, y in self.val) / len(self.val)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Categoriser(n_in=16, n_out=N_CATEGORIES)
    Learner(model).learn(shop_stream(3200, 32, seed=1))
