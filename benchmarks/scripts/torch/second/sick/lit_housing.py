import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", ".*does not have many workers.*")
torch.set_num_threads(1)


class RegressionData(L.LightningDataModule):
    def __init__(self, n=3000, batch_size=64):
        super().__init__()
        self.n = n
        self.batch_size = batch_size

    def setup(self, stage=None):
        X, y = make_friedman1(n_samples=self.n, n_features=10, noise=0.5, random_state=1)
        cut = int(0.8 * self.n)
        mean, std = X[:cut].mean(0), X[:cut].std(0)
        X = (X - mean) / std
        y = (y - y[:cut].mean()) / y[:cut].std()
        X, y = X.astype(np.float32), y.astype(np.float32)
        self.train = TensorDataset(torch.from_numpy(X[:cut]), torch.from_numpy(y[:cut]))
        self.val = TensorDataset(torch.from_numpy(X[cut:]), torch.from_numpy(y[cut:]))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=256)


class Regressor(L.LightningModule):
    def __init__(self, n_features=10, width=64, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(
            nn.Linear(n_features, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
        )
        self.head = nn.Linear(width, 1)
        self.history = []

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        pred = self(x)
        self.log("val_loss", F.mse_loss(pred, y), prog_bar=True)
        self.log("val_mae", F.l1_loss(pred, y))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.history.append(self.trainer.callback_metrics["val_loss"].item())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.head.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.max_epochs)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "epoch"}}


def main():
    L.seed_everything(7)
    model = Regressor()
    trainer = L.Trainer(
        max_epochs=12,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
    )
    trainer.fit(model, datamodule=RegressionData())
    for epoch, value in enumerate(model.history):
        if epoch % 4 == 3:
            print(f"epoch {epoch:2d}  val mse {value:.4f}")
    print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
