"""Where a network looks when it decides for a class (Grad-CAM)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sleuth.core.contract.adapter import Credits
from sleuth.core.contract.inspection import ClassActivation
from sleuth.instruments.given import Given
from sleuth.instruments.panels import in_unit_range, names_for, panels, picture
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result

MOST = 8
HEAT_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class GradCam(Result):
    """`heat` is (samples, height, width) in [0, 1], each scaled by its own maximum, at the size of the input."""

    found: ClassActivation
    classes: tuple[str, ...] | None = None

    @property
    def layer(self) -> str:
        return self.found.path

    @property
    def targets(self) -> tuple[int, ...]:
        return self.found.targets

    @property
    def heat(self) -> np.ndarray:
        top = self.found.enlarged.max(axis=(1, 2), keepdims=True)
        return self.found.enlarged / np.where(top > 0, top, 1.0)

    @property
    def empty(self) -> tuple[int, ...]:
        """Samples for which no place of the layer speaks for the class."""
        return tuple(int(i) for i in np.flatnonzero(self.found.maps.max(axis=(1, 2)) <= 0))

    def overlay(self, sample: int = 0) -> np.ndarray:
        """(height, width, 3) in [0, 1]: the image with the heat over it."""
        from matplotlib import colormaps

        heat = colormaps["jet"](self.heat[sample])[..., :3]
        return (1 - HEAT_SHARE) * shown_image(self.found.image[sample]) + HEAT_SHARE * heat

    def to_dict(self) -> dict[str, Any]:
        return plain({"layer": self.layer, "targets": self.targets, "scores": self.found.scores, "maps": self.found.maps,
                      "empty": self.empty})  # fmt: skip

    def plot(self, most: int = MOST) -> Any:
        """Image, heat and overlay, one row a sample."""
        count = min(len(self.targets), most)

        def draw(axes: Any, number: int) -> None:
            sample, column = divmod(number, 3)
            if column == 0:
                picture(axes, shown_image(self.found.image[sample]), f"sample {sample}")
            elif column == 1:
                picture(axes, self.heat[sample], f"class {self.name_of(sample)}", cmap="jet", vmin=0, vmax=1)
            else:
                picture(axes, self.overlay(sample), f"score {self.found.scores[sample]:.3g}")

        return panels(3 * count, draw, title=f"Grad-CAM at {self.layer}", columns=3, side=1.6)

    def name_of(self, sample: int) -> str:
        target = self.targets[sample]
        return self.classes[target] if self.classes is not None and target < len(self.classes) else str(target)

    def __str__(self) -> str:
        lines = [f"Grad-CAM at {self.layer}: maps of {self.found.maps.shape[1:]} over images of {self.found.image.shape[2:]}"]
        for sample in range(min(len(self.targets), MOST)):
            y, x = np.unravel_index(int(self.found.enlarged[sample].argmax()), self.found.enlarged[sample].shape)
            place = "nothing speaks for it" if sample in self.empty else f"strongest at row {y}, column {x}"
            lines.append(f"  sample {sample}: class {self.name_of(sample)}, score {self.found.scores[sample]:.3g}, {place}")
        return "\n".join(lines)


def shown_image(image: np.ndarray) -> np.ndarray:
    """(height, width, 3) in [0, 1], whatever the normalisation was."""
    scaled = in_unit_range(image)
    planes = scaled if scaled.shape[0] == 3 else np.repeat(scaled[:1], 3, axis=0)
    return np.moveaxis(planes, 0, -1)


def gradcam(
    model: Any,
    inputs: Any,
    layer: str | None = None,
    *,
    target: int | Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    progress: bool | None = None,
) -> GradCam:
    """Where in the images a layer, the last two-dimensional convolution if none is named, speaks for a class: the one with the
    highest score, or `target`. Needs Captum. The gradient is computed on a copy, in eval mode."""
    from sleuth.views import progress as progress_view

    given = Given(model, inputs)
    if not isinstance(adapter := given.adapter, Credits):
        raise given.lacks(Credits)
    with progress_view.shown(progress) as tell:
        tell("Computing the gradient at the layer")
        found = adapter.class_activation(given.model, given.required(), layer, target)
    return GradCam(found, None if classes is None else tuple(names_for(len(classes), classes)))
