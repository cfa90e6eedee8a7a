import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", ".*does not have many workers.*")
warnings.filterwarnings("ignore", ".*The number of training batches.*")


class DigitsData(L.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        x = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16.0
        self.train, self.val = random_split(TensorDataset(x), [1500, 297])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=297)


class Denoiser(L.LightningModule):
    """Takes the noise out of pictures of digits."""

    def __init__(self, width=16, lr=3e-3, noise=0.4):
        super().__init__()
        self.save_hyperparameters()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.GELU(),
        )
        self.up = nn.Sequential(
            nn.ConvTranspose2d(2 * width, width, 2, stride=2), nn.GELU(), nn.Conv2d(width, 1, 3, padding=1)
        )

    def forward(self, x):
        return self.up(self.down(x))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = F.mse_loss(self(x + self.hparams.noise * torch.randn_like(x)), x)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        (x,) = batch
        noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        loss = F.mse_loss(self(x + self.hparams.noise * noise), x)
        self.log("val_loss", loss)

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking and self.current_epoch % 5 == 4:
            print(f"epoch {self.current_epoch}: val {self.trainer.callback_metrics['val_loss']:.4f}")

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


if __name__ == "__main__":
    L.seed_everything(2, verbose=False)
    torch.set_num_threads(1)
    trainer = L.Trainer(
        max_epochs=20,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
    )
    trainer.fit(Denoiser(), datamodule=DigitsData())
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
