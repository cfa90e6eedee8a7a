"""PPO: a point on a plane learns to go to a goal. Many environments at once, continuous actions."""

import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(7)
torch.set_num_threads(1)

N_ENVS, HORIZON, UPDATES = 32, 32, 50
GAMMA, LAMBDA, CLIP = 0.97, 0.95, 0.2


class PointEnv:
    def __init__(self, n):
        self.n = n
        self.limit = 32

    def reset(self, where=None):
        if where is None:
            self.pos, self.goal = torch.rand(self.n, 2) * 2 - 1, torch.rand(self.n, 2) * 2 - 1
            self.t = torch.randint(0, self.limit, (self.n,))
        else:
            k = int(where.sum())
            self.pos[where], self.goal[where] = torch.rand(k, 2) * 2 - 1, torch.rand(k, 2) * 2 - 1
            self.t[where] = 0
        return self.observe()

    def observe(self):
        return torch.cat([self.pos, self.goal - self.pos], dim=1)

    def step(self, action):
        self.pos = (self.pos + 0.15 * action.clamp(-1, 1)).clamp(-1.5, 1.5)
        self.t += 1
        reward = -(self.goal - self.pos).norm(dim=1)
        done = self.t >= self.limit
        if done.any():
            self.reset(done)
        return self.observe(), reward, done.float()


def layer(n_in, n_out, std=2**0.5):
    linear = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(linear.weight, std)
    nn.init.zeros_(linear.bias)
    return linear


class Agent(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.actor = nn.Sequential(
            layer(4, hidden), nn.Tanh(), layer(hidden, hidden), nn.Tanh(), layer(hidden, 2, 0.01)
        )
        self.critic = nn.Sequential(
            layer(4, hidden), nn.Tanh(), layer(hidden, hidden), nn.Tanh(), layer(hidden, 1, 1.0)
        )
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)

    def act(self, obs, action=None):
        dist = Normal(self.actor(obs), self.log_std.exp())
        if action is None:
            action = dist.sample()
        return action, dist.log_prob(action).sum(-1), dist.entropy().sum(-1)


env, agent = PointEnv(N_ENVS), Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
obs = env.reset()
for update in range(1, UPDATES + 1):
    optimizer.param_groups[0]["lr"] = 1e-3 * (1 - (update - 1) / UPDATES)
    store = {k: [] for k in ("obs", "act", "logp", "rew", "done", "val")}
    for _ in range(HORIZON):
        with torch.no_grad():
            action, logp, _ = agent.act(obs)
            value = agent.value(obs)
        nxt, reward, done = env.step(action)
        for k, v in zip(store, (obs, action, logp, reward, done, value)):
            store[k].append(v)
        obs = nxt
    data = {k: torch.stack(v) for k, v in store.items()}

    with torch.no_grad():
        next_value, running = agent.value(obs), torch.zeros(N_ENVS)
        advantages = torch.zeros(HORIZON, N_ENVS)
        for t in reversed(range(HORIZON)):
            alive = 1 - data["done"][t]
            delta = data["rew"][t] + GAMMA * alive * next_value - data["val"][t]
            running = delta + GAMMA * LAMBDA * alive * running
            advantages[t], next_value = running, data["val"][t]
    returns = (advantages + data["val"]).flatten()
    advantages = advantages.flatten()
    b_obs, b_act, b_logp = data["obs"].flatten(0, 1), data["act"].flatten(0, 1), data["logp"].flatten()

    for _ in range(6):
        for idx in torch.randperm(len(b_obs)).split(256):
            _, logp, entropy = agent.act(b_obs[idx], b_act[idx])
            ratio = (logp - b_logp[idx]).exp()
            adv = (advantages[idx] - advantages[idx].mean()) / (advantages[idx].std() + 1e-8)
            policy_loss = -torch.min(adv * ratio, adv * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
            value_loss = 0.5 * (agent.value(b_obs[idx]) - returns[idx]).pow(2).mean()
            loss = policy_loss + 0.5 * value_loss - 0.001 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    if update % 10 == 0:
        print(f"update {update}: mean reward {data['rew'].mean():.3f}  value loss {value_loss.item():.3f}")
