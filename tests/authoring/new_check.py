"""`./dev new-check NAME`: writes the check and its case, and says what to do next."""

from sleuth.core.stage import Stage
from tests.authoring.naming import free_code, new_place, shown, similar
from tests.authoring.prompts import prompts_left
from tests.authoring.skeleton import case_text, check_text

# Small, and of this stage: worth reading first.
GOOD_ONES = {
    Stage.DATA: "target_not_finite",
    Stage.MODEL: "double_softmax",
    Stage.BATCH: "loss_ignores_target",
    Stage.TRAINING: "learning_rate_decayed_away",
    Stage.HYPERPARAMETERS: "stopped_too_early",
    Stage.RESOURCES: "double_precision",
    Stage.CONSISTENCY: "not_reproducible",
}


def new_check(name: str, stage: Stage, reads: str | None = None) -> None:
    """Raises NameRefused, and then has written nothing."""
    place = new_place(name, stage)
    neighbours = similar(place.name)
    code, texts = free_code(stage), {place.check: check_text(place, reads), place.case: case_text(place)}
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
        print(f"wrote {shown(file)}")
    print(
        f"\n{place.name} is {code}, of the stage {stage.value}. {len(prompts_left(texts))} lines say TODO: fill them in, then run"
    )
    print(f"  ./dev check {place.name}")
    print(f"To read first: src/sleuth/checks/{stage.value}/{GOOD_ONES[stage]}.py and its case of the same name.")
    print(
        "What can be read: src/sleuth/core/observation (seen in a training), src/sleuth/core/trial (measured by an experiment); "
        "src/sleuth/core/reading helps with curves, the flow between operations, and losses."
    )
    for other in neighbours:
        print(f"Is it another illness than {other.name} ({other.code})? {other.title}.")
