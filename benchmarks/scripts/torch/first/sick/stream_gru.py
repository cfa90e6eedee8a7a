import torch
import torch.nn as nn

torch.manual_seed(2)
T, B = 1200, 16
time = torch.arange(T).float()
speed = 0.1 + 0.2 * torch.rand(B, 1)
phase = 6.28 * torch.rand(B, 1)
waves = torch.sin(speed * time + phase) * 1.4 + 0.05 * torch.randn(B, T)
train_waves, val_waves = waves[:, :1000], waves[:, 1000:]


class WaveRNN(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x, h=None):
        out, h = self.gru(x, h)
        return self.fc(out), h


model = WaveRNN()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
mse = nn.MSELoss()
chunk = 40

for epoch in range(12):
    model.train()
    hidden = None
    total, n = 0.0, 0
    for s in range(0, 1000 - chunk, chunk):
        x = train_waves[:, s : s + chunk].unsqueeze(-1)
        y = train_waves[:, s + 1 : s + chunk + 1].unsqueeze(-1)
        opt.zero_grad()
        pred, new_hidden = model(x, hidden)
        loss = mse(pred, y)
        loss.backward()
        opt.step()
        hidden = new_hidden
        total, n = total + loss.item(), n + 1
    model.eval()
    with torch.no_grad():
        v, _ = model(val_waves[:, :-1].unsqueeze(-1))
        val = mse(v, val_waves[:, 1:].unsqueeze(-1)).item()
    print(f"epoch {epoch}: train {total / n:.4f} val {val:.4f}")
