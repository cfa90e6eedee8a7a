"""`sleuth.keras.Watch()`: a callback for `fit`. Give it as `callbacks=[sleuth.keras.Watch()]`."""

from typing import Any

import keras

from sleuth import api
from sleuth.adapters.keras.watching.watching import KerasWatch
from sleuth.core.errors import UnusableInput
from sleuth.core.report import Report
from sleuth.session.watch import Watch as Watched


class Watch(keras.callbacks.Callback):
    """Watches one `fit` after the other, each on its own. It takes what `sleuth.watch` takes, and has its `report()`.

    No method that Keras calls for every batch is overridden: Keras would otherwise wait for each batch before the next."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self.watch: Watched | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        if self.watch is not None:
            self.watch.close()
        self.watch = api.watch(self.model, self.model.optimizer, **self._options)
        if isinstance(self.watch.watching, KerasWatch):
            self.watch.watching.listener.on_failure = self._failed

    def _failed(self, error: BaseException) -> None:
        if self.watch is not None:
            self.watch.__exit__(type(error), error)

    def on_train_end(self, logs: Any = None) -> None:
        if self.watch is not None:
            self.watch.close()

    def report(self) -> Report:
        if self.watch is None:
            raise UnusableInput("no training has been watched: give the callback to model.fit(callbacks=[…]) first.")
        return self.watch.report()
