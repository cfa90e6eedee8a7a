"""On what this runs."""

import os
import platform


def machine() -> dict[str, str]:
    system = f"{platform.system()} {platform.machine()}".strip()
    return {"python": platform.python_version(), "system": system, "processors": str(os.cpu_count() or "unknown")}
