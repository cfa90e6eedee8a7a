"""From the first hook to the report: a watch records a training, what was kept of it is examined, the report is built."""
