"""What each capability means, and why an adapter lacks it."""

WORDS = {
    "Describes": "layers, parameters, settings",
    "Steps": "experiments on a copy",
    "Substitutes": "other outputs in the model's place",
    "Traces": "one step, operation by operation",
    "Watches": "a loop of the user's own",
    "WrapsSteps": "compiled steps, `sleuth.watch_step`",
    "Discovers": "trainings in a script, `sleuth run`",
    "Explains": "exceptions of a script",
    "Replays": "a kept scene, done again",
    "Orders": "data sets read by position",
    "Employs": "worker processes of a loader",
    "Overhears": "values and gradients inside a model",
    "Lends": "buffers and optimiser for checkpoints",
    "Dissects": "a backward written by hand",
    "Profiles": "time and memory of a step",
    "Inspects": "structure, pictures",
}
NO_LOADER = "the framework has no data sets and loaders of its own: arrays and iterables are read as they are"
AUTOMATIC = "gradients are the framework's own; there is no backward by hand to look into"
EAGER = "steps are ordinary Python and are heard as they are: nothing has to be wrapped"
NOT_YET = "not built yet"

MISSING = {
    "torch": {"WrapsSteps": EAGER, "Dissects": AUTOMATIC},
    "numpy": {
        "WrapsSteps": EAGER,
        "Discovers": "nothing in NumPy is called when a training begins: an unmodified script cannot be heard; sleuth.watch can",
        "Explains": "exceptions of plain Python say themselves what is wrong; inside a watch they are explained",
        "Replays": "a loop by hand has no state that could be saved and brought back by itself",
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Profiles": "NumPy has no profiler of its own",
        "Inspects": "a network by hand has no module tree; examine lists its layers",
    },
    "mithril": {
        "Watches": "evaluate() is called by the user's own loop, and no optimiser of the library is there to be heard",
        "WrapsSteps": EAGER,
        "Discovers": "the same: nothing of the library is called when a training begins",
        "Explains": "its messages are explained in an examination; those of a script are not",
        "Replays": "weights are a plain dict that only the user's loop holds",
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Dissects": AUTOMATIC,
        "Overhears": f"{NOT_YET}: intermediate values come out under expose_keys, and examine reads them there",
        "Lends": "neither buffers nor an optimiser belong to a model",
        "Profiles": "the library has no profiler",
    },
    "keras": {
        "WrapsSteps": "fit is heard through its callbacks",
        "Replays": NOT_YET,
        "Orders": NOT_YET,
        "Employs": "PyDataset has no public way to start its workers apart from fit",
        "Dissects": AUTOMATIC,
        "Overhears": NOT_YET,
        "Lends": NOT_YET,
        "Profiles": NOT_YET,
        "Inspects": NOT_YET,
    },
    "jax": {
        "Explains": NOT_YET,
        "Replays": NOT_YET,
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Dissects": AUTOMATIC,
        "Overhears": f"{NOT_YET}: inside a compiled function values exist only while it is traced",
        "Lends": f"{NOT_YET}: optimiser states are values of the user's own loop",
        "Profiles": NOT_YET,
        "Inspects": NOT_YET,
    },
    "mlx": {
        "WrapsSteps": "value_and_grad and the optimisers are heard where they are called",
        "Replays": NOT_YET,
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Dissects": AUTOMATIC,
        "Overhears": NOT_YET,
        "Lends": NOT_YET,
        "Profiles": NOT_YET,
        "Inspects": NOT_YET,
    },
}
