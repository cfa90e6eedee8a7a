"""The command line of `./dev new-check` and `./dev check`."""

import argparse
import sys

from sleuth.core.stage import Stage
from tests.authoring.naming import ROOT, NameRefused

STAGES = [stage.value for stage in Stage]
KITS = sorted(file.stem.removesuffix("_kit") for file in (ROOT / "tests" / "kits").glob("*_kit.py"))


def main(words: list[str]) -> int:
    given = _parser().parse_args(words)
    try:
        if given.command == "new-check":
            from tests.authoring.new_check import new_check

            new_check(given.name, Stage(given.stage), given.reads)
            return 0
        from tests.authoring.try_check import try_check

        well = try_check(given.name, given.kits, everywhere=not given.own_only, update_golden=given.update_golden)
        return 0 if well else 1
    except NameRefused as reason:
        print(reason, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./dev")
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new-check", help="write the two files of a check")
    new.add_argument("name", metavar="NAME", help="the illness, such as vanishing-gradients")
    new.add_argument(
        "--stage", choices=STAGES, default=Stage.TRAINING.value, help="where an expert would look (default: training)"
    )
    new.add_argument(
        "--reads", metavar="CLASS", help="what it decides by, of core/observation or core/trial (default: the stage's)"
    )
    check = commands.add_parser("check", help="try a check everywhere and write what follows from it")
    check.add_argument("name", metavar="NAME")
    check.add_argument("--kits", nargs="+", choices=KITS, help="its own case only in these frameworks, while you work on it")
    check.add_argument("--own-only", action="store_true", help="not on all other trainings, while you work on it")
    check.add_argument("--update-golden", action="store_true", help="write golden rows of this case that say something else now")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
