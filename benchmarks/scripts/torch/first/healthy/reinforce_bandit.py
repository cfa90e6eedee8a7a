import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, obs=5, actions=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, actions))

    def forward(self, obs):
        return torch.distributions.Categorical(logits=self.net(obs))


class Bandit:
    def __init__(self, seed=0):
        self.w = torch.randn(5, 4, generator=torch.Generator().manual_seed(seed))

    def reward(self, obs, action):
        return ((obs @ self.w).argmax(1) == action).float()


def main():
    torch.manual_seed(0)
    env, policy = Bandit(), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
    test = torch.randn(2000, 5, generator=torch.Generator().manual_seed(1))
    baseline = 0.25
    for it in range(1, 501):
        policy.train()
        obs = torch.randn(64, 5)
        dist = policy(obs)
        action = dist.sample()
        reward = env.reward(obs, action)
        loss = -(dist.log_prob(action) * (reward - baseline)).mean() - 0.005 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        baseline = 0.95 * baseline + 0.05 * reward.mean().item()
        if it % 100 == 0:
            policy.eval()
            with torch.no_grad():
                greedy = env.reward(test, policy(test).logits.argmax(1)).mean().item()
            print(f"iter {it}: mean reward {baseline:.3f} greedy {greedy:.3f}")


if __name__ == "__main__":
    main()
