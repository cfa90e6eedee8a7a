"""In the place of Lightning's command line, which needs jsonargparse: the defaults, and a few epochs."""

import os
from typing import Any

from lightning.pytorch import LightningDataModule, LightningModule, Trainer, seed_everything


class LightningCLI:
    def __init__(
        self,
        model: type[LightningModule],
        data: type[LightningDataModule],
        seed_everything_default: int = 0,
        trainer_defaults: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        seed_everything(seed_everything_default)
        settings = {**(trainer_defaults or {}), "max_epochs": int(os.environ.get("EPOCHS", "2")), "enable_progress_bar": False}
        self.model, self.datamodule, self.trainer = model(), data(), Trainer(accelerator="cpu", logger=False, **settings)
