"""The parts of `./dev bench wild`: lists of public scripts and faults, their scratch copies, runs and judgements."""
