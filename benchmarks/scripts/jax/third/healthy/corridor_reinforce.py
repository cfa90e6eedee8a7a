"""REINFORCE with a running baseline: walk to the goal cell of a small grid."""
import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

SIZE, HORIZON, EPISODES = 5, 16, 64
MOVES = jnp.array([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Policy(eqx.Module):
    net: eqx.nn.MLP

    def __init__(self, key):
        self.net = eqx.nn.MLP(4, 4, 32, 1, activation=jnp.tanh, key=key)

    def __call__(self, place, goal):
        seen = jnp.concatenate([place, goal]).astype(jnp.float32) / (SIZE - 1) - 0.5
        return self.net(seen)


def rollout(policy, key):
    k0, k1, k2 = jr.split(key, 3)
    place, goal = jr.randint(k0, (2,), 0, SIZE), jr.randint(k1, (2,), 0, SIZE)

    def tick(carry, k):
        place, done = carry
        action = jr.categorical(k, policy(place, goal))
        moved = jnp.clip(place + MOVES[action], 0, SIZE - 1)
        reward = jnp.where(done, 0.0, -1.0)
        new = jnp.where(done, place, moved)
        return (new, done | jnp.all(new == goal)), (place, action, reward, ~done)

    start_done = jnp.all(place == goal)
    _, (places, actions, rewards, alive) = jax.lax.scan(tick, (place, start_done), jr.split(k2, HORIZON))
    to_go = jnp.cumsum(rewards[::-1])[::-1]
    return places, goal, actions, to_go, alive, rewards.sum()


def surrogate(policy, places, goals, actions, advantage, alive):
    logits = jax.vmap(jax.vmap(policy, (0, None)))(places, goals)
    logp = jax.nn.log_softmax(logits)
    chosen = jnp.take_along_axis(logp, actions[..., None], -1)[..., 0]
    entropy = -jnp.sum(jnp.exp(logp) * logp, -1)
    weight = alive / jnp.maximum(alive.sum(), 1)
    return -jnp.sum(weight * (chosen * advantage + 0.01 * entropy))


tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(5e-3))


@eqx.filter_jit
def train_step(policy, opt_state, baseline, key):
    places, goals, actions, to_go, alive, total = jax.vmap(rollout, (None, 0))(policy, jr.split(key, EPISODES))
    advantage = to_go - baseline[None, :]
    baseline = 0.9 * baseline + 0.1 * to_go.mean(0)
    grads = eqx.filter_grad(surrogate)(policy, places, goals, actions, advantage, alive)
    updates, opt_state = tx.update(grads, opt_state)
    return eqx.apply_updates(policy, updates), opt_state, baseline, total.mean()


policy = Policy(jr.PRNGKey(0))
opt_state = tx.init(eqx.filter(policy, eqx.is_array))
baseline = jnp.zeros(HORIZON)
key = jr.PRNGKey(1)
recent = []
for it in range(600):
    key, sub = jr.split(key)
    policy, opt_state, baseline, ret = train_step(policy, opt_state, baseline, sub)
    recent.append(float(ret))
    if it % 100 == 99:
        print(f"iteration {it + 1}: mean return {sum(recent[-50:]) / 50:.2f}")
