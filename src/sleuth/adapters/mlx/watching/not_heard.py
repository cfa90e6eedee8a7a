"""What a watch says that it cannot hear."""

COMPILED = (
    "the step was compiled by mx.compile before the watch began, and what happens in it cannot be heard: open the watch before, "
    "or use sleuth run"
)
ASSERTIONS = "assertions on layers are not looked at in MLX: a layer's output is not computed when it returns"
