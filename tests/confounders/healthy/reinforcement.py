"""Policies: the loss is a product of advantages and logarithms, noisy, of either sign, and says nothing about progress."""

import torch
from torch import Tensor, nn, optim
from torch.distributions import Categorical

from sleuth.testing import Loop
from tests.confounders.bodies import mlp


def bandit_with_a_context() -> Loop:
    """REINFORCE with a running mean as the baseline."""
    tastes = torch.randn(5, 6)
    model = mlp(6, 32, 5)
    optimiser = optim.Adam(model.parameters(), lr=5e-3)

    def run(w: object) -> None:
        model.train()
        baseline = 0.0
        for step in range(600):
            visitors = torch.randn(64, 6)
            choice = Categorical(logits=model(visitors))
            shown = choice.sample()
            reward = (visitors * tastes[shown]).sum(1) + 0.5 * torch.randn(64)
            loss = -((reward - baseline) * choice.log_prob(shown)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            baseline += 0.05 * (reward.mean().item() - baseline)
            if step % 20 == 19:
                w.log(reward=reward.mean().item())

    return Loop(model, [optimiser], run)


class Poles:
    """Many poles on carts at once, pushed left or right; one that leans too far is set upright again."""

    def __init__(self, count: int) -> None:
        self.state = 0.05 * torch.randn(count, 4)

    def push(self, action: Tensor) -> tuple[Tensor, Tensor]:
        place, speed, lean, spin = self.state.unbind(1)
        force = torch.where(action == 1, 10.0, -10.0)
        pull = (force + 0.05 * spin.square() * lean.sin()) / 1.1
        turn = (9.8 * lean.sin() - lean.cos() * pull) / (0.5 * (4 / 3 - 0.1 * lean.cos().square() / 1.1))
        rush = pull - 0.05 * turn * lean.cos() / 1.1
        self.state = torch.stack([place + 0.02 * speed, speed + 0.02 * rush, lean + 0.02 * spin, spin + 0.02 * turn], dim=1)
        fallen = (self.state[:, 2].abs() > 0.21) | (self.state[:, 0].abs() > 2.4)
        self.state = torch.where(fallen[:, None], 0.05 * torch.randn_like(self.state), self.state)
        return self.state, fallen


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, state: Tensor) -> tuple[Categorical, Tensor]:
        hidden = self.body(state * torch.tensor([1.0, 1.0, 5.0, 1.0]))
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def poles_with_a_critic() -> Loop:
    """The critic's error grows with the returns: the better the policy, the larger the loss."""
    model = ActorCritic()
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    poles = Poles(32)

    def rollout(length: int = 12) -> tuple[Tensor, Tensor, Tensor, float]:
        logs, values, falls, entropy = [], [], [], 0.0
        state = poles.state
        for _ in range(length):
            choice, value = model(state)
            action = choice.sample()
            logs.append(choice.log_prob(action))
            values.append(value)
            entropy = entropy + choice.entropy().mean() / length
            state, fallen = poles.push(action)
            falls.append(fallen.float())
        with torch.no_grad():
            following, returns = model(state)[1], []
            for fallen in reversed(falls):
                following = (1 - fallen) * (0.1 + 0.97 * following)
                returns.append(following)
        return torch.stack(logs), torch.stack(values), torch.stack(returns[::-1]), entropy

    def run(w: object) -> None:
        model.train()
        for _ in range(200):
            logs, values, returns, entropy = rollout()
            advantage = returns - values
            actor = -(advantage.detach() * logs).mean()
            loss = actor + 0.5 * advantage.square().mean() - 0.01 * entropy
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            w.log(reward=returns.mean().item())

    return Loop(model, [optimiser], run)
