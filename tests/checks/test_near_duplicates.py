"""Near-duplicates are looked for where the user asks, and honest neighbours are not taken for them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, WeightedRandomSampler

from sleuth import Subject, examine
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.conflicting_labels import conflicting_labels
from sleuth.checks.data.duplicate_samples import duplicate_samples
from sleuth.checks.data.train_val_overlap import train_val_overlap
from sleuth.core.engine import Engine, Judgement
from sleuth.core.settings import Configuration
from sleuth.core.stage import Confidence
from sleuth.probes.data.near_duplicates import resemblance
from sleuth.probes.data.overlap import overlap
from sleuth.probes.data.reading import reading
from sleuth.probes.data.repeats import repeats
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from sleuth.views.explain import explain
from tests.material import cancer, diabetes, digit_images, digits, wine

CHECKS = [duplicate_samples, train_val_overlap, conflicting_labels]
NEAR = 0.1


def judge(train: Any, validation: Any = None, near: float = NEAR, seconds: float = 60.0) -> Judgement:
    thresholds = {name: {"near": near} for name in ("duplicate-samples", "train-val-overlap")} if near else {}
    subject = Subject(nn.Linear(1, 1), train, validation=validation)
    lab, engine = Lab(subject, ADAPTER, seconds, thresholds=thresholds), Engine(CHECKS, Configuration(thresholds=thresholds))
    for probe in (reading, overlap, repeats, resemblance):
        run_probe(probe, lab, engine.emit)
    return engine.judge()


def loader(x: np.ndarray, **options: Any) -> DataLoader:
    data = TensorDataset(torch.as_tensor(x), torch.arange(len(x)) % 3)
    return DataLoader(data, **{"batch_size": 64, "shuffle": True, **options})


def names(judged: Judgement) -> list[str]:
    return [f.name for f in judged.findings]


def large_images(count: int = 500) -> np.ndarray:
    """Digits of 32×32 pixels with smooth edges."""
    rows = np.kron(digit_images()[0][:count], np.ones((1, 1, 4, 4), np.float32))
    for axis in (2, 3):
        rows = (rows + np.roll(rows, 1, axis) + np.roll(rows, 2, axis)) / 3
    return rows.astype(np.float32)


def scenes(count: int = 500) -> np.ndarray:
    """Pictures of 48×48 in three colours with the spectrum of photographs: the amplitude falls as one over the frequency."""
    rng = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(48)[:, None], np.fft.rfftfreq(48)[None]) + 1 / 48
    noise = np.fft.rfft2(rng.normal(size=(count, 3, 48, 48))) / frequency
    return np.fft.irfft2(noise).astype(np.float32)


def brightened(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return x * 0.8 + 0.15


def encoded_anew(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.round((x + rng.normal(0, 0.03, x.shape)) * 20) / 20


def cropped(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.roll(x, (1, -1), axis=(2, 3))


@pytest.mark.parametrize("change", [brightened, encoded_anew, cropped])
@pytest.mark.parametrize("images", [large_images, scenes])
def test_images_that_were_changed_a_little_are_found_when_asked_for(change, images) -> None:
    if (images, change) == (large_images, cropped):
        pytest.skip("a digit moved by a pixel resembles another digit of its class as much")
    x = images()
    copies = change(x[:100], np.random.default_rng(0)).astype(np.float32)
    finding = judge(loader(np.concatenate([x, copies]))).findings[0]
    assert (finding.name, finding.confidence) == ("duplicate-samples", Confidence.LIKELY)
    assert finding.numbers["near_found"] == pytest.approx(200, abs=30)
    leaked = judge(
        loader(x[100:]), loader(np.concatenate([x[:100], change(x[100:150], np.random.default_rng(1)).astype(np.float32)]))
    )
    assert names(leaked) == ["train-val-overlap"]
    assert leaked.findings[0].numbers["near_found"] == pytest.approx(50, abs=8)


def test_nothing_is_looked_for_unless_asked() -> None:
    x = large_images()
    train, validation = loader(np.concatenate([x, brightened(x[:100], np.random.default_rng(0))])), loader(x[:50] * 0.9 + 0.05)
    assert names(judge(train, validation, near=0.0)) == []


@pytest.mark.parametrize("material", [cancer, diabetes])
def test_rows_with_a_little_noise_are_found(material) -> None:
    x = material()[0]
    noise = np.random.default_rng(0).normal(0, 0.05, x[:80].shape)
    found = judge(loader(np.concatenate([x, (x[:80] + noise).astype(np.float32)]))).findings[0]
    assert found.name == "duplicate-samples"
    assert found.numbers["near_found"] == pytest.approx(160, abs=25)


def test_sentences_with_another_word_in_them_are_found_also_where_words_moved() -> None:
    rng = np.random.default_rng(0)
    ids = rng.zipf(1.3, (600, 40)) % 500
    changed = ids[:50].copy()
    changed[np.arange(50), rng.integers(0, 40, 50)] = 499
    moved = np.concatenate([np.full((50, 1), 7), ids[50:100, :-1]], axis=1)
    found = judge(loader(np.concatenate([ids, changed, moved]))).findings[0]
    assert found.name == "duplicate-samples"
    assert found.numbers["near_found"] == pytest.approx(200, abs=40)


def walk(rng: np.random.Generator) -> np.ndarray:
    series = rng.normal(size=1100).cumsum()
    return np.lib.stride_tricks.sliding_window_view(series, 20)[:1000].astype(np.float32)


HONEST = {
    "digits": lambda: digits()[0],
    "digit images": lambda: digit_images()[0],
    "cancer": lambda: cancer()[0],
    "diabetes": lambda: diabetes()[0],
    "wine": lambda: wine()[0],
    "moons": lambda: make_moons(800, noise=0.1, random_state=0)[0].astype(np.float32),
    "windows of a walk": lambda: walk(np.random.default_rng(0)),
    "one column": lambda: np.random.default_rng(0).normal(size=(800, 1)).astype(np.float32),
    "random ids": lambda: np.random.default_rng(0).integers(0, 300, (800, 20)),
}


@pytest.mark.parametrize("make", HONEST.values(), ids=HONEST.keys())
@pytest.mark.parametrize("near", [0.02, 0.1])
def test_honest_neighbours_are_not_taken_for_copies(make, near: float) -> None:
    x = make()[np.random.default_rng(1).permutation(len(make()))]
    cut = len(x) * 3 // 4
    assert names(judge(loader(x[:cut]), loader(x[cut:]), near=near)) == []


def test_equals_are_reported_as_equals_and_near_ones_beside_them() -> None:
    x = large_images()
    both = np.concatenate([x, x[:60], brightened(x[60:160], np.random.default_rng(0)).astype(np.float32)])
    finding = judge(loader(both)).findings[0]
    assert (finding.confidence, finding.numbers["distinct"]) == (Confidence.CERTAIN, 600)
    assert "Beside these" in finding.summary


def test_the_option_is_a_threshold_in_pyproject_and_stands_in_the_explanation(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.sleuth.thresholds.duplicate-samples]\nnear = 0.1\n")
    monkeypatch.chdir(tmp_path)
    x = cancer()[0]
    rows = np.concatenate([x, x[:80] * 1.01]).astype(np.float32)
    model = nn.Linear(30, 3)
    report = examine(model, loader(rows), loss=nn.CrossEntropyLoss(), select=["duplicate-samples"], progress=False)
    assert [f.name for f in report.findings] == ["duplicate-samples"]
    text = explain(duplicate_samples, [duplicate_samples])
    assert "near = 0.0" in text
    assert "near-duplicates are not looked for" in " ".join(text.split())


class OneByOne(Dataset):
    """Not in arrays that could be read in bulk."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = torch.as_tensor(x)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.x[index], index % 3


