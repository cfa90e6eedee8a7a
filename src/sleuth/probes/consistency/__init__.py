"""The same training or model twice: here and elsewhere, before and after."""
