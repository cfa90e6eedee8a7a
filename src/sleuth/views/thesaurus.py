"""How people put what they see: data for `ideas`."""

# Each idea with the ways people put it; words are compared by their stems, so that plurals and tenses need no entry.
THESAURUS = {
    "nan": "nan, inf, infinity, infinite, not finite, non finite, not number, nonfinite",
    "stuck": "stuck, flat, plateau, stagnate, constant, stay same, remain same, same every step, no progress, chance level",
    "rise": "go up, increase, rise, explode, blow up, diverge, shoot up, grow, get worse",
    "fall": "go down, decrease, fall, drop, reduce, converge, improve",
    "swing": "oscillate, jump, fluctuate, noisy, unstable, swing, zigzag, bounce, up down, spike, erratic",
    "slow": "slow, slowly, forever, too long",
    "memory": "oom, out memory, memory",
    "validation": "validation, val, valid, test, dev, held out, holdout, generalise, generalize, new data, unseen",
    "training": "training, train",
    "accuracy": "accuracy, acc, metric, score, auc",
    "gradient": "gradient, grad",
    "weight": "weight, parameter, param",
    "loss": "loss, cost, criterion",
    "rate": "learning rate, lr, step size",
    "zero": "zero, vanish, disappear",
    "tiny": "tiny, very small, small, little",
    "huge": "huge, large, too high, very high, big, enormous",
    "one class": "one class, single class, same class, majority class",
    "one answer": "same everything, same every input, same output, same prediction, same answer, identical prediction, "
    "same value, prediction identical, mean everything, constant prediction, constant output",
    "predict": "predict, prediction, output, answer",
    "worse": "worse, bad, poor, gap",
    "better": "better, good",
    "higher": "higher, high, above, greater",
    "lower": "lower, low, below, smaller, less",
    "in place": "inplace, in place",
    "shape": "shape, size, dimension, dim",
    "label": "label, target, annotation",
    "start": "start, initial, first, beginning",
    "normalise": "normalise, normalize, standardise, standardize, scale",
    "initialise": "initialise, initialize, initialisation, initialization, init",
    "optimiser": "optimiser, optimizer, optim",
    "overfitting": "overfit, overfitting, overfitted",
    "memorise": "memorise, memorize, learn by heart, cannot overfit, not overfit, overfit one, overfit single, overfit batch",
    "token": "token, word",
    "device": "device, cuda, gpu, cpu",
    "unit": "unit, neuron",
    "step": "step, iteration, epoch",
}
NEGATIONS = ("not", "never", "no", "hardly", "barely", "cannot")
# With a negation before it, it is stuck.
PROGRESS = "improve, decrease, fall, drop, converge, learn, train, change, move, budge, go down, update, progress, reduce, work"
# Says nothing about a training, or belongs to the frame of a message.
EMPTY = """
a about after all also an and any are as assertion at be because been but by can do does during error even failed for
from get gets got had has have he how i if in index into is it its just keep keeps lot me model much my network neural
nn of on only or our py quite really runtime s should so still t than that the their them then there these they thing
this to torch value very was we what when which while why will with you your
"""
