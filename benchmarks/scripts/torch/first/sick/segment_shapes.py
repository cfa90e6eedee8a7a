import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Grey 16x16 images with a disc or a square whose rim is a class of its own."""

    def __init__(self, n, seed):
        self.n, self.seed = n, seed
        yy, xx = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
        self.yy, self.xx = yy.float(), xx.float()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100_000 + i)
        cy, cx = (torch.rand(2, generator=g) * 6 + 5).tolist()
        r = 3 + 1.5 * torch.rand(1, generator=g).item()
        disc = torch.rand(1, generator=g).item() < 0.5
        if disc:
            d = ((self.yy - cy) ** 2 + (self.xx - cx) ** 2).sqrt()
        else:
            d = torch.maximum((self.yy - cy).abs(), (self.xx - cx).abs())
        mask = torch.zeros(16, 16, dtype=torch.long)
        mask[d < r] = 1 if disc else 2
        mask[(d >= r - 1) & (d < r)] = 3
        image = (mask > 0).float() + (mask == 3).float() - 0.4 + 0.2 * torch.randn(16, 16, generator=g)
        return image.unsqueeze(0), mask


model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 5, padding=2),
    nn.ReLU(),
    nn.Conv2d(16, 16, 5, padding=2),
    nn.ReLU(),
    nn.Conv2d(16, 3, 1),
)
torch.manual_seed(0)
train_loader = DataLoader(Shapes(400, 1), batch_size=20, shuffle=True)
val_loader = DataLoader(Shapes(100, 2), batch_size=50)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for image, mask in train_loader:
        loss = nn.functional.cross_entropy(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accs = [(model(image).argmax(1) == mask).float().mean().item() for image, mask in val_loader]
    print(f"epoch {epoch + 1} loss {loss.item():.4f} pixel accuracy {sum(accs) / len(accs):.4f}")
