"""The same model twice: weights carried over, then outputs, loss, gradients and one step side by side. Knows no framework."""
