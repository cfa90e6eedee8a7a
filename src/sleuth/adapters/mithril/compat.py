"""Every private name of Mithril that this adapter uses."""

from sleuth.core.runtime.private_names import PrivateNames, alike

PRIVATE = PrivateNames(
    framework="mithril",
    oldest="at commit cc5c80c",
    tried=("that commit",),
    attributes=alike("TrainModel", "_model", "leave the wrapper of a trained model out of layers' names", "names are longer"),
)
PRIVATE.require()
