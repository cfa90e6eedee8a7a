"""How observations are read: curves, wiring, flow, batches."""
