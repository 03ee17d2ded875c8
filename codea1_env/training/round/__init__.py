"""One round of the duel, whatever engine trains the seats: who is attacked, the scores, what is learnt from."""
