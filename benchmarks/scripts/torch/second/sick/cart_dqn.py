"""DQN that learns to park a cart at the origin."""

import copy
import random
from collections import deque

import torch
import torch.nn as nn

random.seed(1)
torch.manual_seed(1)
torch.set_num_threads(1)


class Cart:
    """Position and speed on a line; push left, coast or push right."""

    def reset(self):
        self.x = random.uniform(-1, 1)
        self.v = random.uniform(-0.3, 0.3)
        self.t = 0
        return (self.x, self.v)

    def step(self, action):
        self.v = 0.95 * self.v + 0.08 * (action - 1)
        self.x += self.v
        self.t += 1
        reward = -min(abs(self.x), 2.0) - 0.1 * abs(action - 1)
        fell_off = abs(self.x) > 2.0
        return (self.x, self.v), (-5.0 if fell_off else reward), fell_off, self.t >= 40


class QNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 3)
        )

    def forward(self, obs):
        return self.layers(obs)


class ReplayBuffer:
    def __init__(self, capacity=10_000):
        self.items = deque(maxlen=capacity)

    def push(self, *item):
        self.items.append(item)

    def sample(self, n):
        obs, actions, rewards, nxt, done = zip(*random.sample(self.items, n))
        return (
            torch.tensor(obs),
            torch.tensor(actions),
            torch.tensor(rewards),
            torch.tensor(nxt),
            torch.tensor(done, dtype=torch.float32),
        )

    def __len__(self):
        return len(self.items)


def learn(q_net, target_net, optimizer, buffer, batch_size=64, gamma=0.9):
    obs, actions, rewards, nxt, done = buffer.sample(batch_size)
    q = q_net(obs).gather(1, actions.unsqueeze(1))
    with torch.no_grad():
        best_next = target_net(nxt).max(dim=1).values
        target = rewards + gamma * (1 - done) * best_next
    loss = (q - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
    optimizer.step()
    return loss.item()


def play(q_net, episodes=20):
    env, total = Cart(), 0.0
    for _ in range(episodes):
        obs, done = env.reset(), False
        while not done:
            with torch.no_grad():
                action = q_net(torch.tensor(obs)).argmax().item()
            obs, reward, fell, ended = env.step(action)
            done = fell or ended
            total += reward
    return total / episodes


env = Cart()
q_net = QNet()
target_net = copy.deepcopy(q_net)
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)
buffer = ReplayBuffer()
losses, steps = [], 0

for episode in range(1, 91):
    obs, done = env.reset(), False
    epsilon = max(0.05, 1.0 - episode / 50)
    while not done:
        if random.random() < epsilon:
            action = random.randrange(3)
        else:
            with torch.no_grad():
                action = q_net(torch.tensor(obs)).argmax().item()
        nxt, reward, fell, ended = env.step(action)
        buffer.push(obs, action, reward, nxt, fell)
        obs, done = nxt, fell or ended
        steps += 1
        if len(buffer) >= 200:
            losses.append(learn(q_net, target_net, optimizer, buffer))
        if steps % 200 == 0:
            target_net.load_state_dict(q_net.state_dict())
    if episode % 15 == 0:
        print(f"episode {episode}: td loss {sum(losses[-200:]) / 200:.4f}  greedy return {play(q_net):.2f}")