def test_a_set_too_large_to_be_read_twice_is_judged_by_a_loader_that_gives_each_sample_once(monkeypatch) -> None:
    monkeypatch.setattr("sleuth.probes.data.repeats.MOST_ROWS", 400)
    x = np.concatenate([cancer()[0], cancer()[0][:100]])
    assert names(judge(DataLoader(OneByOne(x), 64, shuffle=True), near=0))[0] == "duplicate-samples"
    drawn = WeightedRandomSampler(torch.ones(569), 569)
    judged = judge(DataLoader(OneByOne(cancer()[0]), 64, sampler=drawn), near=0)
    assert "too many to read once more" in judged.not_examined["duplicate-samples"]


def test_a_set_in_arrays_is_read_whole_although_its_loader_was_too_slow(monkeypatch) -> None:
    """The loader is stopped after its first batch, as time would stop it."""
    monkeypatch.setattr("sleuth.probes.data.reading._enough", lambda *given: "stopped")
    x = cancer()[0][np.random.default_rng(0).permutation(569)]
    judged = judge(loader(np.concatenate([x[:400], x[400:440]])), loader(x[400:]), near=0)
    assert judged.findings[0].numbers["validation_samples"] == 169
    assert judged.findings[0].numbers["exact"] == 40


def test_a_random_split_is_not_mistaken_for_the_set_below_it(monkeypatch) -> None:
    monkeypatch.setattr("sleuth.probes.data.reading._enough", lambda *given: "stopped")
    data = TensorDataset(torch.as_tensor(cancer()[0]), torch.zeros(569))
    parts = torch.utils.data.random_split(data, [400, 169])
    judged = judge(*(DataLoader(part, 64, shuffle=True) for part in parts), near=0)
    assert "only a part" in judged.not_examined["train-val-overlap"]
    same = [DataLoader(data, 64, sampler=torch.utils.data.SubsetRandomSampler(rows)) for rows in (range(400), range(400, 569))]
    assert "only a part" in judge(*same, near=0).not_examined["train-val-overlap"]


def test_a_part_without_copies_does_not_clear_the_whole(monkeypatch) -> None:
    monkeypatch.setattr("sleuth.probes.data.reading._enough", lambda *given: "stopped")
    batches = [[torch.as_tensor(part), torch.arange(len(part)) % 3] for part in np.array_split(cancer()[0], 5)]
    judged = judge(batches, near=0)
    assert {n: "only a part" in r for n, r in judged.not_examined.items() if n != "train-val-overlap"} == {
        "duplicate-samples": True,
        "conflicting-labels": True,
    }
