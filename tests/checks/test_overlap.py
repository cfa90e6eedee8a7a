"""train-val-overlap: leaks are counted, samples that are equal by nature are not accused."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sleuth import Subject
from sleuth.adapters.torch import ADAPTER
from sleuth.checks.data.train_val_overlap import train_val_overlap
from sleuth.core.engine import Engine, Judgement
from sleuth.core.stage import Confidence, Severity
from sleuth.probes.data.overlap import overlap
from sleuth.probes.data.reading import reading
from sleuth.probes.lab.examination import run_probe
from sleuth.probes.lab.probe import Lab
from tests.material import cancer, diabetes, digits, wine


def judge(train: np.ndarray, validation: np.ndarray | None, complete: bool = True) -> Judgement:
    def loader(x: np.ndarray) -> DataLoader | list[list[torch.Tensor]]:
        if not complete:  # a data set in arrays is read whole by another way
            return [[torch.as_tensor(part), torch.zeros(len(part))] for part in np.array_split(x, 9)]
        return DataLoader(TensorDataset(torch.as_tensor(x), torch.zeros(len(x))), batch_size=64, shuffle=True)

    subject = Subject(nn.Linear(1, 1), loader(train), validation=None if validation is None else loader(validation))
    lab, engine = Lab(subject, ADAPTER, 60.0), Engine([train_val_overlap])
    run_probe(reading, lab, engine.emit)
    lab.train.complete &= complete
    run_probe(overlap, lab, engine.emit)
    return engine.judge()


def halves(x: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = x[np.random.default_rng(seed).permutation(len(x))]
    return x[: len(x) * 4 // 5], x[len(x) * 4 // 5 :]


@pytest.mark.parametrize("material", [digits, cancer, diabetes, wine])
def test_a_clean_split_is_clear(material) -> None:
    for seed in range(3):
        assert judge(*halves(material()[0], seed)).clear == ("train-val-overlap",)


@pytest.mark.parametrize("material", [digits, cancer, diabetes, wine])
def test_a_tenth_of_validation_in_training_is_an_error_that_is_certain(material) -> None:
    train, validation = halves(material()[0])
    leaked = len(validation) // 10 + 1
    finding = judge(np.concatenate([train, validation[:leaked]]), validation).findings[0]
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.CERTAIN)
    assert finding.numbers["exact"] == leaked


def test_examples_name_equal_samples() -> None:
    train, validation = halves(cancer()[0])
    batches = [torch.as_tensor(np.concatenate([train, validation[7:20]]))], [torch.as_tensor(validation)]
    lab = Lab(Subject(nn.Linear(1, 1), batches[0], validation=batches[1]), ADAPTER, 60.0)
    list(reading.run(lab))
    found = next(iter(overlap.run(lab)))
    assert found.examples[0] == (7, len(train))


def test_a_leak_in_half_precision_is_found_and_likely() -> None:
    train, validation = halves(digits()[0] * 0.37)
    noisy = validation.astype(np.float16).astype(np.float32)
    finding = judge(np.concatenate([train, noisy]), validation).findings[0]
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert finding.numbers["share"] > 0.95


def test_a_leak_of_two_percent_is_a_warning() -> None:
    train, validation = halves(digits()[0])
    assert judge(np.concatenate([train, validation[:8]]), validation).findings[0].severity is Severity.WARNING


def test_two_equal_samples_are_a_slip() -> None:
    train, validation = halves(wine()[0])
    assert judge(np.concatenate([train, validation[:2]]), validation).clear


def test_training_that_is_oversampled_after_the_split_is_clear() -> None:
    train, validation = halves(cancer()[0])
    assert judge(np.concatenate([train, train, train[:100]]), validation).clear


def test_oversampled_training_does_not_hide_a_leak() -> None:
    train, validation = halves(cancer()[0])
    assert judge(np.concatenate([train, train, validation[:30]]), validation).findings


def test_copies_made_before_the_split_are_found() -> None:
    x = cancer()[0]
    assert judge(*halves(np.concatenate([x, x]))).findings[0].severity is Severity.ERROR


def binary(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, (1000, 3)).astype(np.float32)


def categories(rng: np.random.Generator) -> np.ndarray:
    return np.stack([rng.integers(0, k, 3000) for k in (2, 5, 7, 3, 12)], axis=1).astype(np.float32)


def short_tokens(rng: np.random.Generator) -> np.ndarray:
    return rng.geometric(0.1, (2000, 3))


def messages(rng: np.random.Generator) -> np.ndarray:
    """A third are one of ten short ones, padded with zeros; the others are long."""
    long = rng.integers(1, 500, (1500, 12))
    short = np.zeros_like(long)
    short[:, 0] = rng.integers(1, 11, len(long))
    return np.where(rng.random((1500, 1)) < 0.3, short, long)


def rare_ones(rng: np.random.Generator) -> np.ndarray:
    """Forty columns that are nearly always zero."""
    return (rng.random((2000, 40)) < 0.03).astype(np.float32)


def one_number(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 50, (800, 1)).astype(np.float32)


def blank_pages(rng: np.random.Generator) -> np.ndarray:
    pages = rng.random((600, 64)).astype(np.float32)
    pages[rng.random(600) < 0.4] = 0
    return pages


@pytest.mark.parametrize("make", [binary, categories, short_tokens, messages, rare_ones, one_number, blank_pages])
def test_samples_that_are_equal_by_nature_are_not_accused(make) -> None:
    for seed in range(5):
        assert not judge(*halves(make(np.random.default_rng(seed)), seed)).findings


def test_where_most_inputs_repeat_it_cannot_be_told() -> None:
    assert "equal inputs are natural here" in judge(*halves(binary(np.random.default_rng(0)))).not_examined["train-val-overlap"]


def test_without_validation_that_is_the_reason() -> None:
    assert judge(digits()[0], None).not_examined == {"train-val-overlap": "no validation data was given"}


def test_a_part_without_equals_does_not_clear_the_whole() -> None:
    assert "only a part" in judge(*halves(digits()[0]), complete=False).not_examined["train-val-overlap"]
