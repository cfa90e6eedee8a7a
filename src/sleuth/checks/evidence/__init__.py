"""What several checks share when they weigh evidence. No check stands here."""
