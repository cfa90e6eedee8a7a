"""The usual reasons why a layer differs, each tried on what was recorded: which formula makes a side's output of its input?"""
