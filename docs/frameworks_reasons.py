"""What each capability means, and why an adapter lacks it."""

WORDS = {
    "Describes": "layers, parameters, settings",
    "Steps": "experiments on a copy",
    "Substitutes": "other outputs in the model's place",
    "Compares": "what a loss function was given, also inside the model",
    "Traces": "one step, operation by operation",
    "Watches": "a loop of the user's own",
    "WrapsSteps": "compiled steps, `sleuth.watch_step`",
    "Discovers": "trainings in a script, `sleuth run`",
    "Explains": "exceptions of a script",
    "Replays": "a kept scene, done again",
    "Orders": "data sets read by position",
    "Employs": "worker processes of a loader",
    "LayerValues": "values and gradients inside a model",
    "CheckpointState": "buffers and optimiser for checkpoints",
    "Dissects": "a backward written by hand",
    "Profiles": "time and memory of a step",
    "Inspects": "its parts, and one forward pass",
    "Routes": "its graph",
    "Shows": "filters and feature maps",
    "Credits": "class activation",
    "Attends": "attention",
}
NO_LOADER = "the framework has no data sets and loaders of its own: arrays and iterables are read as they are"
AUTOMATIC = "gradients are the framework's own; there is no backward by hand to look into"
EAGER = "steps are ordinary Python and are heard as they are: nothing has to be wrapped"
NOT_YET = "not built yet"

NO_LOSS_CALLS = "no call of a loss function stands apart from the step: targets are those of the batch"

MISSING = {
    "torch": {"WrapsSteps": EAGER, "Dissects": AUTOMATIC},
    "numpy": {
        "Compares": NO_LOSS_CALLS,
        "WrapsSteps": EAGER,
        "Explains": "exceptions of plain Python say themselves what is wrong; inside a watch they are explained",
        "Replays": "a loop by hand has no state that could be saved and brought back by itself",
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Attends": "attention by hand is arithmetic of arrays: no call says which of them are the weights of an attention",
    },
    "mithril": {
        "Compares": NO_LOSS_CALLS,
        "WrapsSteps": EAGER,
        "Discovers": "nothing of the library is called when a training begins: a script cannot be heard; sleuth.watch can",
        "Explains": "its messages are explained in an examination and inside a watch; those of a script are not",
        "Replays": "weights are a plain dict that only the user's loop holds",
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Dissects": AUTOMATIC,
        "CheckpointState": "neither buffers nor an optimiser belong to a model",
        "Profiles": "evaluate() is one compiled call for values and gradients: phases and layers cannot be told apart in it",
        "Shows": "the stand-in has no convolution to try it on, and it was not tried on the library's",
        "Credits": "evaluate() gives gradients by the weights, not by values inside the model",
        "Attends": "no model of the library hands out the weights of an attention",
    },
    "keras": {
        "Compares": NO_LOSS_CALLS,
        "WrapsSteps": "fit makes its own step, and is heard there; on torch so is a loop without it",
        "Replays": "a step of fit keeps no batch and no random state from which it could be done again",
        "Employs": "PyDataset has no public way to start its workers apart from fit",
        "Dissects": AUTOMATIC,
    },
    "jax": {
        "Compares": NO_LOSS_CALLS,
        "Replays": "a training of JAX is a function of the user's own: no object holds a step that could be done again",
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Dissects": AUTOMATIC,
    },
    "mlx": {
        "Compares": NO_LOSS_CALLS,
        "WrapsSteps": "value_and_grad and the optimisers are heard where they are called",
        "Replays": "a watch keeps no scene: a step that breaks is done once more at once, operation by operation",
        "Orders": NO_LOADER,
        "Employs": NO_LOADER,
        "Dissects": AUTOMATIC,
    },
}
