"""Deep Q-learning on a 5 x 5 grid with a wall: replay buffer, slowly following target net, falling epsilon."""
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

SIZE, GOAL, WALL = 5, (4, 4), {(1, 2), (2, 2), (3, 2)}
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
GAMMA, LIMIT = 0.95, 40


def observe(cell):
    v = np.zeros(2 * SIZE, np.float32)
    v[cell[0]] = v[SIZE + cell[1]] = 1.0
    return v


def act(cell, action):
    new = (cell[0] + MOVES[action][0], cell[1] + MOVES[action][1])
    if not (0 <= new[0] < SIZE and 0 <= new[1] < SIZE) or new in WALL:
        new = cell
    return new, (1.0 if new == GOAL else -0.02), new == GOAL


class Replay:
    def __init__(self, size, rng):
        self.size, self.rng, self.items = size, rng, []

    def add(self, item):
        self.items.append(item)
        if len(self.items) > self.size:
            self.items.pop(0)

    def sample(self, n):
        rows = self.rng.integers(0, len(self.items), n)
        return [np.array(c, np.float32) for c in zip(*(self.items[i] for i in rows))]


def td_loss(model, target, obs, action, reward, following, done):
    values = jax.vmap(model)(obs)
    chosen = jnp.take_along_axis(values, action.astype(int)[:, None], 1)[:, 0]
    best = jnp.max(jax.vmap(target)(following), axis=1)
    aim = jax.lax.stop_gradient(reward + GAMMA * (1.0 - done) * best)
    return jnp.mean(optax.huber_loss(chosen, aim))


tx = optax.adam(1e-3)


@eqx.filter_jit
def learn(model, target, state, batch):
    loss, grads = eqx.filter_value_and_grad(td_loss)(model, target, *batch)
    updates, state = tx.update(grads, state)
    model = eqx.apply_updates(model, updates)
    follow = lambda t, m: 0.98 * t + 0.02 * m if eqx.is_inexact_array(t) else t
    return model, jax.tree.map(follow, target, model), state, loss


@eqx.filter_jit
def q_values(model, obs):
    return model(obs)


def main(episodes=160, seed=14):
    rng = np.random.default_rng(seed)
    model = eqx.nn.MLP(2 * SIZE, 4, 48, 2, key=jax.random.key(seed))
    target = model
    state = tx.init(eqx.filter(model, eqx.is_inexact_array))
    memory = Replay(4000, rng)
    lengths, losses = [], []
    for episode in range(1, episodes + 1):
        epsilon = max(0.05, 1.0 - episode / 80)
        cell, steps, done = (0, 0), 0, False
        while not done and steps < LIMIT:
            obs = observe(cell)
            action = int(rng.integers(4)) if rng.random() < epsilon else int(np.argmax(q_values(model, obs)))
            cell, reward, done = act(cell, action)
            memory.add((obs, action, reward, observe(cell), float(done)))
            steps += 1
            if len(memory.items) >= 200:
                model, target, state, loss = learn(model, target, state, memory.sample(32))
                losses.append(float(loss))
        lengths.append(steps)
        if episode % 20 == 0:
            print(f"episode {episode:3d}  steps to the goal {np.mean(lengths[-20:]):5.1f}  td loss {np.mean(losses[-200:]):.5f}")


main()
