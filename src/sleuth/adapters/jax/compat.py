"""Every private name of JAX, Flax, Equinox and optax that this adapter uses; they are all replaced where they are gone."""

from sleuth.core.runtime.private_names import PrivateName, PrivateNames, alike

COMPILED = "a step that is compiled already cannot be given to sleuth.watch_step"

PRIVATE = PrivateNames(
    framework="jax",
    oldest="0.8",
    tried=("0.8.0", "0.10.2"),
    replaced=(
        PrivateName(
            "jax._src.api.vjp",
            "hear functions that jax.value_and_grad made before the watch began",
            "those functions are not heard",
        ),
        PrivateName(
            "jax._src.core.trace_state_clean",
            "know that something is being traced, which JAX does not say in public",
            "a call inside a trace is taken for one of the training",
        ),
    ),
    attributes=(
        *alike("PjitFunction", "_jit_info", "compile a step a second time as it was compiled the first time", COMPILED),
        *alike("PjitFunction", "_cache_size", "know that a function was compiled before the watch", "it is listened to in vain"),
        *alike("_JitWrapper", "_cached", "reach the compiled function inside equinox.filter_jit", COMPILED),
        *alike("JitWrapped", "jitted_fn", "reach the compiled function inside flax.nnx.jit", COMPILED),
        *alike("DynamicJaxprTracer", "_trace", "leave out values of vmap and scan", "statistics from inside a loss are not told"),
    ),
)
PRIVATE.require()
