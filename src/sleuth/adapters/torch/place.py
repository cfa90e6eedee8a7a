"""The user's line behind what is happening now, with torch's own frames passed over."""

from functools import partial
from pathlib import Path

import torch

from sleuth.core.runtime import place

TORCH = str(Path(torch.__file__).parent)

is_users = partial(place.is_users, foreign=(TORCH,))
current_location = partial(place.current_location, foreign=(TORCH,))
location_of = partial(place.location_of, foreign=(TORCH,))
