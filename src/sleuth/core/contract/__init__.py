"""What sleuth and an adapter agree on: capabilities, guards, what is kept, scenes."""
