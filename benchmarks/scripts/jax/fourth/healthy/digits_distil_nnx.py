# A wide teacher learns the digits, then stays as it is and teaches a narrow student.
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Mlp(nnx.Module):
    def __init__(self, width, rngs, dropout=0.0):
        self.l1 = nnx.Linear(64, width, rngs=rngs)
        self.l2 = nnx.Linear(width, width, rngs=rngs)
        self.drop = nnx.Dropout(dropout, rngs=rngs)
        self.l3 = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.l1(x))
        x = self.drop(nnx.relu(self.l2(x)))
        return self.l3(x)


def hard_loss(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


def soft_loss(student, x, y, teacher_logits, temperature=3.0, share=0.7):
    logits = student(x)
    wanted = jax.nn.softmax(teacher_logits / temperature)
    soft = optax.softmax_cross_entropy(logits / temperature, wanted).mean() * temperature**2
    hard = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
    return share * soft + (1 - share) * hard


@nnx.jit
def teach_teacher(model, opt, x, y):
    loss, grads = nnx.value_and_grad(hard_loss)(model, x, y)
    opt.update(model, grads)
    return loss


@nnx.jit
def teach_student(student, opt, teacher, x, y):
    advice = jax.lax.stop_gradient(teacher(x))
    loss, grads = nnx.value_and_grad(soft_loss)(student, x, y, advice)
    opt.update(student, grads)
    return loss


@nnx.jit
def score(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), jnp.mean(logits.argmax(-1) == y)


def loop(name, model, step, data, epochs, rng):
    x, y, x_val, y_val = data
    for epoch in range(1, epochs + 1):
        model.train()
        order = rng.permutation(len(x))
        losses = [step(x[rows], y[rows]) for rows in np.array_split(order, len(x) // 50)]
        model.eval()
        if epoch % 5 == 0:
            loss, acc = score(model, x_val, y_val)
            print(f"{name} {epoch:2d}: loss {np.mean(losses):.4f}  val {float(loss):.4f}  acc {float(acc):.3f}")


rng = np.random.default_rng(30)
images, labels = load_digits(return_X_y=True)
images = (images / 8.0 - 1.0).astype(np.float32)
x, x_val, y, y_val = train_test_split(images, labels.astype(np.int32), test_size=0.25, random_state=30, stratify=labels)
data = (x, y, x_val, y_val)

teacher = Mlp(128, nnx.Rngs(1), dropout=0.3)
opt = nnx.Optimizer(teacher, optax.adamw(1e-3, weight_decay=1e-2), wrt=nnx.Param)
loop("teacher", teacher, lambda a, b: teach_teacher(teacher, opt, a, b), data, 15, rng)

teacher.eval()
student = Mlp(16, nnx.Rngs(2))
opt_s = nnx.Optimizer(student, optax.adam(4e-3), wrt=nnx.Param)
loop("student", student, lambda a, b: teach_student(student, opt_s, teacher, a, b), data, 25, rng)
