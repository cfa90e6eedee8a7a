"""A sparse code for patches of waves: encoder and decoder share one dictionary, written on a plain tree of arrays."""
import mlx.core as mx
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
SIDE, CODES = 8, 48
SPARSITY = 0.02


def patches(n, rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    angle, freq = rng.uniform(0, np.pi, (n, 1, 1)), rng.choice([0.6, 1.0, 1.4], (n, 1, 1))
    phase, strength = rng.uniform(0, 2 * np.pi, (n, 1, 1)), rng.uniform(0.7, 1.3, (n, 1, 1))
    wave = strength * np.sin(freq * (xx * np.cos(angle) + yy * np.sin(angle)) + phase)
    return (wave + rng.normal(0, 0.05, wave.shape)).reshape(n, -1).astype(np.float32)


def init(key):
    d = mx.random.normal((CODES, SIDE * SIDE), key=key)
    return {"dictionary": d / mx.linalg.norm(d, axis=1, keepdims=True), "threshold": mx.full((CODES,), -0.1), "offset": mx.zeros((SIDE * SIDE,))}


def encode(p, x):
    return mx.maximum((x - p["offset"]) @ p["dictionary"].T + p["threshold"], 0)


def decode(p, code):
    return code @ p["dictionary"] + p["offset"]


def loss_fn(p, x):
    code = encode(p, x)
    error = mx.mean(mx.sum(mx.square(decode(p, code) - x), axis=1))
    return error + SPARSITY * mx.mean(mx.sum(mx.abs(code), axis=1))


def main():
    rng = np.random.default_rng(12)
    train, test = patches(4000, rng), mx.array(patches(500, rng))
    params = init(mx.random.key(12))
    optimizer = optim.Adam(learning_rate=3e-3)
    grad_fn = mx.value_and_grad(loss_fn)
    power = mx.mean(mx.sum(mx.square(test), axis=1)).item()
    for step in range(1, 1501):
        x = mx.array(train[rng.integers(0, 4000, 100)])
        loss, grads = grad_fn(params, x)
        params = optimizer.apply_gradients(grads, params)
        mx.eval(params, optimizer.state)
        if step % 250 == 0:
            code = encode(params, test)
            error = mx.mean(mx.sum(mx.square(decode(params, code) - test), axis=1)).item()
            active = mx.mean(code > 0).item()
            print(f"step {step}: loss {loss.item():.3f}  unexplained {error / power:.3f}  active codes {active:.3f}")


if __name__ == "__main__":
    main()
