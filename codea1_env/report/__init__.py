"""What became of a training run, as one page: read its directory, draw its curves, write HTML and PNG.

Reads only; a run may go on meanwhile. Nothing here loads torch.
"""
