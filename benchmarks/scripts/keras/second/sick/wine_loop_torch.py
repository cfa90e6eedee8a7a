import os
os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from keras import layers
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.set_num_threads(1)
keras.utils.set_random_seed(2)

x, y = load_wine(return_X_y=True)
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.3, stratify=y, random_state=2)
sc = StandardScaler()
x_train = sc.fit_transform(x_train).astype("float32")
x_val = sc.transform(x_val).astype("float32")

train_ds = torch.utils.data.TensorDataset(torch.tensor(x_train), torch.tensor(y_train))
loader = torch.utils.data.DataLoader(train_ds, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(2))

model = keras.Sequential([keras.Input((13,)), layers.Dense(32, activation="relu"), layers.Dense(16, activation="relu"), layers.Dense(3)])
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(learning_rate=0.05, momentum=0.5)
acc_metric = keras.metrics.SparseCategoricalAccuracy()


def train_step(xb, yb):
    logits = model(xb, training=True)
    loss = loss_fn(yb, logits)
    loss.backward()
    variables = model.trainable_variables
    gradients = [v.value.grad for v in variables]
    with torch.no_grad():
        optimizer.apply(gradients, variables)
    acc_metric.update_state(yb, logits)
    return float(loss.detach())


for epoch in range(30):
    losses = [train_step(xb, yb) for xb, yb in loader]
    train_acc = float(acc_metric.result())
    acc_metric.reset_state()
    with torch.no_grad():
        val_logits = model(torch.tensor(x_val), training=False)
        val_loss = float(loss_fn(torch.tensor(y_val), val_logits))
        val_acc = float((val_logits.argmax(dim=1).cpu() == torch.tensor(y_val)).float().mean())
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f} acc {train_acc:.3f} val_loss {val_loss:.4f} val_acc {val_acc:.3f}")
