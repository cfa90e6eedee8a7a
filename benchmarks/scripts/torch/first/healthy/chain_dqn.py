import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)
N, GAMMA = 8, 0.9


def env_step(s, a):
    s2 = min(N - 1, s + 1) if a == 1 else max(0, s - 1)
    done = s2 == N - 1
    return s2, float(done), done


def encode(states):
    return F.one_hot(torch.as_tensor(states), N).float()


q = nn.Sequential(nn.Linear(N, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(q)
optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
buffer = deque(maxlen=3000)

s, episode_len, lengths = random.randrange(N - 1), 0, []
for step in range(1, 3001):
    eps = max(0.1, 1.0 - step / 1500)
    with torch.no_grad():
        a = random.randrange(2) if random.random() < eps else int(q(encode([s])).argmax())
    s2, r, done = env_step(s, a)
    buffer.append((s, a, r, s2, done))
    episode_len += 1
    if done or episode_len >= 60:
        lengths.append(episode_len)
        s, episode_len = random.randrange(N - 1), 0
    else:
        s = s2
    if len(buffer) < 200:
        continue
    batch = random.sample(buffer, 32)
    bs, ba, br, bs2, bd = (torch.tensor(col) for col in zip(*batch, strict=True))
    with torch.no_grad():
        goal = br + GAMMA * (1 - bd.float()) * target(encode(bs2)).max(1).values
    value = q(encode(bs)).gather(1, ba.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        target.load_state_dict(q.state_dict())
    if step % 500 == 0:
        print(f"step {step} loss {loss.item():.5f} mean length {sum(lengths[-20:]) / max(1, len(lengths[-20:])):.1f}")
with torch.no_grad():
    print("greedy policy:", q(encode(list(range(N - 1)))).argmax(1).tolist())
