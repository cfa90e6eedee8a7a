"""Every private name of Keras that this adapter uses; of the backends, those that it uses beside their own adapters."""

from sleuth.core.runtime.private_names import PrivateName, PrivateNames, alike

COPIES = "no model can be copied, and so none be experimented with"
DATA = "where a batch stands in its data is not known"
DOUBLE = "nothing is computed again in double precision"
HEARD = "what a layer and a loss compute is not heard"
LOSS = "the compiled loss cannot be computed"
RATE = "the learning rate can neither be read nor changed"
WEIGHTS = "the weights of a layer cannot be told apart"

PRIVATE = PrivateNames(
    framework="keras",
    oldest="3.10",
    tried=("3.10.0", "3.15.1"),
    needed=(
        PrivateName("keras.src.backend.nn", "hear the activations and softmaxes that layers compute", HEARD),
        PrivateName("keras.src.backend.numpy", "hear tanh, which stands there", HEARD),
        PrivateName(
            "keras.src.backend.common.symbolic_scope.in_symbolic_scope", "leave out calls that only ask for shapes", HEARD
        ),
        PrivateName("keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE", "let Keras compute in float64", DOUBLE),
        *alike(
            "keras.src.backend.common.global_state",
            "GLOBAL_STATE_TRACKER get_global_attribute",
            "keep the seeds of Keras, and read the mode of a call",
            "random states cannot be put back",
        ),
        PrivateName("keras.src.losses.losses.LossFunctionWrapper", "know a loss of Keras' and its options", LOSS),
        PrivateName("keras.src.ops.operation.Operation", "hear every operation that is called", HEARD),
        PrivateName("keras.src.optimizers.base_optimizer.BaseOptimizer", "hear every step", "trainings cannot be listened to"),
        PrivateName("keras.src.saving.keras_saveable.KerasSaveable", "copy a model without going through a file", COPIES),
        PrivateName("keras.src.utils.tracking.Tracker", "let a copy keep track of its own layers", COPIES),
        PrivateName("keras.src.trainers.data_adapters.array_data_adapter.ArrayDataAdapter", "the order of samples", DATA),
        PrivateName("keras.src.trainers.epoch_iterator.EpochIterator", "hear batches and epochs", DATA),
    ),
    when_imported=(PrivateName("keras.src.backend.jax.trainer.JAXEpochIterator", "hear batches on the jax backend", DATA),),
    attributes=(
        *alike("Layer", "_layers _flatten_layers", "walk through a model", "layers are not found"),
        *alike("Layer", "_trainable_variables _non_trainable_variables", "know a layer's own weights", WEIGHTS),
        *alike("Layer", "_call_has_training_arg", "call a layer in a mode", "modes cannot be tried"),
        *alike("Layer", "_dtype_policy _losses_override", "widen a layer; hand over its penalties", DOUBLE),
        *alike("Trainer", "_compile_loss _compute_loss _eval_epoch_iterator", "compute the loss that was compiled", LOSS),
        *alike("JAXTrainer", "_make_function", "compile our step as Keras compiles its own", "fit on jax is not listened to"),
        *alike("Sequential", "_functional", "leave out the model that Keras makes inside a Sequential", "layers are found twice"),
        *alike("Function", "_inputs", "widen the inputs of a functional model", DOUBLE),
        *alike("KerasTensor", "_dtype", "the same", DOUBLE),
        *alike("Variable", "_dtype _value", "widen a variable", DOUBLE),
        *alike("Loss", "_dtype_policy _dtype", "widen a loss", DOUBLE),
        *alike("LossFunctionWrapper", "_fn_kwargs", "read a loss's options", "its options are not judged"),
        *alike("CompileLoss", "_flat_losses _user_loss", "reach the losses inside the compiled one", DOUBLE),
        *alike("BaseOptimizer", "_learning_rate", "read and change a rate or a schedule", RATE),
        *alike("BaseOptimizer", "_trainable_variables _trainable_variables_indices _var_key", "copy an optimiser", COPIES),
        *alike("ArrayDataAdapter", "_inputs _num_samples _batch_size _shuffle", "where a batch stands", DATA),
        *alike("TorchDataLoaderAdapter", "_dataloader", "the line where a loader was made", "that line is not named"),
        *alike("CallbackList", "_model", "know whose epoch has ended", "epochs are not heard"),
        *alike("torch.Tensor", "_version", "notice that a gradient was written to", "gradients that pile up are not noticed"),
    ),
)
PRIVATE.require()
