"""A GRU counts the ones modulo three. The sequences grow whenever it has learnt the present length,
so the loss jumps up now and then on purpose."""
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np

mx.set_default_device(mx.cpu)
SIGNS, MODULUS, BATCH = 2, 3, 64
STAGES = [3, 6, 9, 12, 16]


class Counter(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.signs = nn.Embedding(SIGNS, 8)
        self.gru = nn.GRU(8, hidden)
        self.out = nn.Linear(hidden, MODULUS)

    def __call__(self, ids):
        return self.out(self.gru(self.signs(ids))[:, -1])


class Teacher:
    """Hands out tasks and moves on to the next length."""

    def __init__(self, rng, needed=0.97):
        self.rng, self.needed, self.stage, self.recent = rng, needed, 0, []

    @property
    def length(self):
        return STAGES[self.stage]

    def batch(self, length=None, size=BATCH):
        ids = self.rng.integers(0, SIGNS, (size, length or self.length)).astype(np.int32)
        return mx.array(ids), mx.array(ids.sum(1) % MODULUS)

    def note(self, share):
        self.recent = (self.recent + [share])[-20:]
        if len(self.recent) == 20 and np.mean(self.recent) > self.needed and self.stage + 1 < len(STAGES):
            self.stage, self.recent = self.stage + 1, []
            return True
        return False


def loss_fn(model, ids, count):
    logits = model(ids)
    right = mx.mean(mx.argmax(logits, axis=-1) == count)
    return nn.losses.cross_entropy(logits, count, reduction="mean"), right


def main(steps=700, seed=52):
    mx.random.seed(seed)
    teacher = Teacher(np.random.default_rng(seed))
    model = Counter()
    optimizer = optim.Adam(learning_rate=5e-3)
    grad_fn = nn.value_and_grad(model, loss_fn)
    for step in range(1, steps + 1):
        (loss, right), grads = grad_fn(model, *teacher.batch())
        grads, _ = optim.clip_grad_norm(grads, 1.0)
        optimizer.update(model, grads)
        mx.eval(model.parameters(), optimizer.state)
        if teacher.note(right.item()):
            print(f"step {step:4d}: on to length {teacher.length}")
        if step % 100 == 0:
            _, longest = loss_fn(model, *teacher.batch(STAGES[-1], 500))
            print(f"step {step:4d}: length {teacher.length:2d} loss {loss.item():.4f} | right at length {STAGES[-1]}: {longest.item():.3f}")


main()
