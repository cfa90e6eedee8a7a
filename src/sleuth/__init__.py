"""sleuth finds out why a model does not train."""

from sleuth.api import Subject, UnusableInput, examine, load
from sleuth.core.report import Report

__all__ = ["Report", "Subject", "UnusableInput", "examine", "load"]
__version__ = "0.1.0"
