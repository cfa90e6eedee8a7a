import torch
import torch.nn as nn
import torch.nn.functional as F


class ActorCritic(nn.Module):
    def __init__(self, obs=4, actions=3, hidden=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.shared(obs)
        return self.actor(h), self.critic(h).squeeze(-1)


def reward_of(obs, action):
    best = (obs[:, 0] > 0).long() + (obs[:, 1] > 0.5).long()
    return (action == best).float() * 2 - 1


def main():
    torch.manual_seed(0)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    test_obs = torch.randn(2000, 4, generator=torch.Generator().manual_seed(1))
    for it in range(1, 401):
        net.train()
        obs = torch.randn(64, 4)
        logits, value = net(obs)
        dist = torch.distributions.Categorical(logits=logits)
        action = dist.sample()
        reward = reward_of(obs, action)
        advantage = (reward - value).detach()
        actor_loss = -(dist.log_prob(action) * advantage).mean() - 0.01 * dist.entropy().mean()
        critic_loss = F.mse_loss(value, reward)
        optimizer.zero_grad()
        actor_loss.backward()
        critic_loss.backward()
        optimizer.step()
        if it % 50 == 0:
            net.eval()
            with torch.no_grad():
                greedy = net(test_obs)[0].argmax(1)
            score = reward_of(test_obs, greedy).mean().item()
            print(f"iter {it} reward {reward.mean().item():+.3f} greedy {score:+.3f}")


if __name__ == "__main__":
    main()
