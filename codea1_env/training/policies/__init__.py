"""What plays in a seat: a policy samples responses, learns from them, and is saved and loaded."""
