"""Actor-critic on a small grid: reach the goal, keep out of the pits."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

random.seed(5)
torch.manual_seed(5)
torch.set_num_threads(1)


class Grid:
    MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]

    def __init__(self, size=5):
        self.size = size
        self.goal = (size - 1, size - 1)
        self.pits = {(1, 3), (3, 1)}

    def reset(self):
        free = [(r, c) for r in range(self.size) for c in range(self.size)]
        self.pos = random.choice([p for p in free if p != self.goal and p not in self.pits])
        self.t = 0
        return self.observe()

    def observe(self):
        obs = torch.zeros(2 * self.size)
        obs[self.pos[0]] = 1.0
        obs[self.size + self.pos[1]] = 1.0
        return obs

    def step(self, action):
        dr, dc = self.MOVES[action]
        row = min(max(self.pos[0] + dr, 0), self.size - 1)
        col = min(max(self.pos[1] + dc, 0), self.size - 1)
        self.pos = (row, col)
        self.t += 1
        if self.pos == self.goal:
            return self.observe(), 1.0, True
        if self.pos in self.pits:
            return self.observe(), -1.0, True
        return self.observe(), -0.02, self.t >= 30


class ActorCritic(nn.Module):
    def __init__(self, n_obs, n_actions, hidden=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(n_obs, hidden), nn.Tanh(), nn.Linear(hidden, n_actions))
        self.critic = nn.Sequential(nn.Linear(n_obs, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


def run_episode(env, model):
    log_probs, values, rewards, entropies = [], [], [], []
    obs, done = env.reset(), False
    while not done:
        dist, value = model(obs)
        action = dist.sample()
        obs, reward, done = env.step(action.item())
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        values.append(value.item())
        rewards.append(reward)
    return log_probs, values, rewards, entropies


def discounted(rewards, gamma=0.97):
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        returns.insert(0, g)
    return torch.tensor(returns)


def main(updates=250, episodes_per_update=6):
    env = Grid()
    model = ActorCritic(2 * env.size, len(Grid.MOVES))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    recent = []
    for update in range(1, updates + 1):
        policy_loss, value_loss, entropy = 0.0, 0.0, 0.0
        for _ in range(episodes_per_update):
            log_probs, values, rewards, entropies = run_episode(env, model)
            returns = discounted(rewards)
            values = torch.as_tensor(values) if not torch.is_tensor(values[0]) else torch.stack(values)
            advantage = returns - values.detach()
            policy_loss = policy_loss - (torch.stack(log_probs) * advantage).mean()
            value_loss = value_loss + F.mse_loss(values, returns)
            entropy = entropy + torch.stack(entropies).mean()
            recent.append(sum(rewards))
        loss = (policy_loss + 0.5 * value_loss - 0.01 * entropy) / episodes_per_update
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 50 == 0:
            mean = sum(recent[-200:]) / len(recent[-200:])
            print(
                f"update {update}: return {mean:.3f}  policy {policy_loss.item() / episodes_per_update:.4f}"
                f"  value {value_loss.item() / episodes_per_update:.4f}"
            )


if __name__ == "__main__":
    main()
