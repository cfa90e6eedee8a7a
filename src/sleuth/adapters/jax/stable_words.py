"""What to write instead of an operation that made NaN, in the words of JAX."""

from dataclasses import replace

from sleuth.core.observation import Origin
from sleuth.core.reading.stable_form import stable_form

# As the sentences of core.stable_form have it → as it is written here; the longer ones first.
WORDS = {
    "give the raw scores to F.cross_entropy": "give the raw scores to optax.softmax_cross_entropy_with_integer_labels",
    "give the raw scores to F.binary_cross_entropy_with_logits": "give the raw scores to optax.sigmoid_binary_cross_entropy",
    "F.cross_entropy(…, reduction='sum') / count.clamp(min=1)": "losses.sum() / jnp.maximum(count, 1)",
    "in which every target is ignore_index": "in which every target is masked",
    "write x.float() before it, use bfloat16 (torch.autocast(device, torch.bfloat16))": "write x.astype(jnp.float32) before it, "
    "use jnp.bfloat16",
    "torch.where(ok, x, torch.ones_like(x))": "jnp.where(ok, x, 1.0)",
    "torch.where(mask, x, torch.zeros_like(x)) or x.masked_fill(~mask, 0.0)": "jnp.where(mask, x, 0.0)",
    "scores.masked_fill(mask, -1e9)": "jnp.where(mask, -1e9, scores)",
    "F.normalize(x, dim=-1, eps=1e-6), or x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)": "x / jnp.maximum("
    "jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-6)",
    "a / b.sum().clamp(min=1e-6)": "a / jnp.maximum(b.sum(), 1e-6)",
    "a / b.clamp(min=1e-6)": "a / jnp.maximum(b, 1e-6)",
    "Pass unbiased=False to": "Pass ddof=0 to",
    "leave out batches of one sample (drop_last=True in the DataLoader)": "leave out batches of one sample",
    "torch.sign(x) * torch.log1p(x.abs())": "jnp.sign(x) * jnp.log1p(jnp.abs(x))",
    "torch.sign(x) * x.abs() ** p": "jnp.sign(x) * jnp.abs(x) ** p",
    "torch.log(x.clamp(min=1e-6))": "jnp.log(jnp.maximum(x, 1e-6))",
    "torch.sqrt(x.clamp(min=1e-12))": "jnp.sqrt(jnp.maximum(x, 1e-12))",
    "x.clamp(min=1e-6) ** p": "jnp.maximum(x, 1e-6) ** p",
    "torch.linalg.norm(x) instead of sqrt((x**2).sum()), or sqrt((x**2).sum() + 1e-12)": "jnp.sqrt((x**2).sum() + 1e-12)",
    "max(x.numel(), 1)": "max(x.size, 1)",
    "torch.log_softmax(scores, dim)": "jax.nn.log_softmax(scores, axis)",
    "torch.logsumexp(x, dim) instead of log(exp(x).sum(dim))": "jax.nn.logsumexp(x, axis) instead of log(exp(x).sum(axis))",
    "torch.softmax(x, dim) instead of exp(x) / exp(x).sum(dim)": "jax.nn.softmax(x, axis) instead of exp(x) / exp(x).sum(axis)",
    "F.logsigmoid(": "jax.nn.log_sigmoid(",
    "F.softplus(": "jax.nn.softplus(",
    ", dim)": ", axis)",
    "torch.acos(": "jnp.arccos(",
    "torch.asin(": "jnp.arcsin(",
    "x.clamp(max=": "jnp.clip(x, max=",
    "x.clamp(": "jnp.clip(x, ",
    "torch.": "jnp.",
}


def told(origin: Origin) -> Origin:
    """With its advice."""
    advice = stable_form(origin)
    for word, own in WORDS.items():
        advice = None if advice is None else advice.replace(word, own)
    return replace(origin, advice=advice)
