"""Which full looks go deeper still: with histograms of exponents, single units and dtypes."""

# Of looks. Where the user asked for every step, a look must stay cheap; where a budget is kept, it pays for the deeper ones too.
EVERY_LOOK_ASKED = 8
EVERY_LOOK_BUDGETED = 4
# From here on the distance doubles whenever the number of looks has doubled: a long run keeps a bounded number of deep looks.
# Powers of two, as in core.history, so that deep looks are among those which are kept.
SPARSER_FROM = 512


def is_deep(look: int, asked: bool) -> bool:
    """`look` counts from 0; `asked`: the user said which steps to look at."""
    distance = EVERY_LOOK_ASKED if asked else EVERY_LOOK_BUDGETED
    doublings = max(0, (look // SPARSER_FROM).bit_length())
    return look % (distance << doublings) == 0
