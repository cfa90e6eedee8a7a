import torch
from torch import nn


class LeakyUnits(nn.Module):
    """Leaky integrators with a linear drive and a read-out."""

    def __init__(self, n_in, n_units, n_out):
        super().__init__()
        self.drive = nn.Linear(n_in, n_units)
        self.register_buffer("decay", torch.linspace(0.3, 0.95, n_units))
        self.readout = nn.Linear(n_units, n_out)

    def forward(self, x, state):
        states = []
        for t in range(x.shape[1]):
            state = self.decay * state + (1 - self.decay) * self.drive(x[:, t])
            states.append(state)
        states = torch.stack(states, dim=1)
        return self.readout(torch.tanh(states)), state


def smooth_target(x, a=0.8):
    out, s = [], torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        s = a * s + (1 - a) * x[:, t]
        out.append(s)
    return torch.stack(out, 1) * 3


def main():
    torch.manual_seed(7)
    x = torch.randn(24, 1500, 2)
    y = smooth_target(x)
    x_train, y_train, x_val, y_val = x[:16], y[:16], x[16:, :200], y[16:, :200]
    model = LeakyUnits(2, 24, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.MSELoss()
    state = torch.zeros(16, 24)
    for chunk, start in enumerate(range(0, 1500, 10)):
        model.train()
        optimizer.zero_grad()
        pred, state = model(x_train[:, start : start + 10], state)
        loss = loss_fn(pred, y_train[:, start : start + 10])
        loss.backward(retain_graph=True)
        optimizer.step()
        if chunk % 25 == 24:
            model.eval()
            with torch.no_grad():
                val = loss_fn(model(x_val, torch.zeros(8, 24))[0], y_val).item()
            print(f"chunk {chunk + 1}: train {loss.item():.4f} val {val:.4f}")


if __name__ == "__main__":
    main()
