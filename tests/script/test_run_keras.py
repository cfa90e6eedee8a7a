"""`sleuth run` on a script that calls `fit`, with a `train_step` of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import keras
import numpy as np
import torch

rng = np.random.default_rng(0)
x = rng.normal(size=(256, 8)).astype("float32")
y = (x @ rng.normal(size=(8, 4))).argmax(1)


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(32, activation="relu")
        self.head = keras.layers.Dense(4, activation="softmax")

    def call(self, inputs):
        return self.head(self.hidden(inputs))

    def train_step(self, data):
        inputs, target = data
        self.zero_grad()
        loss = self.compute_loss(y=target, y_pred=self(inputs, training=True))
        loss.backward()
        with torch.no_grad():
            self.optimizer.apply([v.value.grad for v in self.trainable_weights], self.trainable_weights)
        return {"loss": loss}


model = Own()
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, epochs=3, batch_size=32, verbose=0)
"""


@pytest.mark.long
def test_a_script_that_calls_fit_is_watched_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "sleuth", "run", "--budget", "0", "--json", "report.json", "train.py"]
    environment = {**os.environ, "KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["framework"], report["steps"]) == ("keras", 24)
    assert report["culprits"][0]["name"] == "double-softmax"
    line = report["culprits"][0]["location"]["line"]
    assert 'activation="softmax"' in SCRIPT.splitlines()[line - 1]
