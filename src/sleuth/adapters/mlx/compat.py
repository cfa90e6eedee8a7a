"""Every private name of MLX that this adapter uses."""

from sleuth.core.runtime.private_names import PrivateNames, alike

RATE = "the learning rate can neither be read nor changed"
MODES = "modes can neither be read nor changed"

PRIVATE = PrivateNames(
    framework="mlx",
    oldest="0.31",
    tried=("0.31.0", "0.32.4"),
    attributes=(
        *alike("mlx.nn.Module", "_no_grad", "know which parameters are frozen", "frozen parameters are not known"),
        *alike("mlx.nn.Module", "_training _set_training_mode", "set a module's own mode and put it back", MODES),
        *alike("mlx.nn.Dropout", "_p_1", "the share that a dropout keeps", "dropout-too-strong is not examined"),
        *alike("mlx.optimizers.Optimizer", "_state _schedulers", "read and change a rate or a schedule", RATE),
        *alike("mlx.optimizers.Optimizer", "_initialized", "begin an optimiser anew", "a training cannot be tried again"),
    ),
)
PRIVATE.require()
