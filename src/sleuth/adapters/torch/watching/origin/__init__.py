"""Where NaN or Inf was born: the step that went wrong is done again, op by op, and the first guilty op is named."""
