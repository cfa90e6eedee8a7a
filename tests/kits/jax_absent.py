"""Illnesses that cannot be had in JAX, or not be seen there, each with the reason that the documentation prints."""

VALUES = "jax.grad returns gradients as new values: nothing adds up between steps, and there is no zero_grad to forget"
NO_GRAPH = "JAX keeps no graph between steps: what a compiled step returns has no history"
NO_LOADER = "JAX has no loader of its own"

ABSENT = {
    "double-precision": "JAX makes no float64 before jax_enable_x64 asks for it in so many words: it is no slip",
    "missing-zero-grad": VALUES,
    "gradients-erased": VALUES,
    "graph-retained": NO_GRAPH,
    "hidden-state-not-detached": NO_GRAPH,
    "validation-builds-graph": "a gradient is computed only where jax.grad is called: a validation builds no graph",
    "scheduler-before-optimiser": "a schedule of optax is part of the optimiser and moves on with its steps: it is never called",
    "clipping-misplaced": "optax clips inside the optimiser, where optax.chain puts it: no call could come too late",
    "accumulation-not-scaled": "optax.MultiSteps takes the mean by itself; gradients that are added up by hand are values, and "
    "whether their sum was divided before the step cannot be heard",
    "unregistered-layers": "Flax NNX refuses layers in a plain list when the model is made; JAX sees every array of a tree",
    "workers-repeat-augmentation": f"{NO_LOADER}, and so no worker processes",
    "waiting-for-data": f"{NO_LOADER}: what a loop does between two steps may be anything",
    "memory-grows": f"{NO_LOADER} that tells when data are read a second time: until then a rise may be a buffer that is filled",
    "host-synchronises": "a compiled step cannot read its own values; what the loop reads of them is not listened to",
}
